"""The search: continued, stopped, kept; the same whoever does the work and whoever is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from threading import Thread

import msgspec
import pytest
from untrained import untrained
from waiting import wait_for
from watching import Watched

from carryscope.certificate.certify import certify
from carryscope.certificate.finding import RUNNING, Certificate
from carryscope.certificate.subject import ProofSubject
from carryscope.core.errors import CallError, WorkError
from carryscope.core.workers import SchedulerLost, Workers, this_process
from carryscope.model.config import ModelConfig
from carryscope.model.transformer import Transformer

MODEL = untrained(ModelConfig(digits=1, heads=2, d_model=24))


@pytest.fixture
def found(two_digits: tuple[Transformer, Certificate]) -> Certificate:
    return two_digits[1]


@pytest.fixture(scope="module")
def whole() -> Certificate:
    """All that one process proves about the model of one digit."""
    return certify(MODEL, until=1.0)


def but_for_the_time(certificate: Certificate) -> Certificate:
    return msgspec.structs.replace(certificate, seconds=0.0)


class Reacting(Watched):
    """Progress whose notes a function reads."""

    def __init__(self, react: Callable[[str], None]) -> None:
        super().__init__()
        self.react = react

    def advance(self, amount: float = 1, note: str = "") -> None:
        super().advance(amount, note)
        self.react(note)


def test_the_counts_add_up_and_are_decimal_text(found: Certificate) -> None:
    counts = [int(found.proved_right), int(found.proved_wrong), int(found.undecided)]
    assert sum(counts) == int(found.questions) == 10_000
    assert found.decided >= 0.6
    for digit in found.per_digit:
        parts = (digit.proved_right, digit.proved_wrong, digit.undecided)
        assert sum(map(int, parts)) == 10_000
    assert "log" not in found.without_log()


def test_undecided_families_are_all_that_is_undecided(found: Certificate) -> None:
    for digit in found.per_digit:
        sizes = [int(f.questions) for f in found.undecided_families if f.digit == digit.digit]
        assert sum(sizes) == int(digit.undecided)


def test_a_search_that_was_stopped_continues_to_the_same_certificate(whole: Certificate) -> None:
    kept: list[Certificate] = []
    stopped = certify(MODEL, until=1.0, keep=kept.append, progress=Watched(stop_after=3))
    assert stopped.ended == "asked to"
    assert 0 < stopped.boxes < whole.boxes
    assert kept[-1].ended == RUNNING
    assert kept[-1].log == stopped.log
    resumed = certify(MODEL, known=stopped, until=1.0)
    assert resumed.undecided == "0"
    assert but_for_the_time(resumed) == but_for_the_time(whole)


def test_progress_is_the_share_of_the_rows_that_is_decided() -> None:
    progress = Watched()
    certify(MODEL, until=1.0, about="exact", progress=progress)
    assert progress.begun == [("certify", 1.0, "")]
    assert sum(progress.amounts) == pytest.approx(1.0)
    assert min(progress.amounts) >= -1e-9
    assert progress.notes[-1].startswith("right 0%, wrong 97.0%, undecided 3.0% (of a digit 0%)")


def test_what_is_known_may_be_enough(found: Certificate) -> None:
    assert found.is_enough(0.5)
    assert not found.is_enough(0.99)
    assert not msgspec.structs.replace(found, ended=RUNNING).is_enough(0.5)
    everything = msgspec.structs.replace(found, ended="decided", until=1.0)
    assert everything.is_enough(1.0), "what is left are single questions that nothing decides"


def test_two_local_processes_give_the_certificate_of_one_even_if_workers_are_killed(
    whole: Certificate,
) -> None:
    """One is killed as soon as it is there, while it starts, another in the middle of its work."""
    killed: list[int] = []

    def kill_one() -> None:
        wait_for(multiprocessing.active_children)
        process = multiprocessing.active_children()[-1]
        os.kill(process.pid or 0, signal.SIGKILL)
        killed.append(process.pid or 0)

    def kill_another(note: str) -> None:
        if len(killed) == 1 and not note.endswith(" 0 boxes"):
            kill_one()

    killer = Thread(target=kill_one)
    killer.start()
    again = certify(MODEL, until=1.0, workers=2, progress=Reacting(kill_another))
    killer.join()
    assert len(set(killed)) == 2
    assert but_for_the_time(again) == but_for_the_time(whole)


@pytest.fixture
def cluster() -> Iterator[tuple[str, list[int]]]:
    """A real dask scheduler on loopback with two worker processes, and their numbers."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
        ) as started,
        distributed.Client(started) as client,
    ):
        yield started.scheduler_address, list(client.run(os.getpid).values())


def test_a_cluster_gives_the_certificate_of_one_process_even_if_it_loses_a_worker(
    whole: Certificate, cluster: tuple[str, list[int]]
) -> None:
    address, processes = cluster

    def kill_one(note: str) -> None:
        if not note.endswith(" 0 boxes") and len(processes) == 2:
            os.kill(processes.pop(), signal.SIGKILL)

    again = certify(MODEL, until=1.0, cluster=address, progress=Reacting(kill_one))
    assert len(processes) == 1
    assert but_for_the_time(again) == but_for_the_time(whole)


def test_what_is_proved_is_kept_when_the_workers_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def workers(subject: ProofSubject, _: int, __: str) -> AbstractContextManager[Workers]:
        here, calls = this_process(subject), iter(range(3))

        def submit(function, item):  # type: ignore[no-untyped-def]
            if next(calls) == 2:
                raise SchedulerLost
            return here.submit(function, item)

        return nullcontext(Workers(submit, here.room, ahead=1))

    monkeypatch.setattr(ProofSubject, "workers", workers)
    kept: list[Certificate] = []
    with pytest.raises(WorkError, match="The dask scheduler is gone"):
        certify(MODEL, until=1.0, keep=kept.append)
    assert kept[-1].boxes > 0
    assert kept[-1].ended == RUNNING
    monkeypatch.undo()
    assert certify(MODEL, known=kept[-1], until=1.0).undecided == "0"


def test_an_address_where_nobody_answers_is_refused_and_nothing_kept() -> None:
    pytest.importorskip("distributed")
    kept: list[Certificate] = []
    with pytest.raises(CallError, match="No dask scheduler answers at"):
        certify(MODEL, cluster="tcp://127.0.0.1:1", keep=kept.append)
    assert not kept


def test_settings_that_make_no_sense_are_refused() -> None:
    for settings in ({"until": 0.0}, {"until": 1.5}, {"minutes": 0.0}, {"workers": 0}):
        with pytest.raises(CallError, match=next(iter(settings))):
            certify(MODEL, **settings)  # type: ignore[arg-type]
