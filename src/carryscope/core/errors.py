"""The two ways a command can end badly, each told in one line.

`CallError`: the caller asked for something that cannot be (exit code 2).
`WorkError`: the call was right, the work failed (exit code 1).
"""

from __future__ import annotations


class CallError(ValueError):
    """What was asked for cannot be done; the message says what would be right."""


class WorkError(RuntimeError):
    """The work could not be finished; the message says what to do about it."""
