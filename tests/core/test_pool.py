"""Who works side by side, and what is tried again when it fails or is killed."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from threading import Thread
from typing import NoReturn

import pytest
from waiting import PATIENCE, wait_for

from carryscope.core import pool
from carryscope.core.errors import CallError
from carryscope.core.pool import (
    Crew,
    LocalProcesses,
    at_work,
    shared_out,
    work_through,
)

Call = Callable[[], bytes]


def shell(script: str) -> Call:
    """A call that a worker makes; for the shell, $PPID is the worker."""
    return partial(subprocess.check_output, ["sh", "-c", script])


def killing_once(log: Path) -> Call:
    """A call whose first worker is killed in the middle of it."""
    return shell(f"echo x >> {log}; [ $(wc -l < {log}) -gt 1 ] || kill -9 $PPID; echo done")


def test_a_local_worker_that_is_killed_is_replaced_and_its_call_made_again(tmp_path: Path) -> None:
    calls = {0: killing_once(tmp_path / "log"), 1: shell("sleep 1; echo done")}
    with LocalProcesses(2, 1) as executor:
        outcome = work_through(Crew(executor, lambda: 2), calls)
    assert outcome.done == {0: b"done\n", 1: b"done\n"}
    assert not outcome.failed
    assert (tmp_path / "log").read_text() == "x\nx\n"


def test_a_cluster_that_loses_a_worker_makes_its_call_again(cluster: str, tmp_path: Path) -> None:
    calls = {0: killing_once(tmp_path / "log"), 1: shell("sleep 1; echo done"), 2: shell("exit 3")}
    with at_work(0, 1, cluster) as crew:
        assert crew.room() == 2
        outcome = work_through(crew, calls)
    assert outcome.done == {0: b"done\n", 1: b"done\n"}
    assert (tmp_path / "log").read_text() == "x\nx\n"
    assert outcome.tried[2] == 2
    assert outcome.failed[2].startswith("CalledProcessError: ")


def test_a_call_that_kills_every_worker_is_given_up_and_stops_no_other(tmp_path: Path) -> None:
    calls = {0: shell("kill -9 $PPID; sleep 9"), 1: shell("echo done")}
    with LocalProcesses(1, 1) as executor:
        outcome = work_through(Crew(executor, lambda: 1), calls)
    assert outcome.done == {1: b"done\n"}
    assert outcome.tried[0] == 4
    assert outcome.failed == {0: "4 workers were killed at it. Is there too little memory?"}


def test_a_call_that_fails_is_made_twice_and_its_reason_told_in_a_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    calls = {0: shell(f"echo x >> {log}; exit 3"), 1: shell("echo done")}
    with LocalProcesses(1, 1) as executor:
        outcome = work_through(Crew(executor, lambda: 1), calls)
    assert log.read_text() == "x\nx\n"
    assert outcome.tried[0] == 2
    assert outcome.failed[0].startswith("CalledProcessError: ")
    assert outcome.failed[0].endswith("returned non-zero exit status 3.")
    assert outcome.done == {1: b"done\n"}


def ends(call: Callable[[], object]) -> bool:
    """Whether a call comes to its end."""
    thread = Thread(target=call, daemon=True)
    thread.start()
    thread.join(PATIENCE / 4)
    return not thread.is_alive()


def no_memory(*_: object) -> NoReturn:
    raise OSError(errno.ENOMEM, "Cannot allocate memory")


def test_a_worker_that_cannot_be_started_leaves_its_place_to_another(monkeypatch) -> None:
    executor = LocalProcesses(1, 1)
    with monkeypatch.context() as without_memory:
        without_memory.setattr(pool.ProcessPoolExecutor, "_spawn_process", no_memory)
        with pytest.raises(OSError, match="Cannot allocate memory"):
            executor.submit(os.getpid)
    made: list[bytes] = []
    assert ends(lambda: made.append(executor.submit(shell("echo done")).result()))
    assert made == [b"done\n"]
    assert ends(executor.shutdown)


def test_nobody_waits_for_a_worker_that_was_killed_and_cannot_be_replaced(monkeypatch) -> None:
    executor = LocalProcesses(1, 1)
    future = executor.submit(shell("kill -9 $PPID; sleep 9"))
    monkeypatch.setattr(LocalProcesses, "_process", no_memory)
    assert isinstance(future.exception(), BrokenProcessPool)
    assert ends(executor.shutdown)


def test_a_worker_has_as_many_threads_as_it_is_given_and_ignores_ctrl_c() -> None:
    with LocalProcesses(1, 3) as executor:
        assert executor.submit(os.getenv, "OMP_NUM_THREADS").result() == "3"
        handler = executor.submit(signal.getsignal, signal.SIGINT).result()
    assert handler == signal.SIG_IGN


def test_local_workers_do_not_outlive_a_driver_that_is_killed() -> None:
    code = (
        "import os, time; from carryscope.core.pool import LocalProcesses\n"
        "if __name__ == '__main__':\n"
        "    executor = LocalProcesses(1, 1)\n"
        "    print(executor.submit(os.getpid).result(), flush=True)\n"
        "    executor.submit(time.sleep, 1000).result()\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
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
    workers: int | None, threads: int | None, shared: tuple[int, int], monkeypatch
) -> None:
    monkeypatch.setattr(pool, "cores", lambda: 5)
    assert shared_out(workers, threads) == shared


@pytest.mark.parametrize(
    ("workers", "threads", "message"),
    [(6, None, "more than the 5 cores"), (2, 3, "more than the 5 cores"), (0, None, "at least 1")],
)
def test_more_threads_than_cores_are_refused(
    workers: int, threads: int | None, message: str, monkeypatch
) -> None:
    monkeypatch.setattr(pool, "cores", lambda: 5)
    with pytest.raises(CallError, match=message):
        shared_out(workers, threads)
