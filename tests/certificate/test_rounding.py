"""What float32 may lose, on models made to lose as much as they can."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from box_spaces import seen
from exact_margins import as_double, logits_and_scales

from carryscope.certificate.boxes import RowSpace
from carryscope.certificate.features import Features
from carryscope.certificate.proof import Engine
from carryscope.certificate.reference import Box, tensors
from carryscope.certificate.row_tables import row_tables, set_numbers
from carryscope.certificate.spot_checks import draw
from carryscope.certificate.subject import ProofSubject
from carryscope.core.errors import WorkError
from carryscope.model.answer_path import answer_logits
from carryscope.model.config import ModelConfig
from carryscope.model.transformer import Transformer, initialise

UP_DOWN = torch.tensor([1.0, 1, 1, 1, -1, -1, -1, -1])
BY_TWO = torch.tensor([1.0, 1, -1, -1, 1, 1, -1, -1])
IN_TURN = torch.tensor([1.0, -1, 1, -1, 1, -1, 1, -1])


def written_where_nothing_reaches() -> Transformer:
    """A value that is 0 exactly and not in float32, in a direction that nothing else reaches."""
    model = Transformer(ModelConfig(digits=1, heads=1, d_model=16, d_head=2, d_mlp=0))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for embedding in (model.embed.W_E, model.pos_embed.W_pos):
            drawn = torch.randn(len(embedding), 8, generator=generator)
            embedding[:, :8] = drawn - drawn.mean(1, keepdim=True)
        attn, beyond = model.blocks[0].attn, torch.cat([torch.zeros(8), UP_DOWN])
        attn.W_V[0, :, 1] = 100
        attn.W_O[0, 1] = 10 * beyond
        model.unembed.W_U.copy_(3e3 * beyond[:, None] * torch.randn(12, generator=generator))
        model.unembed.b_U.copy_(torch.randn(12, generator=generator))
    return model


def neurons_below_half_a_unit() -> Transformer:
    """Each neuron adds less to a large stream than half a unit in its last place."""
    model = Transformer(ModelConfig(digits=1, heads=1, d_model=8, d_head=1, d_mlp=4096))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        model.pos_embed.W_pos[:] = 1000 * IN_TURN
        model.embed.W_E[:] = torch.randn(12, 1, generator=generator) * BY_TWO
        mlp = model.blocks[0].mlp
        mlp.b_in[:] = 1.0
        mlp.W_out[:] = 2.8e-5 * UP_DOWN
        model.unembed.W_U.copy_(1e4 * UP_DOWN[:, None] * torch.randn(12, generator=generator))
        model.unembed.b_U.copy_(0.1 * torch.randn(12, generator=generator))
    return model


def single_questions(space: RowSpace, count: int) -> np.ndarray:
    """Boxes of one question each."""
    pairs = np.random.default_rng(0).integers(100, size=(count, space.columns))
    return np.array(
        [
            [
                np.flatnonzero((t.sizes == 1) & t.members[:, p])[0]
                for t, p in zip(space.trees, one, strict=True)
            ]
            for one in pairs
        ]
    )


@pytest.mark.parametrize("made", [written_where_nothing_reaches, neurons_below_half_a_unit])
def test_no_lead_is_proved_that_float32_does_not_have(
    made: Callable[[], Transformer], engine: Engine
) -> None:
    model = made()
    subject, generator = (
        ProofSubject.of(model, about="float32", engine=engine),
        np.random.default_rng(0),
    )
    for row, space in enumerate(subject.spaces):
        for box in single_questions(space, 20):
            reading, _, target = seen(space, box)
            least = subject.decider(row, reading).leads(box)
            question = draw(space, box[None], 1, generator)
            _, scale = logits_and_scales(as_double(model), question, row)
            tokens = torch.from_numpy(model.config.layout.encode(question))
            with torch.inference_mode():
                plain = model(tokens)[0, model.config.layout.answer_rows[row]].double()
                fast = answer_logits(model, tokens)[0, row].double()
            for logits in (plain, fast):
                lead = float(scale[0]) * (logits[target] - logits).numpy()
                others = np.arange(len(lead)) != target
                assert (least <= lead)[others].all()


def test_neurons_stay_in_their_range_where_attention_goes_astray() -> None:
    """Attention that rounding sends elsewhere changes sigma, and with it what biases add."""
    model = Transformer(ModelConfig(digits=1, heads=1, d_model=8, d_mlp=6))
    initialise(model, torch.Generator().manual_seed(0), lambda _: 1.0)
    with torch.no_grad():
        model.blocks[0].mlp.W_in *= 1e-3
        model.blocks[0].mlp.b_in[:] = torch.tensor([5.0, -5, 5, -5, 5, -5])
    subject = ProofSubject.of(model, about="float32", engine="torch")
    space = subject.spaces[1]
    for one in single_questions(space, 10):
        digits = space.digits(one[None])
        tables = row_tables(subject.features, space, int(space.queries(digits)[0]))
        tables = tables._replace(astray=np.full(1, 1e-3), wander=tables.wander + 0.1)
        box = Box(tensors(tables), set_numbers(space, one[None], digits)[0])
        read = tables.stream[box.tokens.numpy(), 0]
        for taken in read:
            for given in read:
                x = box.x.numpy() + 5e-4 * (given - taken)
                sigma = np.sqrt((x**2).sum() / 8 + tables.epsilon)
                z = tables.into @ x + sigma * tables.beta[:6]
                swing = 5e-4 * np.abs(tables.into @ (given - taken))
                assert (box.z_low.numpy() - swing <= z).all()
                assert (z <= box.z_high.numpy() + swing).all()


@pytest.mark.parametrize("weight", [np.nan, np.inf, 1e30])
def test_weights_that_float32_cannot_multiply_are_refused(weight: float) -> None:
    model = initialise(
        Transformer(ModelConfig(digits=1, heads=1, d_model=8)), torch.Generator().manual_seed(0)
    )
    with torch.no_grad():
        model.blocks[0].ln1.w[0] = weight
        model.blocks[0].attn.W_V[:, 0] = 1e-30
    with pytest.raises(WorkError, match="cannot be certified"):
        Features.of(model)


def test_embeddings_that_nearly_cancel_are_refused() -> None:
    """The scale of the first LayerNorm would be mostly rounding."""
    model = Transformer(ModelConfig(digits=1, heads=1, d_model=8))
    with torch.no_grad():
        model.embed.W_E.fill_(1e4)
        model.pos_embed.W_pos.fill_(-1e4)
    with pytest.raises(WorkError, match="cannot be certified"):
        Features.of(model)
    Features.of(model, "exact")


def test_the_reference_computes_in_float64_throughout() -> None:
    """A large last scale with large offsets shows where it does not: the two engines differ."""
    pytest.importorskip("numba")
    model = Transformer(ModelConfig(digits=1, heads=1, d_model=8))
    initialise(model, torch.Generator().manual_seed(0), lambda _: 1.0)
    with torch.no_grad():
        model.blocks[0].mlp.W_out *= 100
        model.unembed.b_U[:] = torch.linspace(-3e3, 3e3, 12)
    fast, slow = (ProofSubject.of(model, about="exact", engine=e) for e in ("numba", "torch"))
    for row, space in enumerate(fast.spaces):
        for box in single_questions(space, 5):
            reading, _, _ = seen(space, box)
            one, other = (subject.decider(row, reading).leads(box) for subject in (fast, slow))
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10 * np.abs(one).max())
