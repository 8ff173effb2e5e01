"""What a person typed becomes a value here; and the options that several commands have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token, convert

from carryscope.core.errors import CallError


def converted(kind: Any, tokens: Sequence[Token]) -> Any:
    """The value of an option. It must have one, nothing is rounded, and no number is NaN."""
    for token in tokens:
        text = token.value
        if not text.strip():
            raise CallError(f"{'it' if token.keyword else 'A name or a sum'} must not be empty.")
        if kind in (int, int | None) and not re.fullmatch(r"[+-]?[0-9]{1,20}", text):
            raise CallError(f"it must be a whole number. Got '{text}'.")
        if kind in (float, float | None) and text.strip("+-").lower() == "nan":
            raise CallError("it must be a number. Got 'nan'.")
    return convert(kind, tokens)


RunName = Annotated[str, Parameter(help="A run directory or the name of a shipped model.")]
AnyRun = Annotated[
    str | None,
    Parameter(help="A run directory or the name of a shipped model. Default: fast-5."),
]
Threads = Annotated[
    int | None,
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
QuestionSeed = Annotated[int, Parameter(help="Seed of the questions.")]
Again = Annotated[bool, Parameter(help="Make the finding again, even if it is there.")]
Verbose = Annotated[bool, Parameter(help="Show all tables.")]
Open = Annotated[bool, Parameter(help="Open the page in a browser.")]
Json = Annotated[bool, Parameter(help="Print the result as JSON.")]
