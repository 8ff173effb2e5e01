"""The draws of a reproduction: which are planned, how long they take, how one is made and measured.

In: recipes. Out: a `DrawRecord` for each draw, with the numbers that claims need of its recipe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from carryscope.core.errors import CallError
from carryscope.core.machine import machine
from carryscope.core.progress import Progress
from carryscope.sweeps.running import trained
from carryscope.training.checkpoint import note_in_checkpoint
from carryscope.training.config import RunConfig
from carryscope.training.loop import is_finished
from carryscope.training.presets import preset, run_config
from carryscope.version import __version__
from paper import estimands
from paper.claims import DrawRecord, authors_seed, estimands_of, frozen
from paper.draw import Draw, untrained
from paper.page import pages
from paper.printed import quantities
from paper.study import RESULTS, Jobs, Study

QUICK_STEPS = 100
"""Steps of each training of a smoke test. It has the authors' draws only."""

ONE_THREAD = 2
"""A draw has one thread. The minutes of presets are for two."""

MEASURING = 0.5
"""Minutes that the findings and numbers of a draw take, about."""


def chosen(only: str | None) -> list[str]:
    """The recipes in a list with commas, in the order of the plan; all of them by default."""
    known = list(frozen().seeds)
    wanted = known if only is None else [name.strip() for name in only.split(",")]
    for name in wanted:
        if name not in known:
            raise CallError(f"only must name some of {', '.join(known)}. Got '{name}'.")
    return [name for name in known if name in wanted]


def plan(
    recipes: Sequence[str], *, quick: bool = False, draws: int | None = None
) -> dict[str, RunConfig]:
    """The draws by name: the authors' own first, then `draws` fresh seeds of each recipe."""
    wanted = [(recipe, authors_seed(recipe)) for recipe in recipes]
    if not quick:
        wanted += [(r, seed) for r in recipes for seed in frozen().seeds[r][:draws]]
    changes = {"steps": QUICK_STEPS} if quick else {}
    return {f"{r}/{seed}": run_config(r, {"seed": seed, **changes}) for r, seed in wanted}


def jobs(planned: Mapping[str, RunConfig]) -> Jobs:
    """What makes each of these draws."""
    return {name: partial(make_draw, config) for name, config in planned.items()}


def minutes(config: RunConfig, run: Path) -> float:
    """About how long the rest of a draw takes."""
    assert config.preset is not None
    assert config.training is not None
    left = 0 if is_finished(run) else config.training.steps - note_in_checkpoint(run, "step")
    whole = preset(config.preset)
    return ONE_THREAD * whole.minutes * left / whole.training.steps + MEASURING


def make_draw(config: RunConfig, directory: Path, threads: int, progress: Progress) -> DrawRecord:
    """Bring the run of one draw to its end, and measure it."""
    run = trained(config, directory, threads=threads, progress=progress)
    draw = Draw(run, run.model(), progress)
    recipe, training = run.config.preset, run.config.training
    assert recipe is not None
    assert training is not None
    by_architecture = {
        claim.estimand
        for claim in frozen().claims
        if claim.any_one_layer and recipe in claim.recipes
    }
    return DrawRecord(
        package_version=__version__,
        weights_sha256=run.weights_sha256,
        machine=machine(),
        recipe=recipe,
        seed=training.seed,
        steps=training.steps,
        heads=[head.role or "no column" for head in draw.heads],
        held_out_loss=float(draw.held_out.mean()),
        numbers=_numbers(draw, estimands_of(recipe) | {"columns_read"}),
        untrained=_numbers(untrained(draw), by_architecture) if by_architecture else {},
        printed=quantities(draw, recipe),
    )


def _numbers(draw: Draw, names: set[str]) -> dict[str, float | None]:
    """The estimands of these names."""
    found = {name: getattr(estimands, name)(draw) for name in sorted(names)}
    return {name: None if value is None else float(value) for name, value in found.items()}


STUDY = Study("draws", DrawRecord, pages, lambda _: [jobs(plan(chosen(None)))], home=RESULTS.parent)
