"""Commands in processes of their own, to be killed or stopped: copies of this one.

A fork has torch loaded already, which takes a new process seconds. Where a new process is what is
tested, it is started with subprocess.
"""

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from waiting import PATIENCE, wait_for

import carryscope.api  # noqa: F401  loaded before the fork, not after each
from carryscope.cli.main import run


class Forked:
    """A carryscope command under way. What it prints goes to files in a directory."""

    def __init__(
        self, place: Path, *arguments: object, first: Callable[[], object] = lambda: None
    ) -> None:
        self._printed = place / f"printed-{time.monotonic_ns()}"
        self.code: int | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # this process may have threads; none is in the way
            self.id = os.fork()
        if not self.id:
            os._exit(self._live([str(word) for word in arguments], first))

    def _live(self, arguments: list[str], first: Callable[[], object]) -> int:
        """What the copy does."""
        code = 70
        try:
            os.setsid()
            file = os.open(self._printed, os.O_WRONLY | os.O_CREAT)
            os.dup2(file, 1)
            os.dup2(file, 2)
            sys.stdout = os.fdopen(1, "w", buffering=1)
            sys.stderr = os.fdopen(2, "w", buffering=1)
            sys.argv = ["carryscope", *arguments]
            first()
            code = run(arguments)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            return code  # noqa: B012

    @property
    def printed(self) -> str:
        return self._printed.read_text() if self._printed.exists() else ""

    @property
    def last_line(self) -> str:
        return self.printed.strip().splitlines()[-1]

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


__all__ = ["PATIENCE", "Forked"]
