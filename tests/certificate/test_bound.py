"""The bound against the model itself: it must lie below every margin that is found in the box."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from box_spaces import seen
from exact_margins import as_double, logits_and_scales

import carryscope
from carryscope.certificate.boxes import UNKNOWN, RowSpace, questions_of_pairs
from carryscope.certificate.certify import ProofSearch
from carryscope.certificate.proof import RIGHT, WRONG, About, Engine
from carryscope.certificate.row_tables import DEMANDED
from carryscope.certificate.spot_checks import draw
from carryscope.certificate.subject import ProofSubject
from carryscope.core.workers import this_process
from carryscope.model.answer_path import answer_logits
from carryscope.model.config import ModelConfig
from carryscope.model.files import load_model
from carryscope.model.transformer import Transformer, initialise
from carryscope.task.questions import Questions

SHAPES = {
    "plain": ModelConfig(digits=3, heads=2, d_model=24),
    "signed": ModelConfig(digits=2, heads=3, d_model=24, format="signed"),
    "one head": ModelConfig(digits=2, heads=1, d_model=16),
    "no MLP": ModelConfig(digits=2, heads=2, d_model=16, d_mlp=0),
    "one digit": ModelConfig(digits=1, heads=2, d_model=16),
    "subtraction": ModelConfig(
        digits=2, heads=2, d_model=16, format="signed", vocabulary=15, operation="subtraction"
    ),
    "mixed": ModelConfig(
        digits=1, heads=1, d_model=16, format="signed", vocabulary=15, operation="mixed"
    ),
}


def untrained(config: ModelConfig, std: float) -> Transformer:
    """A model with large random weights and biases: attention far from uniform."""
    generator = torch.Generator().manual_seed(0)
    model = initialise(Transformer(config), generator, lambda _: std)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model


def shipped(name: str) -> Transformer:
    return load_model(Path(carryscope.__file__).parent / "shipped" / name)


def random_boxes(space: RowSpace, count: int, generator: np.random.Generator) -> np.ndarray:
    """Settled boxes, split further at random, from coarse to single questions."""
    boxes = np.repeat(space.everything, count, axis=0)
    for number in range(count):
        box = boxes[number : number + 1]
        for step in range(200):
            column = space.column_to_settle(box)
            if column[0] == UNKNOWN:
                if step > 40 or generator.random() < 0.08:
                    break
                column = generator.integers(space.columns, size=1)
            parts, _ = space.children(box, column)
            box = parts[generator.integers(len(parts))][None] if len(parts) else box
        boxes[number] = box
    return boxes


def worst_excess(
    model: Transformer, subject: ProofSubject, row: int, count: int, *, completions: int = 30
) -> tuple[float, float]:
    """The most by which a bound exceeds a sampled margin, and the share of positive bounds.

    `completions` questions are drawn from every box, and answered by the model in float64 or, if
    the proof is about float32, by two float32 evaluations as well.
    """
    generator, space = np.random.default_rng(row), subject.spaces[row]
    excess, positive = -np.inf, []
    for box in random_boxes(space, count, generator):
        reading, _, target = seen(space, box)
        least = subject.decider(row, reading).leads(box)
        drawn = draw(space, box[None], completions, generator)
        logits, scale = logits_and_scales(as_double(model), drawn, space.row.index)
        evaluations = [logits]
        if subject.features.about == "float32":
            evaluations += float32_logits(model, drawn, space.row.index)
        for found in evaluations:
            margin = found[:, [target]] - found - DEMANDED
            lowest = (scale[:, None] * margin).amin(0).numpy()
            others = np.arange(len(least)) != target
            excess = max(excess, float((least - lowest)[others].max()))
        positive.append(bool((least[others] > 0).all()))
    return excess, float(np.mean(positive))


def float32_logits(model: Transformer, questions: Questions, row: int) -> list[torch.Tensor]:
    """The logits of a row by the instrumented pass and by the answer path, as float64."""
    layout = model.config.layout
    tokens = torch.from_numpy(layout.encode(questions))
    with torch.inference_mode():
        plain = model(tokens)[:, layout.answer_rows[row]]
        fast = answer_logits(model, tokens)[:, row]
    return [plain.double(), fast.double()]


def subject_of(model: Transformer, engine: Engine, about: About) -> ProofSubject:
    return ProofSubject.of(model, about=about, engine=engine)


@cache
def shipped_subject(name: str, engine: Engine) -> tuple[Transformer, ProofSubject]:
    """A shipped model and the proof about float32: its tables are made once for all rows."""
    model = shipped(name)
    return model, subject_of(model, engine, "float32")


@pytest.mark.parametrize("std", [0.1, 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_bound_of_random_boxes_is_below_the_least_margin_found(
    shape: str, std: float, engine: Engine
) -> None:
    model = untrained(SHAPES[shape], std)
    subject = subject_of(model, engine, "exact")
    for row in range(len(subject.spaces)):
        excess, _ = worst_excess(model, subject, row, count=24)
        assert excess <= 0


@pytest.mark.parametrize("row", range(6))
@pytest.mark.parametrize("name", ["fast-5", "exact-5"])
def test_the_bound_of_a_shipped_model_is_below_the_least_margin_found(
    name: str, row: int, engine: Engine
) -> None:
    model, subject = shipped_subject(name, engine)
    count = 24 if engine == "numba" else 6
    excess, positive = worst_excess(model, subject, row, count, completions=8)
    assert excess <= 0
    if engine == "numba":  # six boxes tell too little
        assert positive > 0.1, "it does prove something"


@pytest.mark.parametrize("shape", SHAPES)
def test_what_float32_may_lose_is_more_than_it_loses(shape: str, engine: Engine) -> None:
    """For a single question the two proofs differ by what rounding may cost, and by no more."""
    model = untrained(SHAPES[shape], 0.5)
    exact, rounded = (subject_of(model, engine, about) for about in ("exact", "float32"))
    generator = np.random.default_rng(0)
    for row, space in enumerate(exact.spaces):
        pairs = generator.integers(100, size=(6, space.columns))
        box = np.array(
            [
                [
                    np.flatnonzero((t.sizes == 1) & t.members[:, pair])[0]
                    for t, pair in zip(space.trees, one, strict=True)
                ]
                for one in pairs
            ]
        )
        for one, of_columns in zip(box, pairs, strict=True):
            reading, _, target = seen(space, one)
            least, less = (subject.decider(row, reading).leads(one) for subject in (exact, rounded))
            allowed, index = least - less, space.row.index
            question = questions_of_pairs(of_columns[None], space.row.operation)
            logits, scale = logits_and_scales(as_double(model), question, index)
            for found in float32_logits(model, question, index):
                off = (found - logits)[0].numpy()
                lost = float(scale[0]) * np.abs(off[target] - off)
                assert (lost <= allowed + 1e-9).all()


def test_small_logits_with_a_large_common_bias_are_not_proved_in_float32(engine: Engine) -> None:
    """Exact margins survive, and float32 rounds them away."""
    model = untrained(SHAPES["one digit"], 0.5)
    with torch.no_grad():
        model.unembed.W_U *= 0.05
        model.unembed.b_U.copy_(0.05 * model.unembed.b_U + 9e5)
    decided = dict.fromkeys(("exact", "float32"), 0)
    for about in decided:
        search = ProofSearch(model, about=about, engine=engine)
        for _ in search.steps(this_process(shared=search.subject)):
            pass
        decided[about] = sum(proof.count(RIGHT, WRONG) for proof in search.proofs)
    assert decided["exact"] > 100
    assert decided["float32"] == 0
