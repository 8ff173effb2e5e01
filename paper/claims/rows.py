"""Claims about rows: which are used, for which digit, and what stands in none of them.

In: the row tables of a dissection, with the same of an untrained model. Out: checks. What stands
at a row after the last block of a model reaches that row's logits alone, so some of these claims
cannot fail; the control shows which.
"""

from __future__ import annotations

from collections.abc import Sequence

from carryscope.core.evidence import Share
from carryscope.dissection.rows import NOISE, PAPER_THRESHOLD, RowEffect, RowsFinding
from carryscope.task.tokens import Format
from paper.claims.claims import Check, Claim, Number
from paper.claims.numbers import count, loss, share
from paper.claims.reading import Studies, Study

SIX_TIMES = 6
"""The paper: the commonest group is more than 6 times the next."""

CARRIES = ("MC1", "MS9", "state", "carry_in")
"""Variables that say something about a carry."""


def rows_unused(claim: Claim, studies: Studies) -> list[Check]:
    """No answer changes without a row before "=", nor without the last row."""
    (study,) = studies.of(claim)
    first, last = study.layout.first_row, study.layout.context - 1
    return [
        _nothing_changes(study, f"rows 0 to {first - 1}", range(first), more=_edges(study)),
        _nothing_changes(study, f"row {last}", [last]),
    ]


def _nothing_changes(
    study: Study, which: str, rows: Sequence[int], *, more: Sequence[Number] = ()
) -> Check:
    """No answer changes without these rows; in an untrained model neither."""
    changed = _changed(study.rows, rows)
    return Check(
        what=f"no answer of {study.name} changes without {which}",
        holds=changed == 0,
        numbers=[_questions("answers that change", study, changed), *more],
        control=_changed(study.untrained_rows, rows) == 0,
    )


def _questions(what: str, study: Study, value: int) -> Number:
    return count(what, study, value, of=study.rows.questions, of_what="questions")


def _last_block(finding: RowsFinding, how: str | None = None) -> list[RowEffect]:
    last = max(effect.layer for effect in finding.rows)
    return [e for e in finding.rows if e.layer == last and how in (None, e.how)]


def _changed(finding: RowsFinding, rows: Sequence[int]) -> int:
    """Answers that change at any digit without any of these rows, however it is ablated."""
    effects = [effect for effect in _last_block(finding) if effect.row in rows]
    return sum(found.count for effect in effects for found in effect.changed.values())


def _edges(study: Study) -> list[Number]:
    """The test that could have failed: attention edges that count, here and in the control."""
    return [
        share(f"edges that count when cut, {name}", study, _used(finding), of_what="edges")
        for name, finding in (("here", study.rows), ("untrained", study.untrained_rows))
    ]


def _used(finding: RowsFinding) -> Share:
    used = sum(edge.flipped.low > NOISE for edge in finding.edges)
    return Share.measured(used, len(finding.edges))


def row_losses(claim: Claim, studies: Studies) -> list[Check]:
    """With an answer row at its mean the loss rises by more than the paper's cut-off.

    A row set to zero has the same logits for every question, so it costs ln 12 at its digit in
    any model that adds. That loss is shown and not judged.
    """
    (study,) = studies.of(claim)
    clean = study.rows.clean_loss
    zero = {effect.row: effect.loss for effect in _last_block(study.rows, "zero")}
    return [
        Check(
            what=f"the loss rises by more than {PAPER_THRESHOLD} with row {effect.row} at its mean",
            holds=effect.loss.low > clean.high + PAPER_THRESHOLD,
            numbers=[
                loss(f"without row {effect.row}", study, effect.loss, paper=f"row.P{effect.row}"),
                loss("set to zero", study, zero[effect.row]),
                loss("with all rows", study, clean),
            ],
        )
        for effect in _last_block(study.rows, "mean")
        if effect.row in study.layout.answer_rows
    ]


def one_row_before(claim: Claim, studies: Studies) -> list[Check]:
    """Without a row only the digit that is written next changes."""
    checks = []
    for study in studies.of(claim):
        layout = study.layout
        for row, name in zip(layout.answer_rows, layout.answer_names, strict=True):
            elsewhere = _elsewhere(study.rows, row, name)
            checks.append(
                Check(
                    what=f"without row {row} no digit of {study.name} but {name} changes",
                    holds=elsewhere == 0,
                    numbers=[_questions("answers that change elsewhere", study, elsewhere)],
                    control=_elsewhere(study.untrained_rows, row, name) == 0,
                )
            )
    return checks


def _elsewhere(finding: RowsFinding, row: int, name: str) -> int:
    """Answers that change at other digits than the one a row predicts."""
    effects = [effect for effect in _last_block(finding) if effect.row == row]
    return sum(
        found.count
        for effect in effects
        for digit, found in effect.changed.items()
        if digit != name
    )


def one_digit_per_row(claim: Claim, studies: Studies) -> list[Check]:
    """Without a row the commonest group of wrong digits is its own digit alone, by far."""
    (study,) = studies.of(claim)
    return [
        _commonest(study, study.layout, effect)
        for effect in _last_block(study.rows, "zero")
        if effect.row in study.layout.answer_rows
    ]


def _commonest(study: Study, layout: Format, effect: RowEffect) -> Check:
    place = effect.row - layout.first_row
    alone = "".join("N" if i == place else "y" for i in range(layout.answer_length))
    own = effect.patterns.get(alone, 0)
    rest = max((n for group, n in effect.patterns.items() if group != alone), default=0)
    numbers = [_questions(alone, study, own), _questions("next group", study, rest)]
    return Check(
        what=f"without row {effect.row} {alone} is more than {SIX_TIMES} times the next group",
        holds=own > SIX_TIMES * rest,
        numbers=numbers,
    )


def no_early_carry(claim: Claim, studies: Studies) -> list[Check]:
    """No row of the second number finds out about a carry; later ones do.

    The row of "=" is left out: it writes the highest digit, which is a carry itself.
    """
    (study,) = studies.of(claim)
    first = study.layout.first_row
    early = range(study.digits + 2, first)
    found = [p for p in study.subtasks.purposes if p.heads and p.kind in CARRIES]
    later = [p for p in found if p.row > first]

    def tally(what: str, value: int) -> Number:
        return count(what, study, value, of=study.subtasks.pairs, of_what="pairs of questions")

    return [
        Check(
            what=f"heads after row {first} carry something about carries",
            holds=bool(later),
            numbers=[tally("purposes found", len(later))],
            role="premise",
        ),
        _nothing_changes(study, f"rows {early[0]} to {early[-1]}", early),
    ]


def useful_positions(claim: Claim, studies: Studies) -> list[Check]:
    """Nodes are useful where digits are written, and nowhere else, not even where "+" is."""
    (study,) = studies.of(claim)
    layout = study.layout
    useful = {node.row: 0 for node in study.nodes.nodes}
    for node in study.nodes.nodes:
        useful[node.row] += node.useful
    first = layout.answer_rows[layout.signs]
    before = sum(n for row, n in useful.items() if row < first)
    written = [useful.get(row, 0) for row in layout.answer_rows[layout.signs :]]
    return [
        _nothing_changes(study, f"rows 0 to {layout.first_row - 1}", range(layout.first_row)),
        Check(
            what=f"no node before P{first} is useful",
            holds=before == 0,
            numbers=[_nodes("useful nodes", study, before)],
        ),
        Check(
            what=f"each of P{first} to P{layout.answer_rows[-1]} has a useful node",
            holds=min(written) > 0,
            numbers=[_nodes("useful nodes at the least", study, min(written))],
            role="core",
        ),
    ]


def _nodes(what: str, study: Study, value: int) -> Number:
    return count(what, study, value, of=study.nodes.questions, of_what="questions")
