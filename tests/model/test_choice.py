from pathlib import Path

import pytest
import torch

import carryscope
from carryscope.model import choice
from carryscope.model.answer_path import Unwritten, answer_logits, answer_rows
from carryscope.model.choice import answer_tokens, chosen_tokens
from carryscope.model.files import load_model
from carryscope.model.prediction import answer, predict
from carryscope.task.sampling import enriched, uniform

SHAPES = [{}, {"layers": 2}, {"format": "signed", "heads": 2}, {"digits": 1, "heads": 1}]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "-".join(map(str, s)) or "plain")


def set_offsets(model, generator, size):
    """Small offsets hardly matter; with large ones the scale decides who leads."""
    with torch.no_grad():
        model.ln_final.b.zero_()
        drawn = generator.normal(size=model.config.vocabulary) * size
        model.unembed.b_U.copy_(torch.from_numpy(drawn))


def some_tokens(model, generator, count=200):
    layout = model.config.layout
    return torch.from_numpy(layout.encode(enriched(generator, count, layout.digits)))


@pytest.fixture
def computed(monkeypatch):
    """How many rows had to be computed in full."""
    rows, logits_of = [], choice.logits_of

    def counted(model, residual):
        rows.append(residual[..., 0].numel())
        return logits_of(model, residual)

    monkeypatch.setattr(choice, "logits_of", counted)
    return rows


@shapes
def test_it_is_the_token_with_the_largest_logit(random_model, generator, shape, computed):
    model = random_model(**shape)
    for size in (0.001, 0.01, 0.1):
        set_offsets(model, generator, size)
        tokens = some_tokens(model, generator)
        expected = answer_logits(model, tokens).argmax(-1)
        assert (answer_tokens(model, tokens) == expected).all()
    # Some rows were sure, and some were not.
    assert 0 < sum(computed) < 3 * expected.numel()


@pytest.mark.parametrize("layers", [1, 2])
def test_a_model_without_an_mlp_has_nothing_to_save(random_model, generator, layers):
    model = random_model(layers=layers, d_mlp=0)
    tokens = some_tokens(model, generator)
    assert (answer_tokens(model, tokens) == answer_logits(model, tokens).argmax(-1)).all()


def test_what_is_not_a_number_leads_nobody(random_model, generator, computed):
    model = random_model()
    with torch.no_grad():
        model.blocks[0].mlp.W_out[0, 0] = torch.nan
    tokens = some_tokens(model, generator, 5)
    assert (answer_tokens(model, tokens) == answer_logits(model, tokens).argmax(-1)).all()
    assert sum(computed) == 5 * 6


def test_a_trained_model_hardly_ever_needs_the_whole_stream(generator, computed):
    model = load_model(Path(carryscope.__file__).parent / "shipped" / "fast-5")
    tokens = some_tokens(model, generator, 1000)
    said = answer_tokens(model, tokens)
    assert (said == answer_logits(model, tokens).argmax(-1)).all()
    assert 0 < sum(computed) < 0.01 * said.numel()


def test_the_true_scale_lies_between_the_two_ends(random_model, generator):
    model = random_model()
    set_offsets(model, generator, 1.0)
    with torch.no_grad():
        rows = answer_rows(model, some_tokens(model, generator))
        low, high = choice._both_ends(model, rows)
        logits = choice.logits_of(model, rows.written())
    offset = high - low
    most_over_true = ((logits - offset) / low).median(-1, keepdim=True).values
    assert (most_over_true > 1).all()
    torch.testing.assert_close(low * most_over_true + offset, logits, atol=1e-4, rtol=1e-4)


def test_rows_can_be_given_one_by_one(random_model, generator):
    model = random_model()
    with torch.no_grad():
        rows = answer_rows(model, some_tokens(model, generator))
        third = Unwritten(rows.block, rows.residual[:, 2], rows.neurons[:, 2])
        assert (chosen_tokens(model, third) == chosen_tokens(model, rows)[:, 2]).all()


@pytest.mark.parametrize("free_running", [False, True])
def test_answers_are_those_of_predictions(random_model, generator, free_running):
    model = random_model()
    questions = uniform(generator, 600, 5)
    said = answer(model, questions, free_running=free_running)
    expected = predict(model, questions, free_running=free_running)
    assert (said.predicted == expected.predicted).all()
    assert (said.truth == expected.truth).all()


def test_no_questions_get_no_answers(random_model, generator):
    said = answer(random_model(), uniform(generator, 0, 5), free_running=True)
    assert said.predicted.shape == (0, 6)
