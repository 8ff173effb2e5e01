"""Options that several commands have, with the words of their help."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token


def whole_number(_: Any, tokens: Sequence[Token]) -> int:
    """A whole number. Nothing is rounded to one."""
    text = tokens[0].value
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", text):
        raise ValueError(f"it must be a whole number. Got '{text}'.")
    return int(text)


WHOLE = Parameter(converter=whole_number)
"""For options that are whole numbers."""


RunName = Annotated[str, Parameter(help="A run directory or the name of a shipped model.")]
AnyRun = Annotated[
    str | None,
    Parameter(help="A run directory or the name of a shipped model. Default: fast-5."),
]
Threads = Annotated[
    int | None,
    WHOLE,
    Parameter(help="Processor threads. Default: all cores. Fewer are faster on a busy machine."),
]
Cluster = Annotated[
    str | None,
    Parameter(
        help="Address of a dask scheduler (tcp://host:8786) whose workers do the work instead. "
        "They run code: use only a cluster you trust. They must have this version of carryscope."
    ),
]
OutFile = Annotated[
    Path | None,
    Parameter(help="The file to write. Default: in the run directory, or here for a shipped one."),
]
Count = Annotated[int, WHOLE]
OptionalCount = Annotated[int | None, WHOLE]
QuestionSeed = Annotated[int, WHOLE, Parameter(help="Seed of the questions.")]
Again = Annotated[bool, Parameter(help="Make the finding again, even if it is there.")]
Verbose = Annotated[bool, Parameter(help="Show all tables.")]
Open = Annotated[bool, Parameter(help="Open the page in a browser.")]
Json = Annotated[bool, Parameter(help="Print the result as JSON.")]
