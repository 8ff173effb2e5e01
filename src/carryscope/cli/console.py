"""Where commands print: results on one stream, progress and remarks on the other."""

from __future__ import annotations

import json as standard_json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console

from carryscope.core.words import visible

if TYPE_CHECKING:
    from carryscope.run import Run

screen = Console(highlight=False)
"""Results."""

log = Console(stderr=True, highlight=False)
"""Progress and remarks: never mixed into results."""


def opened(run: str | None) -> Run:
    """The run that a person named: a directory, a shipped model, or by default fast-5."""
    from carryscope.api import load

    return load(run)


def print_json(record: Any) -> None:
    """A record as JSON on standard output."""
    try:
        content = msgspec.json.format(msgspec.json.encode(record), indent=2).decode()
    except UnicodeEncodeError:  # a path that is not UTF-8, which msgspec cannot write
        content = standard_json.dumps(msgspec.to_builtins(record), indent=2)
    sys.stdout.write(content + "\n")


def print_plain(text: object, *, to: Console = screen) -> None:
    """A line of plain text. A path may hold what looks like markup, and must not be wrapped."""
    to.print(visible(str(text)), markup=False, soft_wrap=True)


def print_file(path: Path, *, json: bool, open: bool = False, **about: object) -> None:
    """A file that was written, and opened in a browser if that is wished."""
    print_json({"path": str(path), **about}) if json else print_plain(path)
    if open:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())


def print_finding(finding: Any, path: Path, *, json: bool, verbose: bool = False) -> None:
    """A finding for a person, with the file that holds it; or as JSON for a program.

    The log of a certificate is in the file only.
    """
    if json:
        print_json(finding.without_log() if hasattr(finding, "without_log") else finding)
        return
    from carryscope.report.findings import parts_of
    from carryscope.report.terminal import show

    show(parts_of(finding), screen, verbose=verbose)
    print_plain(path)
