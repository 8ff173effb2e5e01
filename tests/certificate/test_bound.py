"""The bound against the model itself: it must lie below every margin that is found in the box."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from box_spaces import seen
from exact_margins import as_double, logits_and_scales

import carryscope
from carryscope.certificate import subject as subject_module
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
    model: Transformer,
    subjects: dict[ProofSubject, int],
    row: int,
    *,
    completions: int = 30,
) -> tuple[float, float]:
    """The most by which a bound exceeds a sampled margin, and the share of positive bounds.

    Each subject, one for each engine, bounds so many boxes. `completions` questions are drawn from
    every box, and answered by the model in float64 or, if the proof is about float32, by two
    float32 evaluations as well.
    """
    first = next(iter(subjects))
    generator, space = np.random.default_rng(row), first.spaces[row]
    excess, positive = -np.inf, []
    boxes = [
        (number, box, *seen(space, box))
        for number, box in enumerate(random_boxes(space, max(subjects.values()), generator))
    ]
    for number, box, reading, _, target in sorted(boxes, key=lambda one: one[2]):
        drawn = draw(space, box[None], completions, generator)
        logits, scale = logits_and_scales(as_double(model), drawn, space.row.index)
        evaluations = [logits]
        if first.features.about == "float32":
            evaluations += float32_logits(model, drawn, space.row.index)
        for subject, count in subjects.items():
            if number >= count:
                continue
            least = subject.decider(row, reading).leads(box)
            others = np.arange(len(least)) != target
            for found in evaluations:
                margin = found[:, [target]] - found - DEMANDED
                lowest = (scale[:, None] * margin).amin(0).numpy()
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


def of_both_engines(model: Transformer, about: About, **counts: int) -> dict[ProofSubject, int]:
    """The same tables for both engines, and how many boxes each bounds."""
    if not find_spec("numba"):
        counts.pop("numba")
    made = subject_of(model, "torch", about)
    return {ProofSubject(made.features, made.spaces, name): n for name, n in counts.items()}


@pytest.fixture(autouse=True)
def tables_are_made_once_for_both_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject_module, "row_tables", lru_cache(4)(subject_module.row_tables))


@cache
def shipped_subjects(name: str) -> tuple[Transformer, dict[ProofSubject, int]]:
    """A shipped model and the proof about float32: its features are made once for all rows."""
    model = shipped(name)
    return model, of_both_engines(model, "float32", numba=24, torch=6)


@pytest.mark.parametrize("std", [0.1, 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_bound_of_random_boxes_is_below_the_least_margin_found(shape: str, std: float) -> None:
    model = untrained(SHAPES[shape], std)
    subjects = of_both_engines(model, "exact", numba=24, torch=24)
    for row in range(len(next(iter(subjects)).spaces)):
        excess, _ = worst_excess(model, subjects, row)
        assert excess <= 0


@pytest.mark.parametrize("row", range(6))
@pytest.mark.parametrize("name", ["fast-5", "exact-5"])
def test_the_bound_of_a_shipped_model_is_below_the_least_margin_found(name: str, row: int) -> None:
    excess, positive = worst_excess(*shipped_subjects(name), row, completions=8)
    assert excess <= 0
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
