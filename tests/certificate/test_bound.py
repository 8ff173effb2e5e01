"""The bound against the model itself: it must lie below every margin that is found in the box."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from exact_margins import as_double, logits_and_scales

from carryscope.certificate.boxes import UNKNOWN, Row, RowSpace
from carryscope.certificate.certify import draw
from carryscope.certificate.features import Features
from carryscope.certificate.functionals import Elements
from carryscope.certificate.intervals import Ranges
from carryscope.certificate.margins import DEMANDED, Neurons, least_margins
from carryscope.certificate.row_tables import RowTables, grow_space
from carryscope.model.config import ModelConfig
from carryscope.model.transformer import Transformer, initialise
from carryscope.stages import Run
from carryscope.task.questions import Questions

COMPLETIONS = 30
"""Questions drawn from every box."""

SHAPES = {
    "plain": ModelConfig(digits=3, heads=2, d_model=24),
    "signed": ModelConfig(digits=2, heads=3, d_model=24, format="signed"),
    "one head": ModelConfig(digits=2, heads=1, d_model=16),
    "no MLP": ModelConfig(digits=2, heads=2, d_model=16, d_mlp=0),
    "one digit": ModelConfig(digits=1, heads=2, d_model=16),
}


def untrained(config: ModelConfig, std: float) -> Transformer:
    """A model with large random weights and biases: attention far from uniform."""
    generator = torch.Generator().manual_seed(0)
    model = initialise(Transformer(config), generator, lambda _: std)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model


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
    model: Transformer, row: int, count: int, seed: int, query_tokens: int = 3
) -> tuple[float, float]:
    """The most by which a bound exceeds a sampled margin, and the share of positive bounds."""
    generator, exact = np.random.default_rng(seed), as_double(model)
    features = Features.of(model)
    space = grow_space(features, Row(model.config.layout, row))
    boxes = random_boxes(space, count, generator)
    digits = space.digits(boxes)
    targets, queries = space.targets(digits), space.queries(digits)
    excess, positive = -np.inf, []
    for query in generator.permutation(np.unique(queries))[:query_tokens]:
        mine = queries == query
        tables = RowTables.of(features, space, int(query))
        ranges = Ranges.of(tables, tables.sets(boxes[mine], digits[mine]))
        neurons = Neurons.of(tables, ranges)
        elements = Elements(tables, ranges, neurons.which)
        winner = torch.from_numpy(targets[mine])
        loser = torch.from_numpy((targets[mine] + generator.integers(1, 12, mine.sum())) % 12)
        number = torch.arange(int(mine.sum()))
        least = least_margins(tables, ranges, neurons, elements, number, winner, loser).least
        positive.append((least > 0).numpy())
        drawn = [draw(space, box[None], COMPLETIONS, generator) for box in boxes[mine]]
        first, second = (
            np.concatenate([getattr(q, side) for q in drawn]) for side in ("first", "second")
        )
        logits, scale = logits_and_scales(exact, Questions(first, second), row)
        each = number.repeat_interleave(COMPLETIONS)
        everyone = torch.arange(len(each))
        margin = logits[everyone, winner[each]] - logits[everyone, loser[each]] - DEMANDED
        lowest = (scale * margin).view(-1, COMPLETIONS).amin(1)
        excess = max(excess, float((least - lowest).max()))
    return excess, float(np.concatenate(positive).mean())


@pytest.mark.parametrize("std", [0.1, 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_bound_of_random_boxes_is_below_the_least_margin_found(shape: str, std: float) -> None:
    model = untrained(SHAPES[shape], std)
    for row in range(model.config.layout.answer_length):
        excess, _ = worst_excess(model, row, count=24, seed=row)
        assert excess <= 0


@pytest.mark.parametrize(("row", "count"), [(0, 20), (1, 40), *((row, 90) for row in range(2, 6))])
def test_the_bound_of_the_shipped_model_is_below_the_least_margin_found(
    row: int, count: int
) -> None:
    """A5 has one query, A4 two, the others ten: about as many boxes of one query for each."""
    excess, positive = worst_excess(Run().model(), row, count=count, seed=row, query_tokens=1)
    assert excess <= 0
    assert positive > 0.1  # it does prove something
