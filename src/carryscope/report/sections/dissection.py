"""Inside the model: where heads look, which rows and edges count, what breaks without a part.

In: a dissection. Out: sections, one for each experiment that was made.
"""

from __future__ import annotations

from itertools import groupby

from carryscope.core.words import loss, percent, with_interval
from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.findings import Dissection
from carryscope.dissection.heads import HeadEffect, HeadsFinding
from carryscope.dissection.rows import RowEffect, RowsFinding
from carryscope.model.config import ModelConfig
from carryscope.report.figures import picture
from carryscope.report.paper import paper_cell, paper_text
from carryscope.report.parts import Folded, Note, Part, Section, Table, Text
from carryscope.report.words import head_name, head_roles, head_titles

PATTERNS_SHOWN = 4
"""Groups of wrong digits shown for each row, as in the paper's table."""


def attention_section(found: Dissection) -> Section | None:
    """Attention by head."""
    finding, model = found.attention, found.model
    if finding is None:
        return None
    name = "staircase" if model.heads == 3 else f"staircase.{model.heads}-heads"
    parts: list[Part] = [
        Text(finding.statement, lead=True),
        picture("staircase", found, paper_text(name, model)),
        _roles(finding, model.layers),
    ]
    parts += [_overlaps(finding)] if finding.overlaps else []
    return Section("attention", "Where the heads look", "Attention", parts)


def _roles(finding: AttentionFinding, layers: int) -> Table:
    roles = head_roles(finding)
    return Table.of(
        "roles",
        "What each head reads",
        finding.heads,
        {
            "head": lambda head: head_name(head.layer, head.head, layers),
            "reads": lambda head: roles[head.layer, head.head],
            "rows at which it does": lambda head: f"{head.rows} of {head.of}",
            "attention the column gets": lambda head: percent(head.sharpness),
        },
        "Heads are named by what they read, because their numbers mean nothing between seeds. "
        "A head has a staircase if one column gets more than half of its attention in at least "
        f"two thirds of its rows. Means over {finding.questions:,} questions.",
        text=["reads"],
    )


def _overlaps(finding: AttentionFinding) -> Folded:
    title = "Do two heads do the same?"
    table = Table.of(
        "overlaps",
        title,
        finding.overlaps,
        {
            "heads": lambda pair: f"layer {pair.layer}: H{pair.heads[0]} and H{pair.heads[1]}",
            "attention they share": lambda pair: with_interval(pair.overlap),
            "split one task": lambda pair: "yes" if pair.splitting else "no",
        },
        text=["split one task"],
    )
    return Folded(title, [table])


def rows_section(found: Dissection) -> Section | None:
    """The paper's row tables, and the tests that could have failed."""
    finding = found.rows
    if finding is None:
        return None
    parts: list[Part] = [
        Text(finding.statement, lead=True),
        picture("edges", found),
        Note(finding.remark, "The paper's row table could not have come out otherwise"),
        picture("rows", found, paper_text("rows.used", found.model)),
        _row_table(found.model, finding),
        _pattern_table(found.model, finding),
    ]
    return Section("rows", "Which rows and tokens are used", "Rows and edges", parts)


def _last_block(finding: RowsFinding, how: str) -> list[RowEffect]:
    last = max(effect.layer for effect in finding.rows)
    return [effect for effect in finding.rows if effect.layer == last and effect.how == how]


def _row_table(model: ModelConfig, finding: RowsFinding) -> Table:
    zero, mean = _last_block(finding, "zero"), _last_block(finding, "mean")
    rows = [
        [
            f"P{a.row} {a.token}",
            loss(a.loss),
            loss(b.loss),
            "important" if a.important else "not important",
            paper_cell(f"row.P{a.row}", model),
        ]
        for a, b in zip(zero, mean, strict=True)
    ]
    return Table(
        "row-table",
        "Loss without each row, in numbers",
        ["row", "set to zero", "set to its mean", "", "paper"],
        _merged(rows),
        f"The residual stream after the last block, ablated at one row; {finding.questions:,} "
        f"questions, loss without ablation {loss(finding.clean_loss)}. Important: it rises by more "
        f"than {finding.threshold}. Paper: Tab. 4, zero ablation; rows 0 to 10 together.",
        frozenset({1, 2, 4}),
        frozenset({4}),
    )


def _merged(rows: list[list[str]]) -> list[list[str]]:
    """Consecutive rows with the same values become one, as in the paper."""
    groups = [list(group) for _, group in groupby(rows, key=lambda row: row[1:])]
    return [
        group[0] if len(group) == 1 else [f"{group[0][0]} to {group[-1][0]}", *group[0][1:]]
        for group in groups
    ]


def _pattern_table(model: ModelConfig, finding: RowsFinding) -> Table:
    names = model.layout.answer_names
    groups = "wrong answers, grouped by their wrong digits"
    return Table.of(
        "row-patterns",
        "Which digits turn wrong without a row",
        [effect for effect in _last_block(finding, "zero") if effect.important],
        {
            "row": lambda effect: f"P{effect.row} {effect.token}",
            groups: lambda effect: ", ".join(
                f"{p}: {n}" for p, n in list(effect.patterns.items())[:PATTERNS_SHOWN]
            ),
            "paper, commonest group": lambda effect: paper_cell(f"pattern.P{effect.row}", model),
        },
        f"One letter for each answer token, {names[0]} to {names[-1]}: N is wrong. Set to zero. "
        "Paper: Tab. 5, about 160 questions.",
        text=[groups, "paper, commonest group"],
    )


def heads_section(found: Dissection) -> Section | None:
    """The loss without each head, by question class."""
    finding, model = found.heads, found.model
    if finding is None or found.attention is None:
        return None
    papers = {
        "With all heads": paper_text("head.none.text", model),
        "without the base-add head": paper_text("head.base-add", model),
        "the same in its text": paper_text("head.base-add.text", model),
        "without one of the others": paper_text("head.others", model),
    }
    told = [f"{what} {text}" for what, text in papers.items() if text]
    parts: list[Part] = [
        Text(finding.statement, lead=True),
        picture("heads", found),
        *([Note(f"{'; '.join(told)}.", "The paper's loss on BA questions")] if told else []),
        _head_table(finding, head_titles(found.attention, model.layers)),
        _class_table(model, finding),
    ]
    return Section("heads", "What each head is needed for", "Heads", parts)


def _head_table(finding: HeadsFinding, titles: dict[tuple[int, int], str]) -> Table:
    by_head: dict[str, dict[str, HeadEffect]] = {}
    for effect in finding.effects:
        if effect.how in (None, "mean"):
            whole = effect.layer is None or effect.head is None
            name = "whole model" if whole else titles[effect.layer or 0, effect.head or 0]
            by_head.setdefault(name, {})[effect.question_class] = effect
    kinds = list(dict.fromkeys(effect.question_class for effect in finding.effects))
    rows = [
        [name, *(_loss_and_right(effects[kind]) for kind in kinds)]
        for name, effects in by_head.items()
    ]
    return Table(
        "head-table",
        "Loss, and whole answers right, without each head",
        ["without", *kinds],
        rows,
        f"Each head set to its mean at all rows; {finding.questions:,} questions, teacher-forced. "
        "The figure has the intervals.",
        frozenset(range(1, len(kinds) + 1)),
    )


def _loss_and_right(effect: HeadEffect) -> str:
    right = percent(effect.correct.estimate) if effect.correct.count else "none"
    return f"{effect.loss.estimate:.4f}, {right}"


def _class_table(model: ModelConfig, finding: HeadsFinding) -> Table:
    """The loss of the whole model by question class, next to the paper's categories."""
    names = {"BA": "class.BA", "UC1": "class.UC1"}
    return Table.of(
        "class-table",
        "Loss by question class, all heads in place",
        [effect for effect in finding.effects if effect.how is None],
        {
            "class": lambda effect: effect.question_class,
            "loss": lambda effect: loss(effect.loss),
            "whole answers right": lambda effect: with_interval(effect.correct),
            "paper": lambda effect: paper_cell(
                names.get(effect.question_class, "class.US9"), model
            ),
        },
        "Teacher-forced. Paper: Tab. 3, final training loss; its US9 is our simple and cascade "
        "US9 together.",
    )


def nodes_section(found: Dissection) -> Section | None:
    """The paper's node maps."""
    if found.nodes is None:
        return None
    maps = {"nodes-positions": 22, "nodes-fails": 23}
    maps |= {"nodes-attention": 24} if found.attention else {}
    maps |= {"nodes-impact": 25}
    maps |= {"nodes-purpose": 26} if found.subtasks else {}
    where = paper_text("rows.used.reuse", found.model)
    parts: list[Part] = [
        Text(found.nodes.statement, lead=True),
        *([Note(f"The paper's useful positions: {where}.")] if where else []),
        *(picture(name, found, f"its Fig. {n}, of the signed model") for name, n in maps.items()),
        *([Text(found.subtasks.statement)] if found.subtasks else []),
    ]
    return Section("nodes", "What each node is for", "Node maps", parts)
