"""Why cascades fail. Heads times data times seeds: which of the two removes which failures?

In: a directory for the runs. Out: a `WhyRecord` for every model: what its heads read and which
digits are wrong. The prediction, fixed before any of these models was trained: a digit fails at a
look-ahead exactly where no head reads the column that decides its carry.

    heads   1 to 6
    data    uniform; the paper's rule; cascades (each question draws its share of nines)
    seeds   3 of each

The same is measured for the shipped models and for two draws of the paper's recipe: the authors'
own, whose heads read three columns, and one whose heads read two. The records become
docs/why-it-fails.md and its figure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean, median

import msgspec
from msgspec.structs import replace

from carryscope.api import load
from carryscope.core.evidence import Mean, Share
from carryscope.core.machine import machine
from carryscope.core.progress import Progress
from carryscope.core.words import Interval, counted, percent, with_interval
from carryscope.model.config import ModelConfig
from carryscope.report.figures.figure import Figure
from carryscope.report.figures.grids import panelled
from carryscope.report.tables import Cell, Table
from carryscope.run import Run
from carryscope.stages import RISK
from carryscope.sweeps.running import Job, trained
from carryscope.training.config import RunConfig, TrainingConfig
from carryscope.training.presets import run_config
from carryscope.verification.estimate import Rate
from carryscope.verification.risk import RiskFinding
from carryscope.verification.sight import SightCell, SightFinding, study_sight
from paper.study import Jobs, Study, page

HEADS, SEEDS = range(1, 7), range(3)

DATA = {
    "uniform": {"enriched_batches": 0.0, "nines": 0.0},
    "the paper's": {"nines": 0.0},
    "cascades": {"nines": 1.0},
}
"""What the models are trained on, and the fields of the recipe that say so."""

RECIPE = TrainingConfig(
    steps=4000,
    batch=192,
    learning_rate=2.5e-3,
    weight_decay=0.01,
    warmup=100,
    schedule="linear",
    clip=1.0,
    init_std=0.05,
    embedding_std=0.2,
    attention_std=0.01,
    head_delay=150,
    paper_tail=0.0,
)
"""Short, so that 54 models take about an hour of one core. Five heads trained on cascades like this
can be right on every question."""

SHIPPED = ("fast-5", "exact-5")

PAPER_SEEDS = (129000, 201)
"""Draws of paper-5: the authors' own, and the first fresh one."""

TESTED = 200_000
"""Questions that each model is tested on, at most."""


class WhyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One trained model."""

    heads: int
    data: str
    """A key of `DATA`; for another recipe, its name."""
    seed: int
    weights_sha256: str
    machine: str
    wrong: Rate
    """Wrong answers over all questions."""
    tested: int
    sight: SightFinding


def cell_config(heads: int, data: str, seed: int) -> RunConfig:
    """The recipe of one cell."""
    model = ModelConfig(heads=heads, d_model=96, d_head=32, d_mlp=384)
    return RunConfig(model=model, training=replace(RECIPE, seed=seed, **DATA[data]))


def jobs(runs: Path) -> list[Jobs]:
    """All models, side by side."""
    every: dict[str, Job[WhyRecord]] = {
        f"heads-{heads}-{data.split()[-1]}-{seed}": partial(
            study_model, data, cell_config(heads, data, seed)
        )
        for seed, data, heads in product(SEEDS, DATA, HEADS)
    }
    every |= {name: partial(study_shipped, name) for name in SHIPPED}
    for seed in PAPER_SEEDS:
        config = run_config("paper-5", {"seed": seed})
        every[f"paper-5-{seed}"] = partial(study_model, "paper-5", config)
    return [every]


def study_model(
    data: str, config: RunConfig, directory: Path, threads: int, progress: Progress
) -> WhyRecord:
    """Train one model and measure it."""
    run = trained(config, directory, threads=threads, progress=progress)
    return _measured(run, data, run.risk(budget=TESTED, progress=progress))


def study_shipped(name: str, directory: Path, threads: int, progress: Progress) -> WhyRecord:
    """Measure a shipped model, whose risk is known."""
    run = load(name)
    return _measured(run, name, run.there(RISK))


def _measured(run: Run, data: str, risk: RiskFinding) -> WhyRecord:
    training = run.config.training
    assert training is not None
    return WhyRecord(
        heads=run.config.model.heads,
        data=data,
        seed=training.seed,
        weights_sha256=run.weights_sha256,
        machine=machine(),
        wrong=risk.teacher_forced,
        tested=risk.evaluated,
        sight=study_sight(run.model()),
    )


PAGE, FIGURE = "why-it-fails.md", "why-it-fails.svg"

DARKEST = 0.5
"""The share of wrong digits from which on a cell is as dark as it gets."""

FAILS, BLIND = 0.01, 0.5
"""A digit fails at a look-ahead if more than 1 % of such digits are wrong. It is blind there if no
head reads the deciding column in more than half of them. Both were fixed before the training."""


def is_blind(cell: SightCell) -> bool:
    """Whether no head reads the deciding column of most such digits."""
    return 1 - cell.read.estimate > BLIND


def crossed(records: Sequence[WhyRecord]) -> list[WhyRecord]:
    """The models that cross heads and data."""
    return [one for one in records if one.data in DATA]


def agreement(records: Sequence[WhyRecord]) -> Counter[tuple[bool, bool]]:
    """How many pairs of digit and look-ahead are (blind, failing), over all models."""
    cells = [cell for one in records for cell in one.sight.cells]
    return Counter((is_blind(cell), cell.wrong.estimate > FAILS) for cell in cells)


def pages(records: Sequence[WhyRecord]) -> dict[str, str]:
    """The page and its figure."""
    cells = crossed(records)
    counts = agreement(cells)
    both = counts[True, True]
    groups: dict[tuple[int, str], list[WhyRecord]] = defaultdict(list)
    for one in cells:
        groups[one.heads, one.data].append(one)
    text = page(
        PAGE,
        figure=FIGURE,
        failing=Share.measured(both, both + counts[False, True]),
        blind=Share.measured(both, both + counts[True, False]),
        heads=HEADS,
        data=DATA,
        wrong={pair: _wrong(seeds) for pair, seeds in groups.items()},
        read={pair: _read(seeds) for pair, seeds in groups.items()},
        models=len(cells),
        none_wrong=Counter((r.heads, r.data) for r in cells if r.wrong.estimate == 0),
        tested=_by_kind(records),
        share=_share,
        recipe=RECIPE,
        machine=cells[0].machine,
    )
    return {PAGE: text, FIGURE: why_figure(records).svg()}


def _wrong(seeds: Sequence[WhyRecord]) -> str:
    share = median(one.wrong.estimate for one in seeds)
    return percent(share) if share else "none found"


def _read(seeds: Sequence[WhyRecord]) -> str:
    pairs = len(seeds[0].sight.cells)
    return f"{median(pairs - sum(map(is_blind, one.sight.cells)) for one in seeds)} of {pairs}"


def _by_kind(records: Sequence[WhyRecord]) -> dict[str, list[WhyRecord]]:
    """The models of each kind of data, then each known model by itself."""
    kinds: dict[str, list[WhyRecord]] = defaultdict(list)
    for one in sorted(records, key=lambda one: [*DATA, *SHIPPED, "paper-5"].index(one.data)):
        kinds[f"paper-5, seed {one.seed}" if one.data == "paper-5" else one.data].append(one)
    return kinds


def _share(known: Sequence[Interval | None]) -> str:
    """The share in one model, or the mean over models that have it."""
    found = [share for share in known if share is not None]
    if len(found) < 2:
        return with_interval(found[0]) if found else "none"
    mean = Mean.measured([share.estimate for share in found])
    return with_interval(Rate(mean.estimate, max(0.0, mean.low), min(1.0, mean.high)))


def why_figure(records: Sequence[WhyRecord]) -> Figure:
    """Wrong digits by look-ahead, for every number of heads and kind of data."""
    kinds = defaultdict(list)
    for one in crossed(records):
        for cell in one.sight.cells:
            kinds[one.data, one.heads, cell.digit, cell.depth].append(cell)

    def shown(digit: str, depth: int, kind: str, heads: int) -> str:
        cells = kinds.get((kind, heads, digit, depth), [])
        if not cells:
            return ""
        wrong = fmean(cell.wrong.estimate for cell in cells)
        dot = "•" if 2 * sum(map(is_blind, cells)) > len(cells) else ""
        return Cell(dot, tone="wrong", shade=min(1.0, wrong / DARKEST), tip=percent(wrong))

    digits = sorted({digit for _, _, digit, _ in kinds}, reverse=True)
    depths = sorted({depth for *_, depth in kinds})
    panels = [
        Table(
            "",
            f"{heads} heads" if heads > 1 else "1 head",
            ["nines", *digits],
            [[_nines(n, kind), *(shown(d, n, kind, heads) for d in digits)] for n in depths],
        )
        for kind, heads in product(DATA, HEADS)
    ]
    return Figure(
        panelled(panels, across=len(HEADS)),
        "A digit fails where no head reads the column that decides it",
        "A grid: one to six heads across, three kinds of training data down. In each panel the "
        "answer digits A5 to A1 across and the nines below them down. Orange cells, wrong digits, "
        "lie where dots say that no head reads the deciding column.",
        "Across: answer digits, for one to six heads. Down: nines below the digit, for each kind "
        "of training data. Orange: wrong digits, mean over three seeds. Dot: in most seeds no "
        "head reads the column that decides the carry.",
    )


def _nines(depth: int, kind: str) -> str:
    """The name of a row of a panel. The first also names the data."""
    return f"{kind}: 0 nines" if depth == 0 else counted(depth, "nine")


STUDY = Study("why", WhyRecord, pages, jobs)
