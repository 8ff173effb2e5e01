"""The bound against the model itself: it must lie below every margin that is found in the box."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from exact_margins import as_double, logits_and_scales

from carryscope.certificate.boxes import UNKNOWN, Row, RowSpace
from carryscope.certificate.features import Features
from carryscope.certificate.margins import DEMANDED, Bounds
from carryscope.certificate.row_tables import RowTables, grow_space
from carryscope.certificate.spot_checks import draw
from carryscope.model.config import ModelConfig
from carryscope.model.transformer import Transformer, initialise
from carryscope.task.questions import Questions

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
    model: Transformer,
    features: Features,
    row: int,
    count: int,
    *,
    queries_tried: int = 3,
    completions: int = 30,
) -> tuple[float, float]:
    """The most by which a bound exceeds a sampled margin, and the share of positive bounds.

    `completions` questions are drawn from every box.
    """
    generator, exact = np.random.default_rng(row), as_double(model)
    space = grow_space(features, Row(model.config.layout, row))
    boxes = random_boxes(space, count, generator)
    queries = space.queries(space.digits(boxes))
    excess, positive = -np.inf, []
    for query in generator.permutation(np.unique(queries))[:queries_tried]:
        mine = boxes[queries == query]
        bounds = Bounds.of(RowTables.of(features, space, int(query)), mine)
        number, winner = torch.arange(len(mine)), bounds.target
        loser = (winner + torch.from_numpy(generator.integers(1, 12, len(mine)))) % 12
        least = bounds.least(number, winner, loser)
        positive.append((least > 0).numpy())
        drawn = Questions.joined([draw(space, box[None], completions, generator) for box in mine])
        logits, scale = logits_and_scales(exact, drawn, row)
        each = number.repeat_interleave(completions)
        everyone = torch.arange(len(each))
        margin = logits[everyone, winner[each]] - logits[everyone, loser[each]] - DEMANDED
        lowest = (scale * margin).view(-1, completions).amin(1)
        excess = max(excess, float((least - lowest).max()))
    return excess, float(np.concatenate(positive).mean())


@pytest.mark.parametrize("std", [0.1, 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_bound_of_random_boxes_is_below_the_least_margin_found(shape: str, std: float) -> None:
    model = untrained(SHAPES[shape], std)
    features = Features.of(model)
    for row in range(model.config.layout.answer_length):
        excess, _ = worst_excess(model, features, row, count=24)
        assert excess <= 0


@pytest.mark.parametrize(("row", "count"), [(0, 20), (1, 40), *((row, 90) for row in range(2, 6))])
def test_the_bound_of_the_shipped_model_is_below_the_least_margin_found(
    shipped: Transformer, shipped_features: tuple[Features, Features], row: int, count: int
) -> None:
    """A5 has one query, A4 two, the others ten: about as many boxes of one query for each."""
    excess, positive = worst_excess(
        shipped, shipped_features[0], row, count, queries_tried=1, completions=8
    )
    assert excess <= 0
    assert positive > 0.1  # it does prove something
