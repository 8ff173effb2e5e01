import pytest
import torch

from carryscope.model.answer_path import answer_logits
from carryscope.task.sampling import enriched, uniform

SHAPES = [
    {"digits": digits, "layers": layers, "heads": heads, "format": name, "d_model": 12 * heads}
    for digits in (1, 2, 5, 10)
    for layers in (1, 2, 3)
    for heads in (1, 2, 3, 4)
    for name in ("plain", "signed")
]
SHAPES += [{"heads": 4, "d_head": 10, "d_model": 24, "layers": layers} for layers in (1, 2)]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "-".join(map(str, s.values())))


def both_paths(model, generator):
    layout = model.config.layout
    tokens = torch.from_numpy(layout.encode(enriched(generator, 8, layout.digits)))
    return model(tokens)[:, list(layout.answer_rows)], answer_logits(model, tokens)


@shapes
def test_it_equals_the_instrumented_pass(random_model, generator, shape):
    instrumented, fast = both_paths(random_model(**shape), generator)
    torch.testing.assert_close(fast, instrumented, atol=2e-5, rtol=2e-5)


@shapes
def test_its_gradients_equal_those_of_the_instrumented_pass(random_model, generator, shape):
    model = random_model(**shape)
    weights = torch.randn(model.config.vocabulary, generator=torch.Generator().manual_seed(2))
    gradients = []
    for logits in both_paths(model, generator):
        model.zero_grad()
        (logits * weights).mean().backward()
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    for name, expected in gradients[0].items():
        # In layer 0 the key bias has no effect: no gradient here, rounding noise there.
        found = torch.zeros_like(expected) if gradients[1][name] is None else gradients[1][name]
        torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-4, msg=name)


@pytest.mark.parametrize("layers", [1, 2])
def test_attention_only_models_take_it_too(random_model, generator, layers):
    instrumented, fast = both_paths(random_model(layers=layers, d_mlp=0), generator)
    torch.testing.assert_close(fast, instrumented, atol=2e-5, rtol=2e-5)


def test_it_agrees_on_the_paper_model_at_full_width(random_model, generator):
    instrumented, fast = both_paths(random_model(d_model=510), generator)
    torch.testing.assert_close(fast, instrumented, atol=2e-4, rtol=1e-4)


def test_it_agrees_where_the_answer_holds_tokens_that_are_no_digits(random_model, generator):
    model = random_model()
    layout = model.config.layout
    tokens = torch.from_numpy(layout.encode(uniform(generator, 8, 5)))
    tokens[:, layout.first_row + 1 :] = torch.from_numpy(generator.integers(0, 12, (8, 6)))
    instrumented = model(tokens)[:, list(layout.answer_rows)]
    torch.testing.assert_close(answer_logits(model, tokens), instrumented, atol=2e-5, rtol=2e-5)
