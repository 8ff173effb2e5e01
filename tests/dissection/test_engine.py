"""The engine's fast ways equal the instrumented pass, which has nothing clever in it."""

import numpy as np
import pytest
import torch
from hooked import answers_by_hooks

from carryscope.core.errors import CallError
from carryscope.dissection.engine import Engine
from carryscope.dissection.interventions import Ablate, Cut, Node, Patch, all_nodes
from carryscope.task.sampling import uniform

SHAPES = {
    "one layer": {"digits": 3},
    "two layers": {"digits": 3, "layers": 2},
    "three layers, signed": {"digits": 2, "layers": 3, "format": "signed"},
    "attention only": {"digits": 3, "d_mlp": 0},
    "two layers, attention only": {"digits": 2, "layers": 2, "d_mlp": 0},
    "four heads, signed, 15 tokens": {
        "digits": 2,
        "heads": 4,
        "format": "signed",
        "vocabulary": 15,
    },
}


def every_kind(config, source):
    """Interventions of every kind at every layer, at several rows and heads."""
    start, stop = config.layout.answer_rows.start, config.layout.answer_rows.stop
    for layer in range(config.layers):
        block = f"blocks.{layer}."
        for rows in ((start,), (1, start + 1), tuple(range(config.context))):
            for heads in (None, (0,), (0, 2)):
                yield Ablate(block + "attn.hook_z", rows, heads, "zero")
                yield Ablate(block + "attn.hook_z", rows, heads, "mean")
                yield Patch(block + "attn.hook_z", rows, source, heads)
        for part in ("hook_mlp_out", "hook_resid_post"):
            for rows in ((start,), (0, stop - 1), tuple(range(config.context))):
                if part == "hook_resid_post" or config.d_mlp:
                    yield Ablate(block + part, rows, how="zero")
                    yield Ablate(block + part, rows, how="mean")
                    yield Patch(block + part, rows, source)
        for keys in ((0,), (1, start), tuple(range(stop))):
            for heads in (None, (1,)):
                yield Cut(block + "attn.hook_pattern", (start, stop - 1), keys, heads)
                yield Cut(block + "attn.hook_pattern", tuple(range(stop)), keys, heads)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_every_intervention_gives_what_the_instrumented_pass_gives(shape, random_model, generator):
    model = random_model(**shape)
    base, source, reference = (uniform(generator, 12, shape["digits"]) for _ in range(3))
    changes = list(every_kind(model.config, source))
    outcomes = Engine(model, reference).answers(base, changes, losses=True)
    for change, loss, said in zip(changes, outcomes.loss, outcomes.predicted, strict=True):
        logits = answers_by_hooks(model, base, [change], reference).double()
        chances = logits.log_softmax(-1)
        truth = torch.from_numpy(outcomes.truth)[..., None]
        np.testing.assert_allclose(loss, -chances.gather(-1, truth)[..., 0], atol=2e-4)
        chosen = chances.gather(-1, torch.from_numpy(said).long()[..., None])[..., 0]
        np.testing.assert_allclose(chosen, chances.max(-1).values, atol=2e-4)


def test_with_no_change_the_answers_are_the_clean_ones(random_model, generator):
    model = random_model(digits=3, layers=2)
    questions = uniform(generator, 20, 3)
    outcomes = Engine(model, questions).answers(questions)
    tokens = torch.from_numpy(model.config.layout.encode(questions))
    clean = model(tokens)[:, 7:11].argmax(-1)
    np.testing.assert_array_equal(outcomes.predicted[0], clean)


def test_chunks_make_no_difference(random_model, generator, monkeypatch):
    model = random_model(digits=2)
    base, source = uniform(generator, 30, 2), uniform(generator, 30, 2)
    changes = [node.patched(source) for node in all_nodes(model.config)]
    changes.append((changes[0], Node(6, 0, (1,)).ablated()))
    whole = Engine(model, source).answers(base, changes, losses=True)
    monkeypatch.setattr("carryscope.dissection.engine.CHUNK", 7)
    parts = Engine(model, source).answers(base, changes, losses=True)
    np.testing.assert_allclose(whole.loss, parts.loss, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_several_changes_at_once_are_all_made(shape, random_model, generator):
    """Any three, in any layers and at the same rows: as the instrumented pass makes them."""
    model = random_model(**shape)
    base, source, reference = (uniform(generator, 6, shape["digits"]) for _ in range(3))
    kinds = list(every_kind(model.config, source))
    several = [tuple(kinds[i] for i in generator.permutation(len(kinds))[:3]) for _ in range(40)]
    losses = Engine(model, reference).answers(base, several, losses=True).loss
    truth = torch.from_numpy(model.config.layout.answer_part(model.config.layout.encode(base)))
    for changes, loss in zip(several, losses, strict=True):
        by_hand = answers_by_hooks(model, base, changes, reference).double().log_softmax(-1)
        np.testing.assert_allclose(loss, -by_hand.gather(-1, truth[..., None])[..., 0], atol=2e-4)


def test_patching_a_question_into_itself_changes_nothing(random_model, generator):
    model = random_model(digits=3, layers=2)
    questions = uniform(generator, 10, 3)
    engine = Engine(model, questions)
    changes = [node.patched(questions) for node in all_nodes(model.config)]
    clean = engine.answers(questions, losses=True)
    patched = engine.answers(questions, changes, losses=True)
    np.testing.assert_allclose(
        patched.loss, np.broadcast_to(clean.loss, patched.loss.shape), atol=1e-4
    )


def test_nothing_is_left_behind_on_the_model(random_model, generator):
    model = random_model(digits=2)
    questions = uniform(generator, 10, 2)
    tokens = torch.from_numpy(model.config.layout.encode(questions))
    before = model(tokens)
    engine = Engine(model, questions)
    engine.answers(questions, [node.ablated("zero") for node in all_nodes(model.config)])
    assert torch.equal(model(tokens), before)


def test_nodes_and_sets_of_heads_are_written_as_the_field_writes_them():
    assert str(Node(13, 0, (2,))) == "P13.L0.H2"
    assert str(Node(13, 1)) == "P13.L1.MLP"
    assert str(Node(13, 0, (0, 2))) == "P13.L0.H0+H2"
    assert Node.parse("P13.L0.H2") == Node(13, 0, (2,))
    assert Node.parse("P13.L0.MLP") == Node(13, 0)
    with pytest.raises(CallError, match="P13.L0.H2"):
        Node.parse("P13H2")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Ablate("blocks.0.attn.hook_q", (7,)), "Ablate works at blocks.L.attn.hook_z"),
        (Ablate("blocks.1.attn.hook_z", (7,)), "with L below 1"),
        (Ablate("blocks.0.attn.hook_z", (12,)), "between 0 and 11"),
        (Ablate("blocks.0.attn.hook_z", (7,), (3,)), "Heads must be between 0 and 2"),
        (Ablate("blocks.0.attn.hook_z", (7,), (0, 0)), "Each head can be named once"),
        (Ablate("blocks.0.hook_mlp_out", (7,), (1,)), "has no heads"),
        (Cut("blocks.0.attn.hook_z", (7,), (1,)), "Cut works at blocks.L.attn.hook_pattern"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(change, message, random_model, generator):
    questions = uniform(generator, 3, 3)
    with pytest.raises(CallError, match=message):
        Engine(random_model(digits=3), questions).answers(questions, [change])


def test_a_patch_needs_one_source_per_question(random_model, generator):
    model = random_model(digits=2)
    questions = uniform(generator, 5, 2)
    patch = Node(6, 0, (0,)).patched(questions[:3])
    with pytest.raises(CallError, match="one source for each of the 5 questions. Got 3"):
        Engine(model, questions).answers(questions, [patch])
