"""Workers: results in order and as they finish, and what is done again when one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest
from waiting import wait_for

from carryscope.core import workers as module
from carryscope.core.errors import CallError, WorkError
from carryscope.core.workers import (
    Outcome,
    Workers,
    local_workers,
    shared_out,
    this_process,
)


def square(_: object, number: int) -> int:
    return number * number


def environment(_: object, name: str) -> str | None:
    return os.environ.get(name)


def process_id(_: object, __: int) -> int:
    return os.getpid()


def what_is_shared(shared: object, _: int) -> tuple[int, object]:
    return id(shared), shared


def ctrl_c(_: object, __: int) -> object:
    return signal.getsignal(signal.SIGINT)


def slow_first(_: object, number: int) -> int:
    time.sleep(0.5 if number == 0 else 0)
    return number


def wait_a_second(_: object, number: int) -> int:
    time.sleep(1.2)
    return number


def killed_once(log: Path, name: str) -> str:
    """A call whose first worker is killed in the middle of it; other names are just done."""
    if name == "deadly":
        with log.open("a") as file:
            file.write("x")
        if len(log.read_text()) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    return name


def deadly(_: object, name: str) -> str:
    if name == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    return name


class BadError(Exception):
    def __reduce__(self) -> NoReturn:
        raise TypeError


def failing(log: Path, name: str) -> str:
    if name == "fails":
        with log.open("a") as file:
            file.write("x")
        raise OSError(28, "No space left\non device")
    if name == "strange":
        raise BadError("it is\nstrange")
    return name


class DeadlyOnce:
    """A shared value that kills the first process that reads it: while that one starts."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.weight = b"x" * 1_000_000  # more than a pipe holds

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        if not self.log.exists():
            self.log.touch()
            os.kill(os.getpid(), signal.SIGKILL)


def last(looks: Iterator[Outcome[Any, Any]]) -> Outcome[Any, Any]:
    *_, outcome = looks
    return outcome


def results(found: Iterator[tuple[Any, Any] | None]) -> list[Any]:
    return [pair for pair in found if pair is not None]


def test_this_process_and_two_others_give_the_same_results_in_order() -> None:
    expected = [(number, number * number) for number in range(20)]
    assert results(this_process().in_order(square, range(20))) == expected
    with local_workers(2) as workers:
        assert results(workers.in_order(square, range(20))) == expected
        assert results(workers.in_order(slow_first, range(6))) == [(n, n) for n in range(6)]


def test_a_caller_can_look_while_nothing_is_ready() -> None:
    with local_workers(1) as workers:
        assert None in list(workers.in_order(wait_a_second, [1]))


def test_work_is_begun_a_few_items_ahead_and_no_more() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    with local_workers(2) as workers:
        next(workers.in_order(square, items()))
    assert len(taken) <= 2 * 2 + 1


def test_the_shared_value_is_given_to_every_worker_once() -> None:
    with local_workers(1, shared={"a": 1}) as workers:
        first, second = (found for _, found in results(workers.in_order(what_is_shared, [0, 1])))
    assert first == second
    assert first[1] == {"a": 1}


def test_a_local_worker_that_is_killed_is_replaced_and_its_call_made_again(tmp_path: Path) -> None:
    names = ["deadly", "one", "two"]
    with local_workers(2, shared=tmp_path / "log") as workers:
        assert results(workers.in_order(killed_once, names)) == [(n, n) for n in names]
    assert (tmp_path / "log").read_text() == "xx"


def test_a_worker_that_is_killed_while_it_starts_is_replaced(tmp_path: Path) -> None:
    shared = DeadlyOnce(tmp_path / "log")
    with local_workers(1, shared=shared) as workers:
        assert results(workers.in_order(square, [1, 2])) == [(1, 1), (2, 4)]
    assert shared.log.exists()


def test_an_idle_worker_that_is_killed_is_replaced() -> None:
    with local_workers(1) as workers:
        ((_, process),) = results(workers.in_order(process_id, [0]))
        os.kill(process, signal.SIGKILL)
        assert results(workers.in_order(square, [3])) == [(3, 9)]


def test_a_call_that_kills_every_worker_fails_and_stops_no_other() -> None:
    with local_workers(1) as workers:
        outcome = last(workers.as_they_finish(deadly, {0: "deadly", 1: "done"}))
        assert outcome.done == {1: "done"}
        assert outcome.tried[0] == 4
        assert outcome.failed[0].startswith("4 workers were killed during the same call.")
        with pytest.raises(WorkError, match="4 workers were killed"):
            list(workers.in_order(deadly, ["deadly"]))


def test_a_call_that_fails_is_made_twice_and_its_reason_is_one_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with local_workers(1, shared=log) as workers:
        outcome = last(workers.as_they_finish(failing, {0: "fails", 1: "done", 2: "strange"}))
    assert log.read_text() == "xx"
    assert outcome.tried == {0: 2, 1: 1, 2: 2}
    assert outcome.failed == {
        0: "OSError: [Errno 28] No space left on device",
        2: "BadError: it is strange",
    }
    assert outcome.done == {1: "done"}


@pytest.mark.parametrize("local", [True, False])
def test_in_order_a_call_that_fails_raises_its_error_at_once(tmp_path: Path, local: bool) -> None:
    @contextmanager
    def here() -> Iterator[Workers]:
        yield this_process(tmp_path / "log")

    with (
        local_workers(1, shared=tmp_path / "log") if local else here() as workers,
        pytest.raises(OSError, match="No space left"),
    ):
        list(workers.in_order(failing, ["done", "fails"]))
    assert (tmp_path / "log").read_text() == "x"


def test_a_worker_that_cannot_be_started_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_memory(*_: object) -> NoReturn:
        raise OSError(12, "Cannot allocate memory")

    with local_workers(1) as workers:
        with monkeypatch.context() as without_memory:
            without_memory.setattr("multiprocessing.context.SpawnProcess._Popen", no_memory)
            with pytest.raises(WorkError, match="could not be started: Cannot allocate memory"):
                list(workers.in_order(square, [1]))
        assert results(workers.in_order(square, [2])) == [(2, 4)]


def test_a_worker_has_as_many_threads_as_it_is_given_and_ignores_ctrl_c() -> None:
    with local_workers(1, threads=3) as workers:
        assert results(workers.in_order(environment, ["OMP_NUM_THREADS"]))[0][1] == "3"
        assert results(workers.in_order(ctrl_c, [0]))[0][1] == signal.SIG_IGN


def test_a_worker_that_loads_this_module_has_loaded_neither_torch_nor_numpy() -> None:
    code = "import sys, carryscope.core.workers; print({'torch', 'numpy'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


DRIVER = """
import os, time
from carryscope.core.workers import local_workers

def process_id(_, item):
    return os.getpid()

def sleep(_, item):
    time.sleep(1000)

if __name__ == "__main__":
    with local_workers(1) as workers:
        print(next(workers.in_order(process_id, [0]))[1], flush=True)
        list(workers.in_order(sleep, [0]))
"""


def test_local_workers_do_not_outlive_a_driver_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    driver = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    worker = int(driver.stdout.readline())
    driver.kill()
    driver.communicate()
    wait_for(lambda: not is_alive(worker))


def is_alive(process: int) -> bool:
    """Whether a process is there, and not just the memory of one that its parent must bury."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("workers", "threads", "shared"),
    [
        (None, None, (5, 1)),
        (2, None, (2, 2)),
        (1, None, (1, 5)),
        (3, None, (3, 1)),
        (None, 2, (2, 2)),
    ],
)
def test_threads_are_shared_out_and_never_more_than_cores(
    workers: int | None,
    threads: int | None,
    shared: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "cores", lambda: 5)
    assert shared_out(workers, threads) == shared


@pytest.mark.parametrize(
    ("workers", "threads", "message"),
    [(6, None, "more than the 5 cores"), (2, 3, "more than the 5 cores"), (0, None, "at least 1")],
)
def test_more_threads_than_cores_are_refused(
    workers: int, threads: int | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "cores", lambda: 5)
    with pytest.raises(CallError, match=message):
        shared_out(workers, threads)


def test_cores_are_counted_where_there_is_no_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert module.cores() == os.cpu_count()
