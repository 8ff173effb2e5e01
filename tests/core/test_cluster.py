"""Workers of a real dask cluster: what is done again, and what is refused in one line."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest
from waiting import PATIENCE

from carryscope.core import workers as dask_part
from carryscope.core.errors import CallError, WorkError
from carryscope.core.workers import cluster_workers


@pytest.fixture
def cluster() -> Iterator[str]:
    """A dask scheduler on loopback with two worker processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0"
    ) as started:
        yield started.scheduler_address


def deadly_or_failing(log: Path, name: str) -> str:
    """A call that kills its first worker, one that fails, or one that is just done."""
    if name == "done":
        return name
    with log.open("a") as file:
        file.write(name[0])
    if name == "fails":
        raise OSError(28, "No space left on device")
    if log.read_text().count("d") == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return name


def test_a_cluster_that_loses_a_worker_makes_its_call_again(cluster: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with cluster_workers(cluster, shared=log) as workers:
        assert workers.room() == 2
        calls = {0: "deadly", 1: "fails", 2: "done"}
        *_, outcome = workers.as_they_finish(deadly_or_failing, calls)
    assert sorted(log.read_text()) == ["d", "d", "f", "f"]
    assert outcome.done == {0: "deadly", 2: "done"}
    assert outcome.tried == {0: 1, 1: 2, 2: 1}
    assert outcome.failed == {1: "OSError: [Errno 28] No space left on device"}


@pytest.fixture
def scheduler() -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A dask scheduler and one worker, in processes of their own: without a nanny."""
    distributed = pytest.importorskip("distributed")
    address = f"tcp://127.0.0.1:{free_port()}"
    processes = [start("dask_scheduler", "--host", address), start_worker(address)]
    with distributed.Client(address, timeout=PATIENCE) as client:
        client.wait_for_workers(1, timeout=PATIENCE)
    yield address, processes
    for process in processes:
        process.kill()
        process.communicate()


def start_worker(address: str) -> subprocess.Popen[bytes]:
    return start("dask_worker", address, "--no-nanny", "--nthreads", "1")


def start(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            f"distributed.cli.{program}",
            "--dashboard-address",
            ":0",
            *arguments,
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
    )


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_the_only_dask_worker_may_be_lost_and_another_come_and_at_last_the_scheduler_go(
    scheduler: tuple[str, list[subprocess.Popen[bytes]]],
) -> None:
    address, processes = scheduler
    with cluster_workers(address, shared="shared") as workers:
        found = workers.in_order(slow_shared, range(100))
        assert next(pair for pair in found if pair is not None) == (0, "shared")
        processes[1].kill()
        processes.append(start_worker(address))
        assert next(pair for pair in found if pair is not None) == (1, "shared")
        processes[0].kill()
        with pytest.raises(WorkError, match="The dask scheduler is gone"):
            list(found)


def slow_shared(shared: str, _: int) -> str:
    time.sleep(0.3)
    return shared


CUT_OFF = (2**19).to_bytes(8, "little") + b"the beginning of a greeting"


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 400 Bad Request\r\n\r\n", CUT_OFF])
def test_an_address_that_is_not_a_dask_scheduler_is_refused_in_one_line(
    answer: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_part, "CONNECT_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=answer_each, args=(server, answer), daemon=True).start()
        began = time.monotonic()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(CallError, match="No dask scheduler answers at") as raised:
            cluster_workers(address).__enter__()
    assert "\n" not in str(raised.value)
    assert time.monotonic() - began < 10


def answer_each(server: socket.socket, answer: bytes | None) -> None:
    """Take every connection, and say this; then nothing more."""
    with ExitStack() as taken:
        while True:
            try:
                connection = taken.enter_context(server.accept()[0])
            except OSError:
                return
            if answer:
                connection.sendall(answer)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere", "tcp://no.such.host:1"])
def test_an_address_where_nobody_answers_is_refused_in_one_line(address: str) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(CallError, match=f"No dask scheduler answers at {address}"):
        cluster_workers(address).__enter__()
