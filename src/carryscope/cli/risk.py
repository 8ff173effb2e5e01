"""`carryscope risk`: how often a model fails over all questions, and where."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from carryscope.cli.console import print_json, print_plain, screen, stop_on_signal
from carryscope.cli.progress import share_bar

if TYPE_CHECKING:
    from carryscope.stages import Run
    from carryscope.verification.risk_finding import CaseRisk, RiskFinding
    from carryscope.verification.trial import Tally


def risk(
    run: Path,
    /,
    *,
    width: float | None = None,
    budget: int | None = None,
    seed: int = 0,
    again: bool = False,
    threads: int | None = None,
    json: bool = False,
) -> None:
    """Measure how often a model fails over all questions, and where.

    Questions are drawn pattern by pattern, most where the uncertainty is, and put together
    with each pattern's exact probability; up to three digits every question is asked. Ctrl-C
    ends the sampling: the numbers so far are good, with a wider interval. Writes
    findings/risk.json.

    Parameters
    ----------
    run
        The run directory.
    width
        Stop when the 95 % interval is this wide, relative to the estimate. Default: 0.05.
    budget
        Stop after so many questions. Default: 1,000,000.
    seed
        Seed of the questions.
    again
        Measure it again, even if it is known as precisely.
    threads
        Processor threads. Default: all cores; fewer are faster if others use them too.
    json
        Print the findings as JSON.
    """
    from carryscope.stages import Run
    from carryscope.verification.risk import RISK_FILE

    found = risk_with_progress(
        Run(run), width=width, budget=budget, seed=seed, again=again, threads=threads
    )
    if json:
        print_json(found)
    else:
        show_risk(found)
        print_plain(run / RISK_FILE)


def risk_with_progress(
    run: Run,
    *,
    width: float | None = None,
    budget: int | None = None,
    seed: int = 0,
    again: bool = False,
    threads: int | None = None,
) -> RiskFinding:
    """Measure with a bar; Ctrl-C ends the sampling and keeps what was measured."""
    from carryscope.model.process import keep_freed_memory, use_threads
    from carryscope.verification.risk import WIDTH

    use_threads(threads)
    keep_freed_memory()
    wanted = WIDTH if width is None else width
    with stop_on_signal() as stopped, share_bar("risk") as show:

        def on_round(tally: Tally) -> bool:
            show(*_told(tally, wanted))
            return stopped()

        return run.measure_risk(
            seed=seed, width=width, budget=budget, again=again, on_round=on_round
        )


def _told(tally: Tally, width: float) -> tuple[float, str]:
    """How far it is, how many questions were asked, and how wide the interval still is."""
    rate = tally.failure
    wide = f"{rate.relative_width:.0%} wide" if rate.estimate else "no failure so far"
    done = min(1.0, (width / rate.relative_width) ** 2) if rate.estimate else 0.0
    return done, f"{tally.evaluated:,} questions, {rate.estimate:.4%} fail, {wide}"


def show_risk(found: RiskFinding) -> None:
    """The risk for a person: by look-ahead, the likeliest failures, the verdict."""
    screen.print(_case_table(found))
    if found.failures:
        screen.print(_failure_table(found))
    naive = found.naive
    if not found.exhaustive and found.teacher_forced.estimate:
        print_plain(
            f"A test of {naive.questions:,} uniform questions would say {naive.low:.3%} to "
            f"{naive.high:.3%}. For an interval as narrow as this it would need "
            f"{naive.for_our_width:,}; {found.evaluated:,} were asked.\n"
        )
    print_plain(f"{found.verdict}\n")


def _case_table(found: RiskFinding) -> Table:
    """The paper's central finding: wrong digits by how many nines stand below them."""
    names = [digit.digit for digit in found.digits]
    cases = {(c.depth, c.carrying, c.digit): c for c in found.cases}
    names = [name for name in names if any(key[2] == name for key in cases)]
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.title = "Wrong digits, by how many columns of nines stand below (teacher-forced)"
    table.add_column("nines", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for depth, carrying in sorted({key[:2] for key in cases}, key=lambda k: (k[0], not k[1])):
        line = [_wrong(cases.get((depth, carrying, name))) for name in names]
        table.add_row(f"{depth} {'carrying' if carrying else 'quiet'}", *line)
    return table


def _wrong(case: CaseRisk | None) -> str:
    if case is None:
        return ""
    if case.wrong.estimate == 0:
        return f"[dim]<{case.wrong.high:.2%}[/]" if case.wrong.high else "0"
    colour = "red" if case.wrong.low > 0.05 else "yellow" if case.wrong.low > 0.001 else "default"
    return f"[{colour}]{case.wrong.estimate:.2%}[/]"


def _failure_table(found: RiskFinding) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.title = "The likeliest failures (K kills a carry, P passes it on, G makes one)"
    table.add_column("pattern")
    table.add_column("share of failures", justify="right")
    table.add_column("fails", justify="right")
    table.add_column("simplest")
    for failure in found.failures:
        table.add_row(
            failure.stratum,
            f"{failure.share_of_failures:.1%}",
            f"{failure.rate:.0%}",
            failure.question,
        )
    return table
