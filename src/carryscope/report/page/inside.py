"""Inside the model: where heads look, which rows and edges count, what breaks without a part.

In: the shelf of a run. Out: sections, one for each experiment that was made.
"""

from __future__ import annotations

from itertools import groupby

from carryscope.core.evidence import Share
from carryscope.core.words import loss, percent, with_interval
from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.heads import HeadEffect, HeadsFinding
from carryscope.dissection.rows import RowEffect, RowsFinding
from carryscope.report.catalogue import figure
from carryscope.report.drawing import head_titles
from carryscope.report.page.parts import Folded, Note, Part, Picture, Section, Table, Text
from carryscope.report.page.words import paper_cell, paper_text
from carryscope.report.shelf import Shelf

PATTERNS_SHOWN = 4
"""Groups of wrong digits shown for each row, as in the paper's table."""


def attention_section(shelf: Shelf) -> Section | None:
    """Attention by head."""
    finding = shelf.dissection.attention if shelf.dissection else None
    if finding is None:
        return None
    model = shelf.config.model
    name = "staircase" if model.heads == 3 else f"staircase.{model.heads}-heads"
    parts: list[Part] = [
        Text(finding.statement, lead=True),
        Picture("staircase", {"": figure("staircase", shelf)}, paper_text(name, model)),
        _roles(finding, model.layers),
    ]
    parts += [_overlaps(finding)] if finding.overlaps else []
    return Section("attention", "Where the heads look", "Attention", parts)


def _roles(finding: AttentionFinding, layers: int) -> Table:
    titles = head_titles(finding, layers)
    rows = [
        [
            titles[head.layer, head.head].partition(",")[0],
            head.role or "no staircase",
            f"{head.rows} of {head.of}",
            percent(head.sharpness),
        ]
        for head in finding.heads
    ]
    caption = (
        "Heads are named by what they read, because their numbers mean nothing between seeds. "
        "A head has a staircase if one column gets more than half of its attention in at least "
        f"two thirds of its rows. Means over {finding.questions:,} questions."
    )
    head = ["head", "reads", "rows at which it does", "attention the column gets"]
    return Table("roles", "What each head reads", head, rows, caption, frozenset({2, 3}))


def _overlaps(finding: AttentionFinding) -> Folded:
    rows = [
        [
            f"layer {pair.layer}: H{pair.heads[0]} and H{pair.heads[1]}",
            with_interval(pair.overlap),
            "yes" if pair.splitting else "no",
        ]
        for pair in finding.overlaps
    ]
    head = ["heads", "attention they share", "split one task"]
    table = Table("overlaps", "Do two heads do the same?", head, rows, "", frozenset({1}))
    return Folded("Do two heads do the same?", [table])


def rows_section(shelf: Shelf) -> Section | None:
    """The paper's row tables, and the tests that could have failed."""
    finding = shelf.dissection.rows if shelf.dissection else None
    if finding is None:
        return None
    parts: list[Part] = [
        Text(finding.statement, lead=True),
        Picture("edges", {"": figure("edges", shelf)}),
        Note(finding.remark, "The paper's row table cannot come out otherwise"),
        Picture("rows", {"": figure("rows", shelf)}, paper_text("rows.used", shelf.config.model)),
        _row_table(shelf, finding),
        _pattern_table(shelf, finding),
    ]
    return Section("rows", "Which rows and tokens are used", "Rows and edges", parts)


def _last_block(finding: RowsFinding, how: str) -> list[RowEffect]:
    last = max(effect.layer for effect in finding.rows)
    return [effect for effect in finding.rows if effect.layer == last and effect.how == how]


def _row_table(shelf: Shelf, finding: RowsFinding) -> Table:
    zero, mean = _last_block(finding, "zero"), _last_block(finding, "mean")
    rows = [
        [
            f"P{a.row} {a.token}",
            loss(a.loss),
            loss(b.loss),
            "important" if a.important else "not important",
            paper_cell(f"row.P{a.row}", shelf.config.model),
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
    """Rows that follow each other and say the same as one, as the paper has them."""
    groups = [list(group) for _, group in groupby(rows, key=lambda row: row[1:])]
    return [
        group[0] if len(group) == 1 else [f"{group[0][0]} to {group[-1][0]}", *group[0][1:]]
        for group in groups
    ]


def _pattern_table(shelf: Shelf, finding: RowsFinding) -> Table:
    names = shelf.config.model.layout.answer_names
    rows = [
        [
            f"P{effect.row} {effect.token}",
            ", ".join(f"{p}: {n}" for p, n in list(effect.patterns.items())[:PATTERNS_SHOWN]),
            paper_cell(f"pattern.P{effect.row}", shelf.config.model),
        ]
        for effect in _last_block(finding, "zero")
        if effect.important
    ]
    return Table(
        "row-patterns",
        "Which digits turn wrong without a row",
        ["row", "wrong answers, grouped by their wrong digits", "paper, commonest group"],
        rows,
        f"One letter for each answer token, {names[0]} to {names[-1]}: N is wrong. Set to zero. "
        "Paper: Tab. 5, about 160 questions.",
        paper=frozenset({2}),
    )


def heads_section(shelf: Shelf) -> Section | None:
    """Each head taken away, by question class."""
    finding = shelf.dissection.heads if shelf.dissection else None
    if finding is None or shelf.dissection is None or shelf.dissection.attention is None:
        return None
    model = shelf.config.model
    beside = [
        ("With all heads", "head.none.text"),
        ("without the base-add head", "head.base-add"),
        ("the same in its text", "head.base-add.text"),
        ("without one of the others", "head.others"),
    ]
    told = [f"{what} {paper_text(name, model)}" for what, name in beside if paper_text(name, model)]
    parts: list[Part] = [
        Text(finding.statement, lead=True),
        Picture("heads", {"": figure("heads", shelf)}),
        _head_table(finding, head_titles(shelf.dissection.attention, model.layers)),
        _class_table(shelf, finding),
    ]
    if told:
        parts.insert(2, Note(f"{'; '.join(told)}.", "The paper's loss on BA questions"))
    return Section("heads", "What each head is needed for", "Heads", parts)


def _head_table(finding: HeadsFinding, titles: dict[tuple[int, int], str]) -> Table:
    kinds = list(dict.fromkeys(effect.question_class for effect in finding.effects))
    shown = [e for e in finding.effects if e.how in (None, "mean")]
    by_head: dict[str, dict[str, HeadEffect]] = {}
    for effect in shown:
        name = (
            "whole model"
            if effect.layer is None or effect.head is None
            else titles[effect.layer, effect.head]
        )
        by_head.setdefault(name, {})[effect.question_class] = effect
    rows = [
        [
            name,
            *(f"{of[kind].loss.estimate:.4f}, {_right(of[kind].correct)}" for kind in kinds),
        ]
        for name, of in by_head.items()
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


def _right(share: Share) -> str:
    return percent(share.estimate) if share.count else "none"


def _class_table(shelf: Shelf, finding: HeadsFinding) -> Table:
    """The loss of the whole model by question class, beside the paper's categories."""
    whole = [effect for effect in finding.effects if effect.how is None]
    names = {"BA": "class.BA", "UC1": "class.UC1"}
    rows = [
        [
            effect.question_class,
            loss(effect.loss),
            with_interval(effect.correct),
            paper_cell(names.get(effect.question_class, "class.US9"), shelf.config.model),
        ]
        for effect in whole
    ]
    return Table(
        "class-table",
        "Loss by question class, all heads in place",
        ["class", "loss", "whole answers right", "paper"],
        rows,
        "Teacher-forced. Paper: Tab. 3, final training loss; its US9 is our simple and cascade "
        "US9 together.",
        frozenset({1, 2, 3}),
        frozenset({3}),
    )


def nodes_section(shelf: Shelf) -> Section | None:
    """The paper's node maps."""
    found = shelf.dissection
    if found is None or found.nodes is None:
        return None
    model, parts = shelf.config.model, [Text(found.nodes.statement, lead=True)]
    names = {"nodes-positions": "its Fig. 22", "nodes-fails": "its Fig. 23"}
    names |= {"nodes-attention": "its Fig. 24"} if found.attention else {}
    names |= {"nodes-impact": "its Fig. 25"}
    names |= {"nodes-purpose": "its Fig. 26"} if found.subtasks else {}
    pictures = [
        Picture(name, {"": figure(name, shelf)}, f"{where}, of the signed model")
        for name, where in names.items()
    ]
    where = paper_text("rows.used.reuse", model)
    notes = [Note(f"The paper's useful positions: {where}.")] if where else []
    told = [Text(found.subtasks.statement)] if found.subtasks else []
    return Section(
        "nodes", "What each node is for", "Node maps", [*parts, *notes, *pictures, *told]
    )
