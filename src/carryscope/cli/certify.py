"""`carryscope certify`: proved bounds on a model's accuracy over every question."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from carryscope.cli.console import print_json, print_plain, program, screen, stop_on_signal
from carryscope.cli.progress import share_bar
from carryscope.core.errors import CallError

if TYPE_CHECKING:
    from carryscope.certificate.certify import Progress as Proved
    from carryscope.certificate.finding import Certificate
    from carryscope.stages import Run

MOST_IN_FULL = 10**14
"""Numbers of questions are told in full up to here: three of them fit on a line."""

SHOWN_FAMILIES = 8
"""Families of questions in the printed table; the file has them all."""


def certify(
    run: Path,
    /,
    *,
    until: float | None = None,
    minutes: float | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    check: bool = False,
    again: bool = False,
    json: bool = False,
) -> None:
    """Prove bounds on a model's accuracy over every question.

    Questions are put into boxes, and each box is proved right, proved wrong, or split; the
    questions in proved boxes are counted exactly. The result is sound whenever it is stopped:
    Ctrl-C keeps what is proved, and a second call goes on from there. For models of one layer.
    Writes findings/certificate.json, which `--check` verifies without trusting the search that
    made it. The mathematics: docs/certificate.md.

    Parameters
    ----------
    run
        The run directory.
    until
        Stop when this share of all questions is decided. Default: 0.99.
    minutes
        Stop after so many minutes. Default: 60.
    workers
        Local processes. Default: one for each core.
    cluster
        Address of a dask scheduler (tcp://host:8786) whose workers are to do the work instead.
    check
        Verify the certificate that is there, bound by bound, and prove nothing new.
    again
        Start anew, even if something is proved already.
    json
        Print the certificate as JSON, without its log of boxes.
    """
    from carryscope.certificate.finding import CERTIFICATE_FILE
    from carryscope.stages import Run

    shelf = Run(run)
    if check:
        _check(shelf, workers=workers, cluster=cluster, json=json)
        return
    found = certify_with_progress(
        shelf, until=until, minutes=minutes, workers=workers, cluster=cluster, again=again
    )
    if json:
        print_json(without_log(found))
    else:
        show_certificate(found)
        print_plain(run / CERTIFICATE_FILE)


def certify_with_progress(
    run: Run,
    *,
    until: float | None = None,
    minutes: float | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    again: bool = False,
) -> Certificate:
    """Prove with a bar; Ctrl-C ends the search and keeps what is proved."""
    with stop_on_signal() as stopped, share_bar("certify") as show:

        def on_progress(proved: Proved) -> bool:
            told = (
                f"right {proved.right:.3%}, wrong {proved.wrong:.3%}, undecided "
                f"{proved.undecided:.3%} (of a digit {1 - proved.rows:.1%}), {proved.boxes:,} boxes"
            )
            show(proved.rows, told)
            return stopped()

        return run.certify(
            until=until,
            minutes=minutes,
            workers=workers,
            cluster=cluster,
            again=again,
            on_progress=on_progress,
        )


def _check(run: Run, *, workers: int | None, cluster: str | None, json: bool) -> None:
    from carryscope.certificate.checking import check_certificate
    from carryscope.certificate.finding import CERTIFICATE_FILE, read_certificate

    run.model()  # without weights there is nothing to check, whatever else is there
    if not (run.directory / CERTIFICATE_FILE).exists():
        raise CallError(
            f"There is no certificate in {run.directory}. Run: {program()} certify {run.directory}"
        )
    certificate = read_certificate(run.directory)
    with share_bar("check") as show:
        show(0.0, "counting questions")

        def on_progress(done: int, total: int) -> None:
            show(done / total, f"{done:,} of {total:,} boxes")

        checked = check_certificate(
            run.model(),
            certificate,
            workers=(os.cpu_count() or 1) if workers is None else workers,
            cluster=cluster,
            on_progress=on_progress,
        )
    if json:
        print_json(checked._asdict() | {"holds": True})
        return
    print_plain(
        f"The certificate holds: {checked.claims:,} bounds in {checked.boxes:,} boxes were "
        f"computed anew.\n{certificate.statement}"
    )


def without_log(found: Certificate) -> dict[str, object]:
    """The certificate for a reader: all but the log of boxes."""
    import msgspec

    told: dict[str, object] = msgspec.to_builtins(found)
    del told["log"]
    return told


def show_certificate(found: Certificate) -> None:
    """The certificate for a person: by digit, the largest undecided and wrong families."""
    screen.print(_digit_table(found))
    for title, families in (
        ("Proved wrong, largest first", found.wrong_families),
        ("Undecided, largest first", found.undecided_families),
    ):
        if families:
            table = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
            for name in ("digit", "columns", "questions", "for example"):
                table.add_column(name, justify="right" if name == "questions" else "left")
            for family in families[:SHOWN_FAMILIES]:
                table.add_row(
                    family.digit, family.states, f"{int(family.questions):,}", family.example
                )
            screen.print(table)
    print_plain(f"{found.statement}\n")


def _digit_table(found: Certificate) -> Table:
    table = Table(title="Proved, token by token", box=SIMPLE_HEAD, title_justify="left")
    for name in ("", "right", "wrong", "undecided", "boxes"):
        table.add_column(name, justify="right" if name else "left")
    for digit in found.per_digit:
        right, wrong = (_counted(n, found) for n in (digit.proved_right, digit.proved_wrong))
        undecided = _counted(digit.undecided, found, at_most=True)
        table.add_row(digit.digit, right, wrong, undecided, f"{digit.boxes:,}")
    return table


def _counted(questions: str, found: Certificate, *, at_most: bool = False) -> str:
    """A number of questions in full, or as a share where a line would not hold it."""
    from carryscope.core.words import counted_share

    if int(found.questions) <= MOST_IN_FULL:
        return f"{int(questions):,}"
    return counted_share(int(questions), int(found.questions), at_most=at_most)
