"""Commands in processes of their own, to be killed or stopped: copies of this one.

A fork has torch loaded already, which takes a new process seconds. Where a new process is what is
tested, it is started with subprocess.
"""

import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from waiting import wait_for

import carryscope.api  # noqa: F401  loaded before the fork, not after each
from carryscope.cli.main import run


class Forked:
    """A carryscope command under way. What it prints goes to files in a directory."""

    def __init__(
        self, place: Path, *arguments: object, first: Callable[[], object] = lambda: None
    ) -> None:
        self._files = [place / f"{name}-{time.monotonic_ns()}" for name in ("out", "err")]
        self.code: int | None = None
        for file in self._files:
            file.touch()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # this process may have threads; none is in the way
            self.id = os.fork()
        if not self.id:
            self._live([str(word) for word in arguments], first)

    def _live(self, arguments: list[str], first: Callable[[], object]) -> None:
        """What the copy does. It never returns to the tests."""
        code = 70
        try:
            os.setsid()
            for number, file in enumerate(self._files, start=1):
                os.dup2(os.open(file, os.O_WRONLY), number)
            sys.stdout, sys.stderr = (os.fdopen(n, "w", buffering=1) for n in (1, 2))
            sys.argv = ["carryscope", *arguments]
            first()
            code = run(arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    @property
    def out(self) -> str:
        return self._files[0].read_text()

    @property
    def err(self) -> str:
        return self._files[1].read_text()

    @property
    def last_line(self) -> str:
        return self.err.strip().splitlines()[-1]

    def ended(self) -> bool:
        if self.code is None:
            found, status = os.waitpid(self.id, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if found else None
        return self.code is not None

    def wait(self) -> int:
        wait_for(self.ended)
        assert self.code is not None
        return self.code

    def send(self, number: int) -> int:
        """Send a signal, and wait for the end."""
        os.kill(self.id, number)
        return self.wait()

    def kill(self) -> None:
        assert self.send(signal.SIGKILL) == -signal.SIGKILL
