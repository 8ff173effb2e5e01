"""`carryscope ask`: a sum and each digit of the model's answer, or many sums in a table."""

from __future__ import annotations

import os.path
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, convert

from carryscope.cli.console import opened, print_json, screen
from carryscope.cli.options import Json
from carryscope.core.errors import CallError, command
from carryscope.core.storage import read_bytes
from carryscope.model.files import check_version
from carryscope.shipped import run_directory

if TYPE_CHECKING:
    from carryscope.dissection.asking import Answer

STANDARD_INPUT = "-"
"""The word that stands for sums on standard input."""


def ask(
    *words: Annotated[str, Parameter(allow_leading_hyphen=True, converter=convert)],
    file: Path | None = None,
    without: str | None = None,
    csv: bool = False,
    json: Json = False,
) -> None:
    """Ask a model a sum or a difference and see each digit of its answer.

    Call it as `carryscope ask [RUN] "445+555"`, or "445-555" if the model subtracts. For each
    wrong digit a sentence says why: where the carry is made and which columns the heads read. For
    each digit of the answer it shows the model's choice and its probability, the truth, the
    digit's task (BA no carry arrives, UC1 a carry arrives, US9 it arrives at a column that sums to
    9; in subtraction MD, UB, UZ), how many columns of nines lie below, and which tokens each head
    reads. Several sums are answered in one table; `-` reads them from standard input, one on a
    line.

    Parameters
    ----------
    words
        A run directory or the name of a shipped model (default: fast-5), and one sum or more.
    file
        A file with one sum on each line.
    without
        Parts of the model to take away, with commas: H1, MLP.
    csv
        Print question, answer, truth and whether it is right, as CSV.
    """
    run, sums = _split(words, file)
    given = _answers(run_directory(run), sums, without)
    if csv:
        from carryscope.report.tables import as_csv

        names = ("question", "answer", "truth", "correct")
        sys.stdout.write(as_csv([{name: getattr(one, name) for name in names} for one in given]))
    elif json:
        print_json(given[0] if len(given) == 1 and not file else given)
    else:
        _show(given)


def _answers(directory: Path, sums: Sequence[str], without: str | None) -> list[Answer]:
    """What the model says; torch is loaded only to take parts of it away."""
    from carryscope.dissection.asking import answers, answers_without
    from carryscope.model.plain import PlainModel

    if not without:
        return answers(PlainModel.read(directory), sums)
    parts = [part.strip() for part in without.split(",")]
    return answers_without(opened(str(directory)).model(), sums, parts)


def _split(words: Sequence[str], file: Path | None) -> tuple[str | None, list[str]]:
    """The run that is named, if any, and the sums."""
    for word in words:
        if word.startswith("--"):
            raise CallError(f"There is no option {word}. See {command('ask', '--help')}.")
    run = words[0] if words and _names_a_run(words[0]) else None
    sums = list(words[1:] if run else words)
    if "+" in sums or (STANDARD_INPUT in sums and any(word.isdigit() for word in sums)):
        raise CallError(f"Put each sum in quotes: {example(run)}. Got {len(words)} words.")
    if file is not None:
        sums += _lines(read_bytes(file, pipes=True).decode(errors="replace"))
    if STANDARD_INPUT in sums:
        at = sums.index(STANDARD_INPUT)
        sums[at : at + 1] = _lines(sys.stdin.read())
    if not sums:
        if run and not run_directory(run).exists():
            check_version(run_directory(run))  # a typo is no run to ask
        raise CallError(f"Type a sum, optionally after a run: {example(run)}.")
    return run, sums


def example(run: str | None) -> str:
    """A call that works, with the sum in quotes."""
    return f'{command("ask", *([run] if run else []))} "445+555"'


def _names_a_run(word: str) -> bool:
    """Whether a word is a run directory or a shipped model, and not (a typo of) a sum."""
    if word in ("", STANDARD_INPUT):
        return False
    shipped = run_directory(word) != Path(word)
    there = os.path.isdir(word)  # noqa: PTH112 - a sum may be too long for pathlib
    return shipped or there or not any(sign in word for sign in "+0123456789")


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _show(given: Sequence[Answer]) -> None:
    from carryscope.report.findings import parts_of
    from carryscope.report.sections.answer import answer_table
    from carryscope.report.terminal import show

    show(parts_of(given[0]) if len(given) == 1 else [answer_table(given)], screen)
