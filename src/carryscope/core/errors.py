"""The two ways a command can end badly, each in one line that says what to do.

`CallError`: the caller asked for something that cannot be done (exit code 2).
`WorkError`: the call was right, the work failed (exit code 1).
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from shutil import which

OTHERS = ("paper", "benchmarks")
"""Programs of the repository that use the package."""


class CallError(ValueError):
    """The request cannot be met. The message says what would be right."""


class WorkError(RuntimeError):
    """The work could not be finished. The message says what to do about it."""


def require(holds: bool, what: str, got: object) -> None:
    """Refuse what does not hold: "digits must be between 1 and 20. Got 0."."""
    if not holds:
        raise CallError(f"{what}. Got {got}.")


def command(*words: object) -> str:
    """A carryscope command that can be pasted where the user stands: `carryscope risk runs/a`."""
    return " ".join([program(), *(shlex.quote(str(word)) for word in words)])


def program() -> str:
    """How this program is called here: its name if the shell finds it, else its path."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py" and called.parent.name in ("carryscope", *OTHERS):
        return f"python -m {called.parent.name}"
    return str(called) if called.name == "carryscope" and not which("carryscope") else "carryscope"
