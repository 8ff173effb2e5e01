"""The record of one draw: `measure(run)`.

In: a finished run. Out: `DrawRecord`, with the numbers that claims need of its recipe.
"""

from __future__ import annotations

from carryscope.core.machine import machine
from carryscope.core.progress import Progress, silent
from carryscope.run import Run
from carryscope.version import __version__
from paper.claims import estimands_of, frozen
from paper.curves import last_batches
from paper.draw import Draw, untrained
from paper.estimands import ESTIMANDS
from paper.records import DRAW, DrawRecord


def measure(run: Run, progress: Progress = silent) -> DrawRecord:
    """The record of a finished run: what is there, or measured now and kept with it."""
    known = run.known(DRAW)
    if known is not None and estimands_of(known.recipe) <= set(known.numbers):
        return known
    # Measured first, then kept: the findings it reads are kept in the same run.
    record = _measured(Draw(run, run.model(), progress))
    return run.find(DRAW, lambda *_: record, again=True)


def _measured(draw: Draw) -> DrawRecord:
    config = draw.run.config
    assert config.training is not None
    recipe = config.preset or ""
    asked = estimands_of(recipe) | {"columns_read"}
    by_architecture = {
        claim.estimand
        for claim in frozen().claims
        if claim.any_one_layer and recipe in claim.recipes
    }
    return DrawRecord(
        package_version=__version__,
        weights_sha256=draw.run.weights_sha256,
        machine=machine(),
        recipe=recipe,
        seed=config.training.seed,
        steps=config.training.steps,
        heads=[head.role or "no column" for head in draw.heads],
        held_out_loss=_short(draw.held_out.mean()),
        numbers=_numbers(draw, asked),
        untrained=_numbers(untrained(draw), by_architecture) if by_architecture else {},
        printed={name: list(map(_short, found)) for name, found in _printed(draw).items()},
    )


def _numbers(draw: Draw, names: set[str]) -> dict[str, float | None]:
    """The estimands of these names, in the order of their table."""
    chosen = {name: ESTIMANDS[name](draw) for name in ESTIMANDS if name in names}
    return {name: None if value is None else _short(value) for name, value in chosen.items()}


def _short(value: float) -> float:
    """Six significant digits."""
    return float(f"{value:.6g}")


def _printed(draw: Draw) -> dict[str, list[float]]:
    """The quantities that the paper prints, measured as its notebook does."""
    found = last_batches(draw.metrics, draw.layout)
    if draw.digits == 5 and "second_ba_head" in estimands_of(draw.run.config.preset or ""):
        whole, *without = draw.base_add_losses
        found["BA, all heads"] = [whole]
        for place, loss in zip(("least", "next", "most"), sorted(without), strict=True):
            found[f"BA, without the {place} needed head"] = [loss]
    return found
