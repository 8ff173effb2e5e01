"""Are digits wrong where no head reads the column that decides their carry?

In: a model. Out: `SightFinding`. Digits are judged teacher-forced, question by question; A0, which
receives no carry, is left out. Shares are over uniform questions.

A model that is *blind* to the deciding column can still be right: it assumes one of the two
carries, and half of the time that is the one.
"""

from __future__ import annotations

import msgspec
import numpy as np
from jaxtyping import Bool

from carryscope.core.words import percent, with_interval
from carryscope.dissection.engine import Engine
from carryscope.dissection.explaining import decision_read, digit_shares
from carryscope.dissection.samples import Samples
from carryscope.model.transformer import Transformer
from carryscope.task.operation import Array
from carryscope.verification.estimate import WeightedSample, WeightedShare

SHARED = 4_000
"""Questions by probability, beyond those of every stratum: rare strata hold what is blind."""


class SightCell(msgspec.Struct, frozen=True, kw_only=True):
    """One answer digit at one look-ahead depth."""

    digit: str
    depth: int
    read: WeightedShare
    """How often a head reads the deciding column."""
    wrong: WeightedShare
    """How often the digit is wrong."""


class SightFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Wrong digits and what the heads read. A share of no digits is null."""

    questions: int
    blind: WeightedShare
    """Digits whose deciding column no head reads."""
    wrong_if_blind: WeightedShare | None
    wrong_if_read: WeightedShare | None
    blind_if_wrong: WeightedShare | None
    """Of all wrong digits, those that are blind: the share of errors that the heads explain."""
    cells: list[SightCell]
    statement: str


def study_sight(model: Transformer, *, seed: int = 0) -> SightFinding:
    """Compare what the heads read with what the model gets wrong."""
    layout = model.config.layout
    samples = Samples.of(layout, seed)
    sample = WeightedSample.draw(
        samples.generator("sight"), layout.digits, SHARED, layout.operation
    )
    read, wrong = _read_and_wrong(Engine(model, samples.varied), sample)
    carried = np.ones_like(read)
    carried[:, 0] = False
    blind = carried & ~read
    overall = sample.share(blind, carried)
    assert overall is not None
    found = SightFinding(
        questions=len(sample),
        blind=overall,
        wrong_if_blind=sample.share(wrong, blind),
        wrong_if_read=sample.share(wrong, carried & read),
        blind_if_wrong=sample.share(blind, carried & wrong),
        cells=_cells(sample, read, wrong),
        statement="",
    )
    return msgspec.structs.replace(found, statement=_statement(found))


def _read_and_wrong(
    engine: Engine, sample: WeightedSample
) -> tuple[Bool[Array, "batch digit"], Bool[Array, "batch digit"]]:
    """Where the deciding column is read, and which digits are wrong, units first."""
    digits = engine.layout.digits
    shares, said = [], []
    for state in engine.captures(sample.questions):
        shares.append(digit_shares(state.patterns().numpy(), engine.layout))
        said.append(state.logits.argmax(-1).numpy()[:, ::-1][:, : digits + 1])
    wrong = np.concatenate(said) != sample.columns.answer()
    return decision_read(sample.columns, np.concatenate(shares)), wrong


def _cells(
    sample: WeightedSample, read: Bool[Array, "batch digit"], wrong: Bool[Array, "batch digit"]
) -> list[SightCell]:
    """Every digit and depth, highest digit first."""
    cells = []
    for digit in reversed(range(1, read.shape[1])):
        for depth in range(digit + 1):
            here = sample.columns.look_ahead[:, digit] == depth
            seen, failed = (sample.share(hits[:, digit], here) for hits in (read, wrong))
            if seen is not None and failed is not None:
                cells.append(SightCell(digit=f"A{digit}", depth=depth, read=seen, wrong=failed))
    return cells


def _statement(found: SightFinding) -> str:
    blind, read, explained = found.wrong_if_blind, found.wrong_if_read, found.blind_if_wrong
    said = ["A head reads the column that decides each digit tested."]
    if blind is not None:
        said = [
            f"For {with_interval(found.blind)} of digits, no head reads the column that decides "
            f"them. There the model can only guess, and {with_interval(blind)} are wrong."
        ]
    if blind is not None and read is not None:
        most = f"none was wrong (at most {percent(read.high)}, with 95 % confidence)"
        said.append(
            f"Of the others, {f'{with_interval(read)} are wrong' if read.estimate else most}."
        )
    if explained is None:
        said.append("No digit is wrong.")
    elif explained.estimate < 1:
        said.append(f"Of all wrong digits, {with_interval(explained)} are guesses of this kind.")
    else:
        least = f"at least {percent(explained.low)}, with 95 % confidence"
        said.append(f"Every wrong digit that was found is a guess of this kind ({least}).")
    return " ".join(said)
