"""Seeds of the exact adders: trained, tested on every pattern of columns, and proved.

In: a directory for the runs. Out: an `ExactRecord` for every seed. A seed whose proof is not
complete when its time is up is reported as it stands, with the columns that no head reads.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

import msgspec
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from carryscope.certificate.checking import check_certificate
from carryscope.certificate.finding import Certificate
from carryscope.core.machine import machine
from carryscope.core.progress import Progress
from carryscope.model.answer_path import answer_logits
from carryscope.model.transformer import Transformer
from carryscope.sweeps.running import trained, with_seed
from carryscope.task.questions import Questions
from carryscope.training.config import RunConfig
from carryscope.training.data import POOL, Climbers
from carryscope.training.presets import preset, run_config
from carryscope.verification.before_after import BlindDigit, blind_digits, blind_words
from carryscope.verification.partition import partition
from paper.study import Jobs, Study, page

PRESET, SEEDS = "exact-5", range(8)
MORE_DIGITS = "exact-7"
"""One seed of it, the first."""

EACH = 400
"""Questions of every pattern of columns that a seed is tested on: 97,200 for five digits."""

MINUTES = 10.0
"""Time for the search of one proof."""

CLIMBS = 20
"""Times that each of a pool of questions is changed, and the change kept if the lead shrinks."""

CHUNK = 512
"""Questions per forward pass."""


class ExactRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One seed."""

    preset: str = PRESET
    seed: int
    weights_sha256: str
    machine: str
    training_seconds: float
    tested: int
    wrong: dict[str, int]
    """Wrong answer digits by name, teacher-forced; digits that are never wrong are left out."""
    smallest_lead: float
    """In logits: the true digit before the best other one, in the worst case tested."""
    hardest_lead: float | None = None
    """The same among questions that climbed towards smaller leads."""
    questions: str
    proved_right: str
    proved_wrong: str
    boxes: int
    """Boxes in the proof."""
    proof_seconds: float
    check_seconds: float
    """Time to compute every bound of the proof again."""
    blind: list[BlindDigit]

    @property
    def exact(self) -> bool:
        """Whether every question is proved right."""
        return self.proved_right == self.questions


def jobs(runs: Path) -> list[Jobs]:
    """All seeds, side by side."""
    recipe = run_config(PRESET, {})
    seeds = {f"seed-{seed}": partial(study_one, with_seed(recipe, seed)) for seed in SEEDS}
    return [seeds | {MORE_DIGITS: partial(study_one, run_config(MORE_DIGITS, {}))}]


def study_one(config: RunConfig, directory: Path, threads: int, progress: Progress) -> ExactRecord:
    """Train one seed, test it and prove what can be proved."""
    run = trained(config, directory, threads=threads, progress=progress)
    attention = run.dissection("attention", progress=progress).attention
    assert attention is not None
    leads = stratified_leads(run.model(), EACH)
    proof = run.certificate(
        until=1.0, minutes=MINUTES, about="float32", workers=threads, progress=progress
    )
    names = config.model.layout.answer_names
    wrong = zip(names, (leads <= 0).sum(axis=0).tolist(), strict=True)
    assert config.preset is not None
    return ExactRecord(
        preset=config.preset,
        seed=run.training().seed,
        weights_sha256=run.weights_sha256,
        machine=machine(),
        training_seconds=run.training().seconds,
        tested=len(leads),
        wrong={name: count for name, count in wrong if count},
        smallest_lead=float(leads.min()),
        hardest_lead=hardest_lead(run.model()),
        questions=proof.questions,
        proved_right=proof.proved_right,
        proved_wrong=proof.proved_wrong,
        boxes=sum(digit.boxes for digit in proof.per_digit),
        proof_seconds=proof.seconds,
        check_seconds=_time_of_check(run.model(), proof, threads),
        blind=blind_digits(attention, config.model.layout),
    )


def stratified_leads(model: Transformer, each: int) -> Float[np.ndarray, "batch answer"]:
    """How far the true digit leads in logits, on so many questions of every pattern."""
    strata = partition(model.config.digits)
    generator = np.random.default_rng(0)
    questions, _ = strata.draw_each(generator, np.full(len(strata), each))
    return leads_of(model, questions)


def hardest_lead(model: Transformer) -> float:
    """The smallest lead of a pool of questions that climb against the trained model."""
    climbers, found = Climbers(0, model.config.layout), np.inf
    for step in range(CLIMBS):
        pool = climbers.climbed(step, POOL, lambda asked: -leads_of(model, asked).min(axis=1))
        found = min(found, float(leads_of(model, pool).min()))
    return found


def leads_of(model: Transformer, questions: Questions) -> Float[np.ndarray, "batch answer"]:
    """How far the true digit leads in logits, at every answer row."""
    tokens = torch.from_numpy(model.config.layout.encode(questions))
    with torch.inference_mode():
        leads = [_leads(model, tokens[i : i + CHUNK]) for i in range(0, len(tokens), CHUNK)]
    return torch.cat(leads).numpy()


def _leads(
    model: Transformer, tokens: Int[Tensor, "batch position"]
) -> Float[Tensor, "batch answer"]:
    logits = answer_logits(model, tokens)
    truth = model.config.layout.answer_part(tokens).long()[..., None]
    others = logits.scatter(-1, truth, -torch.inf)
    return logits.gather(-1, truth)[..., 0] - others.amax(-1)


def _time_of_check(model: Transformer, proof: Certificate, threads: int) -> float:
    began = time.perf_counter()
    check_certificate(model, proof, workers=threads)
    return time.perf_counter() - began


def pages(seeds: Sequence[ExactRecord]) -> dict[str, str]:
    """What is proved, the commands, the seeds, and what to keep in mind."""
    known = {"median": median, "blind_words": blind_words, "each": EACH, "minutes": MINUTES}
    five = [one for one in seeds if one.preset == PRESET]
    seven = next(one for one in seeds if one.preset == MORE_DIGITS)
    more = {"recipe": preset(MORE_DIGITS), "climbed": CLIMBS * POOL}
    name = "exact-adders.md"
    return {name: page(name, seeds=five, preset=preset(PRESET), seven=seven, **known, **more)}


STUDY = Study("exact", ExactRecord, pages, jobs)
