"""`carryscope dissect`: how a model adds, by every experiment of the paper and some more."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from carryscope.cli.console import print_json, print_plain, program, screen, stop_on_signal
from carryscope.cli.progress import stoppable_bar

if TYPE_CHECKING:
    from carryscope.dissection.findings import Dissection
    from carryscope.stages import Run


def dissect(
    run: Path,
    /,
    *,
    only: str | None = None,
    seed: int | None = None,
    again: bool = False,
    threads: int | None = None,
    json: bool = False,
) -> None:
    """Find out how a model adds: what each part of it carries.

    Writes findings/dissection.json in the run, and the nodes in the format of the paper's
    authors (behaviors.json, features.json). What was found before is kept; an interrupted
    call goes on where it stopped.

    Parameters
    ----------
    run
        The run directory.
    only
        Parts to do, with commas: attention, rows, heads, nodes, subtasks, mlp, first_digits,
        story. Default: all of them.
    seed
        Seed of the questions that are asked. Default: that of the findings there are, or 0.
    again
        Do it all again, even what was found before.
    threads
        Processor threads. Default: all cores; fewer are faster if others use them too.
    json
        Print the findings as JSON.
    """
    from carryscope.dissection.findings import DISSECTION_FILE
    from carryscope.stages import Run

    found = dissect_with_progress(Run(run), only=only, seed=seed, again=again, threads=threads)
    if json:
        print_json(found)
    else:
        show_dissection(found)
        print_plain(run / DISSECTION_FILE)


def dissect_with_progress(
    run: Run,
    *,
    only: str | None = None,
    seed: int | None = None,
    again: bool = False,
    threads: int | None = None,
) -> Dissection:
    """Dissect with a bar for each part; Ctrl-C keeps the parts that are done."""
    from carryscope.model.process import keep_freed_memory, use_threads

    use_threads(threads)
    keep_freed_memory()
    where = shlex.quote(str(run.directory))
    with stop_on_signal() as stopped:
        bar = stoppable_bar(
            stopped,
            f"Stopped. The parts that were done are kept. Go on with: {program()} dissect {where}",
        )
        return run.dissect(only, seed=seed, again=again, bar=bar)


def show_dissection(found: Dissection) -> None:
    """The findings for a person: the node maps as one table, then a sentence for each part."""
    if found.nodes:
        screen.print(_node_table(found))
    if found.mlp:
        screen.print(_key_table(found))
    for part, statement in found.statements().items():
        screen.print(f"[bold]{part.replace('_', ' ')}[/]  {statement}\n", highlight=False)


def _node_table(found: Dissection) -> Table:
    """One line per row of the model, one column per part: purpose, and share that fails."""
    assert found.nodes is not None
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.title = "What each node carries, and the share of questions that fail without it"
    table.add_column("row", no_wrap=True)
    table.add_column("for", no_wrap=True)
    layout = found.model.layout
    predicts = dict(zip(layout.answer_rows, layout.answer_names, strict=True))
    parts = sorted({(node.layer, node.head is None, node.head or 0) for node in found.nodes.nodes})
    for layer, is_mlp, head in parts:
        name = "MLP" if is_mlp else f"H{head}"
        table.add_column(f"L{layer} {name}" if found.model.layers > 1 else name)
    cells = {(n.row, (n.layer, n.head is None, n.head or 0)): n for n in found.nodes.nodes}
    last = found.model.layers - 1
    for row in sorted({node.row for node in found.nodes.nodes}):
        line = []
        for part in parts:
            node = cells.get((row, part))
            if node is None or not node.useful:
                line.append("" if node is None else "[dim]unused[/]")
                continue
            purpose = found.subtasks.purpose_of(node.node) if found.subtasks else ""
            if node.layer == last:  # its only digit stands at the start of the line
                purpose = purpose.replace(f"{predicts[row]}.", "")
            line.append(f"{purpose} [dim]{node.fails.estimate:.0%}[/]".strip())
        table.add_row(f"P{row} {layout.position_names[row]}", predicts.get(row, ""), *line)
    return table


def _key_table(found: Dissection) -> Table:
    """The paper's 60 keys, digit by digit."""
    assert found.mlp is not None
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.title = "The MLP's keys: attention output swapped between questions"
    told = (
        "digit",
        "keys",
        "same key stays",
        "other key follows",
        "alike, apart",
        "no MLP",
    )
    for column in told:
        table.add_column(column, justify="right", no_wrap=True)
    for test in found.mlp.digits:
        table.add_row(
            test.digit,
            str(test.keys),
            f"{test.kept.estimate:.1%}",
            f"{test.follows.estimate:.1%}",
            f"{test.apart_out} of {test.alike}",
            f"{test.without_mlp['mean'].estimate:.0%}",
        )
    return table
