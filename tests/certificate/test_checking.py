"""Checks of certificates: those that are sound pass, and whatever was changed is found."""

from __future__ import annotations

import base64
import zlib

import msgspec
import numpy as np
import pytest
import torch
from box_spaces import seen
from untrained import untrained

from carryscope.certificate import checking
from carryscope.certificate import proof as proof_module
from carryscope.certificate.certify import ProofSearch, certify
from carryscope.certificate.checking import (
    ClaimedBoxes,
    check_certificate,
    claims_of,
    verify,
    verify_sample,
)
from carryscope.certificate.finding import RUNNING, Certificate
from carryscope.certificate.proof import OPEN, RIGHT, WRONG, Engine
from carryscope.certificate.spot_checks import draw
from carryscope.certificate.subject import fastest_engine, other_engine
from carryscope.core.errors import CallError, WorkError
from carryscope.core.workers import this_process
from carryscope.model.config import ModelConfig
from carryscope.model.prediction import predict
from carryscope.model.transformer import Transformer

Certified = tuple[Transformer, Certificate]


@pytest.fixture
def certified(two_digits: Certified) -> Certified:
    return two_digits


def test_a_certificate_passes_its_check_by_either_engine(
    certified: Certified, engine: Engine
) -> None:
    """Unless one is named, the engine that did not search."""
    model, found = certified
    named = None if engine == other_engine(found.found_with) else engine
    checked = check_certificate(model, found, engine=named)
    assert checked.claims > 0
    assert checked.engine == engine
    assert checked.boxes == sum(digit.boxes for digit in found.per_digit)


def test_what_one_engine_found_the_other_checks(certified: Certified) -> None:
    pytest.importorskip("numba")
    _, found = certified
    assert (found.found_with, other_engine(found.found_with)) == (["numba"], "torch")
    model = untrained(ModelConfig(digits=1, heads=1, d_model=16))
    by_torch = certify(model, until=0.3, engine="torch")
    assert by_torch.found_with == ["torch"]
    assert check_certificate(model, by_torch).engine == "numba"


def test_a_bound_that_does_not_hold_fails_the_check(certified: Certified) -> None:
    """A forged log whose every count is right: open boxes are called right."""
    model, found = certified
    search = ProofSearch(model, found)
    proof = search.proofs[rows_with(found, "undecided")[0]]
    at = proof.open_boxes()
    proof.verdict[at] = RIGHT
    forged = search.certificate(until=0.6, ended=RUNNING, seconds=0.0)
    with pytest.raises(WorkError, match="a claim of the log does not hold"):
        check_certificate(model, forged, engine=fastest_engine())


def test_no_engine_confirms_what_the_model_does_not_do(
    certified: Certified, engine: Engine
) -> None:
    """The smallest open box in which the model errs, claimed to be right."""
    model, found = certified
    row = rows_with(found, "undecided")[0]
    search = ProofSearch(model, found, engine=engine)
    space, boxes = search.proofs[row].space, search.proofs[row].leaves(OPEN)
    for box in boxes[np.argsort(space.share(boxes), kind="stable")]:
        drawn = draw(space, box[None], 20, np.random.default_rng(0))
        if not predict(model, drawn, free_running=False).right[:, row].all():
            break
    reading, *_ = seen(space, box)
    with pytest.raises(WorkError, match="a claim of the log does not hold"):
        verify(search.subject, ClaimedBoxes(row, reading, box[None], RIGHT))


def test_a_certificate_of_other_weights_is_refused(certified: Certified) -> None:
    _, found = certified
    other = untrained(ModelConfig(digits=2, heads=2, d_model=24), seed=1)
    with pytest.raises(CallError, match="other weights"):
        check_certificate(other, found)
    with pytest.raises(CallError, match="other weights"):
        certify(other, known=found)


def test_a_log_of_another_version_is_refused(certified: Certified) -> None:
    model, found = certified
    with pytest.raises(CallError, match="version 99"):
        check_certificate(model, msgspec.structs.replace(found, log_version=99))


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
    certified: Certified, before: int, field: str, after: int
) -> None:
    model, found = certified
    false = tampered(found, rows_with(found, field)[0], before, after)
    with pytest.raises(WorkError, match="not what its log says"):
        check_certificate(model, false)


def test_counts_that_are_not_those_of_the_log_fail_the_check(
    certified: Certified,
) -> None:
    model, found = certified
    more = str(int(found.proved_right) + 1)
    with pytest.raises(WorkError, match="not what its log says"):
        check_certificate(model, msgspec.structs.replace(found, proved_right=more))


def test_a_damaged_log_is_refused_in_one_line(certified: Certified) -> None:
    model, found = certified
    changed = [msgspec.structs.replace(found.log[0], verdicts="AAAA"), *found.log[1:]]
    with pytest.raises(CallError, match="damaged"):
        check_certificate(model, msgspec.structs.replace(found, log=changed))


def test_a_log_with_another_number_of_columns_is_refused(
    certified: Certified,
) -> None:
    model, found = certified
    wider = [msgspec.structs.replace(log, trees=[*log.trees, log.trees[0]]) for log in found.log]
    for log in (wider, found.log[:-1]):
        with pytest.raises(CallError, match="a tree for every column of every row"):
            check_certificate(model, msgspec.structs.replace(found, log=log))


@pytest.mark.parametrize("example", ["1+1", "any you like"])
def test_an_example_must_be_one_of_its_family(certified: Certified, example: str) -> None:
    model, found = certified
    first, *others = found.undecided_families
    changed = [msgspec.structs.replace(first, example=example), *others]
    with pytest.raises(WorkError, match="undecided_families of the certificate is not what"):
        check_certificate(model, msgspec.structs.replace(found, undecided_families=changed))


def test_the_same_weights_with_other_heads_are_another_model(
    certified: Certified,
) -> None:
    model, found = certified
    other = Transformer(ModelConfig(digits=2, heads=4, d_model=24))
    weights = model.state_dict()
    other.load_state_dict({k: weights[k].reshape(v.shape) for k, v in other.state_dict().items()})
    with pytest.raises(CallError, match="other weights"):
        check_certificate(other, found)


def test_splitting_a_question_into_nothing_is_refused(certified: Certified) -> None:
    model, _ = certified
    proof = ProofSearch(model).proofs[0]
    tree = proof.space.trees[0]
    at = proof.open_boxes()[:1]
    while tree.parts[proof.boxes[at[0], 0]]:
        at = proof.split(at, np.zeros(1, dtype=np.int64))[:1]
    with pytest.raises(CallError, match="cannot be split"):
        proof.split(at, np.zeros(1, dtype=np.int64))


def test_a_proof_that_float32_contradicts_fails_the_check() -> None:
    """Small logits and a large common bias: exact margins survive, float32 rounds them away."""
    model = untrained(ModelConfig(digits=1, heads=1, d_model=16))
    with torch.no_grad():
        model.unembed.W_U *= 0.05
        model.unembed.b_U.copy_(0.05 * model.unembed.b_U + 9e5)
    search = ProofSearch(model, about="exact")
    for _ in search.steps(this_process(shared=search.subject)):
        pass
    found = search.certificate(until=1.0, ended="decided", seconds=0.0)
    assert int(found.proved_wrong) + int(found.proved_right) > 0
    with pytest.raises(WorkError, match="contradicts the model"):
        check_certificate(model, found)


def test_a_worker_that_skips_claims_is_found(
    certified: Certified, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "verify", lambda subject, claims: len(claims.boxes) - 1)
    with pytest.raises(WorkError, match="did not verify all"):
        check_certificate(*certified)


def test_a_sample_of_what_a_cluster_claims_is_bounded_again(certified: Certified) -> None:
    model, found = certified
    search = ProofSearch(model, found)
    row = rows_with(found, "undecided")[0]
    proof = search.proofs[row]
    honest = [piece for r in range(len(search.proofs)) for piece in claims_of(search, r)]
    verify_sample(search.subject, honest)
    at = proof.open_boxes()
    proof.verdict[at] = RIGHT
    with pytest.raises(WorkError, match="does not hold"):
        verify_sample(search.subject, list(claims_of(search, row)))


def test_a_log_that_unpacks_to_gigabytes_is_refused(
    certified: Certified, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, found = certified
    monkeypatch.setattr(proof_module, "LARGEST_LOG", 1 << 20)
    bomb = base64.b64encode(zlib.compress(bytes(1 << 24))).decode()
    log = [msgspec.structs.replace(found.log[0], verdicts=bomb), *found.log[1:]]
    with pytest.raises(CallError, match="larger than any proof"):
        check_certificate(model, msgspec.structs.replace(found, log=log))
