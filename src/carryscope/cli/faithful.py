"""`carryscope faithful`: is a stated algorithm the one the model runs?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from carryscope.cli.console import print_json, print_plain, screen, stop_on_signal
from carryscope.cli.progress import stoppable_bar

if TYPE_CHECKING:
    from carryscope.stages import Run
    from carryscope.verification.agreement import AlgorithmAgreement
    from carryscope.verification.faithfulness import FaithfulnessFinding
    from carryscope.verification.scrubbing import Scrub


def faithful(
    run: Path,
    /,
    *,
    algorithm: str | None = None,
    seed: int = 0,
    again: bool = False,
    threads: int | None = None,
    json: bool = False,
) -> None:
    """Ask whether a stated algorithm is the one a model runs, on right answers and wrong ones.

    Compares the model with exact addition, the paper's Algorithm 1, its relatives that look
    more or fewer columns down, and (if the run was dissected) what the dissection says. Then
    it resamples, inside the model, all that an algorithm calls irrelevant, and sees how many
    answers stay. Writes findings/faithfulness.json.

    An algorithm of your own is a function from columns to answer digits in a Python file,
    given as --algorithm file.py:name. The file is run, so use only files you trust:

        def no_carries(columns):  # columns.sums has the shape (questions, columns), units first
            import numpy as np
            return np.pad(columns.sums % 10, ((0, 0), (0, 1)))

    Parameters
    ----------
    run
        The run directory.
    algorithm
        An algorithm of your own to compare with: file.py:name.
    seed
        Seed of the questions.
    again
        Do it again, even if it is known.
    threads
        Processor threads. Default: all cores; fewer are faster if others use them too.
    json
        Print the findings as JSON.
    """
    from carryscope.stages import Run
    from carryscope.verification.faithfulness import FAITHFULNESS_FILE

    found = faithful_with_progress(
        Run(run), algorithm=algorithm, seed=seed, again=again, threads=threads
    )
    if json:
        print_json(found)
    else:
        show_faithfulness(found)
        print_plain(run / FAITHFULNESS_FILE)


def faithful_with_progress(
    run: Run,
    *,
    algorithm: str | None = None,
    seed: int = 0,
    again: bool = False,
    threads: int | None = None,
) -> FaithfulnessFinding:
    """Compare with a bar."""
    from carryscope.model.process import keep_freed_memory, use_threads

    use_threads(threads)
    keep_freed_memory()
    with stop_on_signal() as stopped:
        bar = stoppable_bar(stopped, "Stopped. Nothing was changed; it takes under a minute.")
        return run.compare(algorithm, seed=seed, again=again, bar=bar)


def show_faithfulness(found: FaithfulnessFinding) -> None:
    """The comparison for a person."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.title = "The model against stated algorithms"
    table.add_column("algorithm")
    headings = ("agrees", "its errors too", "with the digit", "columns", "keys", "heads")
    for heading in headings:
        table.add_column(heading, justify="right")
    inside = {scrubbed.name: scrubbed for scrubbed in found.inside}
    for one in found.agreement.algorithms:
        scrubbed = inside.get(one.name)
        cells = [_kept(getattr(scrubbed, part, None)) for part in ("tokens", "joint", "heads")]
        best = one.name == found.agreement.best
        name = f"{escape(one.name)} (wrong on purpose)" if one.control else escape(one.name)
        table.add_row(f"[bold]{name}[/]" if best else name, *_behaviour(one), *cells)
    table.caption = (
        "agrees: whole answers, over all questions. its errors too: of the model's wrong answers, "
        "those the algorithm gets wrong, and with the same digits. columns, keys, heads: answers "
        "that stay when all that the algorithm calls irrelevant is resampled."
    )
    screen.print(table)
    print_plain(f"{found.verdict}\n")


def _behaviour(one: AlgorithmAgreement) -> list[str]:
    answer = one.answer
    errors = [share.estimate if share else None for share in (answer.also_wrong, answer.same_wrong)]
    return [
        f"{answer.agreement.estimate:.2%}",
        *("" if share is None else f"{share:.0%}" for share in errors),
    ]


def _kept(scrub: Scrub | None) -> str:
    return "" if scrub is None else f"{scrub.overall.estimate:.1%}"
