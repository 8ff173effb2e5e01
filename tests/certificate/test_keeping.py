"""A certificate in a run directory: kept, resumed, checked; whoever does the work."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from carryscope.certificate.certify import Search
from carryscope.certificate.checking import check_certificate
from carryscope.certificate.exploring import OPEN, RIGHT, WRONG
from carryscope.certificate.finding import (
    CERTIFICATE_FILE,
    Certificate,
    read_certificate,
)
from carryscope.core.errors import CallError, WorkError
from carryscope.core.storage import write_json
from carryscope.model.config import FORMAT_VERSION, ModelConfig
from carryscope.model.files import save_weights
from carryscope.model.run_files import CONFIG_FILE
from carryscope.model.transformer import Transformer, initialise
from carryscope.stages import Run
from carryscope.training.config import RunConfig


def some_run(directory: Path, seed: int = 0, digits: int = 2) -> Run:
    """A run with a small untrained model."""
    config = ModelConfig(digits=digits, heads=2, d_model=24)
    model = initialise(Transformer(config), torch.Generator().manual_seed(seed))
    directory.mkdir(parents=True, exist_ok=True)
    save_weights(model, directory)
    write_json(directory / CONFIG_FILE, RunConfig(format_version=FORMAT_VERSION, model=config))
    return Run(directory)


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Certificate]:
    """A run with a certificate of a good part of its questions."""
    run = some_run(tmp_path_factory.mktemp("runs") / "some")
    return run, run.certify(until=0.6, workers=1)


def told(certificate: Certificate) -> Certificate:
    """All but how long it took."""
    return msgspec.structs.replace(certificate, seconds=0.0)


def test_the_counts_add_up_and_are_written_in_decimal(certified: tuple[Run, Certificate]) -> None:
    run, found = certified
    counts = [int(found.proved_right), int(found.proved_wrong), int(found.undecided)]
    assert sum(counts) == int(found.questions) == 10_000
    assert found.decided >= 0.6
    for digit in found.per_digit:
        parts = (digit.proved_right, digit.proved_wrong, digit.undecided)
        assert sum(map(int, parts)) == 10_000
    assert run.certificate() == found


def test_undecided_families_are_all_that_is_undecided(certified: tuple[Run, Certificate]) -> None:
    _, found = certified
    for digit in found.per_digit:
        sizes = [int(f.questions) for f in found.undecided_families if f.digit == digit.digit]
        assert sum(sizes) == int(digit.undecided)


def test_a_search_that_was_stopped_goes_on_to_the_same_certificate(tmp_path: Path) -> None:
    whole = some_run(tmp_path / "whole", digits=1).certify(until=1.0, workers=1)
    run = some_run(tmp_path / "parts", digits=1)
    calls = iter([False, False, True])
    stopped = run.certify(until=1.0, workers=1, on_progress=lambda _: next(calls))
    assert stopped.ended == "asked to"
    assert 0 < stopped.boxes < whole.boxes
    assert read_certificate(run.directory) == stopped
    resumed = run.certify(until=1.0, workers=1)
    assert resumed.undecided == "0"
    assert told(resumed) == told(whole)


def test_what_is_decided_already_is_not_decided_again(certified: tuple[Run, Certificate]) -> None:
    run, found = certified

    def must_not_work(_: object) -> bool:
        raise AssertionError

    assert run.certify(until=0.5, workers=1, on_progress=must_not_work) == found


def test_two_local_processes_give_the_certificate_of_one(
    certified: tuple[Run, Certificate],
) -> None:
    run, found = certified
    other = some_run(run.directory.parent / "two")
    assert told(other.certify(until=0.6, workers=2)) == told(found)


@pytest.fixture
def cluster() -> Iterator[str]:
    """A real dask scheduler on loopback with two worker processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as started:
        yield started.scheduler_address


def test_a_cluster_of_two_workers_gives_the_certificate_of_one_process(
    certified: tuple[Run, Certificate], cluster: str
) -> None:
    run, found = certified
    other = some_run(run.directory.parent / "cluster")
    assert told(other.certify(until=0.6, cluster=cluster)) == told(found)


def test_an_address_where_nobody_answers_is_told_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(CallError, match="No dask scheduler answers at"):
        some_run(tmp_path).certify(cluster="tcp://127.0.0.1:1", until=0.1)


def test_a_certificate_passes_its_check(certified: tuple[Run, Certificate]) -> None:
    run, found = certified
    checked = check_certificate(run.model(), found)
    assert checked.claims > 0
    assert checked.boxes == sum(digit.boxes for digit in found.per_digit)


def test_two_workers_check_what_one_checks(certified: tuple[Run, Certificate]) -> None:
    run, found = certified
    assert check_certificate(run.model(), found, workers=2) == check_certificate(run.model(), found)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bound_that_does_not_hold_fails_the_check(
    certified: tuple[Run, Certificate], workers: int
) -> None:
    """A forged log whose every count is right: open boxes are called right, all rivals beaten."""
    run, found = certified
    work = Search(run.model(), found)
    proof = work.proofs[rows_with(found, "undecided")[0]]
    at = proof.open_boxes()
    proof.verdict[at], proof.beaten[at] = RIGHT, (1 << 12) - 1
    forged = work.certificate(until=0.6, ended="still running", seconds=0.0)
    with pytest.raises(WorkError, match="a claim of the log does not hold"):
        check_certificate(run.model(), forged, workers=workers)


def test_a_certificate_of_other_weights_is_refused(
    certified: tuple[Run, Certificate], tmp_path: Path
) -> None:
    _, found = certified
    other = some_run(tmp_path, seed=1)
    with pytest.raises(CallError, match="other weights"):
        check_certificate(other.model(), found)
    write_json(tmp_path / CERTIFICATE_FILE, found)
    with pytest.raises(CallError, match="other weights"):
        other.certificate()
    with pytest.raises(CallError, match="other weights"):
        other.certify(until=0.5, workers=1)


def test_a_log_of_another_version_is_refused(certified: tuple[Run, Certificate]) -> None:
    run, found = certified
    with pytest.raises(CallError, match="version 99"):
        check_certificate(run.model(), msgspec.structs.replace(found, log_version=99))


def tampered(found: Certificate, row: int, verdict_from: int, verdict_to: int) -> Certificate:
    """The certificate with one verdict of its log changed."""
    log = found.log[row]
    verdicts = np.frombuffer(zlib.decompress(base64.b64decode(log.verdicts)), dtype=np.int8).copy()
    verdicts[np.flatnonzero(verdicts == verdict_from)[0]] = verdict_to
    packed = base64.b64encode(zlib.compress(verdicts.tobytes())).decode()
    changed = [*found.log]
    changed[row] = msgspec.structs.replace(log, verdicts=packed)
    return msgspec.structs.replace(found, log=changed)


def rows_with(found: Certificate, field: str) -> list[int]:
    return [i for i, digit in enumerate(found.per_digit) if int(getattr(digit, field))]


@pytest.mark.parametrize(
    ("before", "field", "after"),
    [
        (OPEN, "undecided", RIGHT),
        (OPEN, "undecided", WRONG),
        (WRONG, "proved_wrong", RIGHT),
    ],
)
def test_a_log_that_claims_more_than_was_proved_fails_the_check(
    certified: tuple[Run, Certificate], before: int, field: str, after: int
) -> None:
    run, found = certified
    false = tampered(found, rows_with(found, field)[0], before, after)
    with pytest.raises(WorkError, match="not those of its log"):
        check_certificate(run.model(), false)


def test_counts_that_are_not_those_of_the_log_fail_the_check(
    certified: tuple[Run, Certificate],
) -> None:
    run, found = certified
    more = str(int(found.proved_right) + 1)
    with pytest.raises(WorkError, match="not those of its log"):
        check_certificate(run.model(), msgspec.structs.replace(found, proved_right=more))


def test_a_damaged_log_is_told_in_one_line(certified: tuple[Run, Certificate]) -> None:
    run, found = certified
    changed = [msgspec.structs.replace(found.log[0], verdicts="AAAA"), *found.log[1:]]
    with pytest.raises(CallError, match="damaged"):
        check_certificate(run.model(), msgspec.structs.replace(found, log=changed))


def test_a_log_with_another_number_of_columns_is_refused(
    certified: tuple[Run, Certificate],
) -> None:
    run, found = certified
    wider = [msgspec.structs.replace(log, trees=[*log.trees, log.trees[0]]) for log in found.log]
    for log in (wider, found.log[:-1]):
        with pytest.raises(CallError, match="a tree for every column of every row"):
            check_certificate(run.model(), msgspec.structs.replace(found, log=log))


def test_half_a_byte_too_many_is_a_damaged_log(certified: tuple[Run, Certificate]) -> None:
    run, found = certified
    odd = base64.b64encode(zlib.compress(b"abc")).decode()
    changed = [msgspec.structs.replace(found.log[0], beaten=odd), *found.log[1:]]
    with pytest.raises(CallError, match="damaged"):
        check_certificate(run.model(), msgspec.structs.replace(found, log=changed))


@pytest.mark.parametrize(("example", "error"), [("1+1", WorkError), ("any you like", CallError)])
def test_an_example_must_be_one_of_its_family(
    certified: tuple[Run, Certificate], example: str, error: type[Exception]
) -> None:
    run, found = certified
    carrying = next(f for f in found.undecided_families if f.states.endswith("G"))
    changed = [
        msgspec.structs.replace(f, example=example) if f is carrying else f
        for f in found.undecided_families
    ]
    with pytest.raises(error):
        check_certificate(run.model(), msgspec.structs.replace(found, undecided_families=changed))


def test_the_same_weights_with_other_heads_are_another_model(
    certified: tuple[Run, Certificate],
) -> None:
    run, found = certified
    other = Transformer(ModelConfig(digits=2, heads=4, d_model=24))
    weights = run.model().state_dict()
    other.load_state_dict({k: weights[k].reshape(v.shape) for k, v in other.state_dict().items()})
    with pytest.raises(CallError, match="other weights"):
        check_certificate(other, found)


def test_splitting_a_question_into_nothing_is_refused(certified: tuple[Run, Certificate]) -> None:
    run, _ = certified
    proof = Search(run.model()).proofs[0]
    tree = proof.space.trees[0]
    at = proof.open_boxes()[:1]
    while tree.parts[proof.boxes[at[0], 0]]:
        at = proof.split(at, np.zeros(1, dtype=np.int64))[:1]
    with pytest.raises(CallError, match="cannot be split"):
        proof.split(at, np.zeros(1, dtype=np.int64))
