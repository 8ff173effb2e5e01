import math

import pytest
import torch
from micro_model import MICRO_LOGITS, micro_model

from carryscope.core.errors import CallError
from carryscope.model.config import ModelConfig
from carryscope.model.sites import site_table, sites
from carryscope.model.transformer import Transformer, initialise


def tokens(model: Transformer, count: int = 4) -> torch.Tensor:
    draws = torch.Generator().manual_seed(1)
    return torch.randint(0, 10, (count, model.config.context), generator=draws)


def test_logits_of_the_micro_model_are_those_worked_out_by_hand():
    logits = micro_model()(torch.tensor([[1, 10, 2, 11, 0, 3]]))
    torch.testing.assert_close(logits[0, 3], torch.tensor(MICRO_LOGITS), atol=1e-4, rtol=0)


def test_the_future_does_not_reach_the_past(random_model):
    model = random_model(layers=2)
    before = tokens(model)
    after = before.clone()
    after[:, 12:] = 9 - after[:, 12:]
    torch.testing.assert_close(model(before)[:, :12], model(after)[:, :12])
    assert not torch.allclose(model(before)[:, 12:], model(after)[:, 12:])


def test_the_paper_model_has_the_papers_shape():
    config = ModelConfig()
    assert (config.d_model, config.d_head, config.d_mlp) == (510, 170, 2040)
    assert ModelConfig(heads=2).d_model == ModelConfig(heads=4).d_model == 512


def test_initial_weights_have_the_papers_spread_and_biases_are_zero():
    model = initialise(Transformer(ModelConfig()), torch.Generator().manual_seed(0))
    assert float(model.blocks[0].attn.W_Q.detach().std()) == pytest.approx(
        0.8 / math.sqrt(510), rel=0.01
    )
    assert not model.blocks[0].mlp.b_in.any()
    assert (model.ln_final.w == 1).all()


@pytest.mark.parametrize("fields", [{"layers": 1}, {"layers": 2, "d_mlp": 0}, {"format": "signed"}])
def test_the_table_of_sites_tells_the_shape_of_every_value_in_the_cache(random_model, fields):
    model = random_model(**fields)
    _, cache = model.run_with_cache(tokens(model))
    named = sites(model.config)
    assert list(cache) == list(named)
    for name, value in cache.items():
        assert tuple(value.shape) == (4, *named[name].axes.values())


def test_the_printed_table_names_every_site_with_its_axes():
    table = site_table(ModelConfig())
    assert "blocks.0.attn.hook_z" in table
    assert "row=18 head=3 d_head=170" in table


def test_a_cache_of_some_sites_holds_only_those(random_model):
    model = random_model()
    _, cache = model.run_with_cache(tokens(model), ["blocks.0.attn.hook_z"])
    assert list(cache) == ["blocks.0.attn.hook_z"]


def test_a_hook_replaces_the_value_at_its_site_and_leaves_nothing_behind(random_model):
    model = random_model()
    clean = model(tokens(model))
    seen = []

    def silence(value, site):
        seen.append(site.name)
        return torch.zeros_like(value)

    hooked = model.run_with_hooks(tokens(model), [("blocks.0.hook_resid_post", silence)])
    silent = model.ln_final.b @ model.unembed.W_U + model.unembed.b_U
    torch.testing.assert_close(hooked, silent.expand_as(hooked))
    torch.testing.assert_close(model(tokens(model)), clean)
    assert seen == ["blocks.0.hook_resid_post"]


def test_a_hook_that_returns_nothing_changes_nothing(random_model):
    model = random_model()
    hooked = model.run_with_hooks(tokens(model), [("hook_embed", lambda value, site: None)])
    torch.testing.assert_close(hooked, model(tokens(model)))


def test_two_hooks_on_one_site_are_called_in_order(random_model):
    model = random_model()
    twice = [("hook_embed", lambda v, _: v + 1), ("hook_embed", lambda v, _: v * 2)]
    once = [("hook_embed", lambda v, _: (v + 1) * 2)]
    torch.testing.assert_close(
        model.run_with_hooks(tokens(model), twice), model.run_with_hooks(tokens(model), once)
    )


@pytest.mark.parametrize("name", ["blocks.1.attn.hook_z", "hook_z", "blocks.0.hook_mlp_out", "x"])
def test_a_site_that_the_model_does_not_have_is_an_error(random_model, name):
    model = random_model(d_mlp=0)
    with pytest.raises(CallError, match=f"This model has no site '{name}'"):
        model.run_with_hooks(tokens(model), [(name, lambda value, site: value)])
    with pytest.raises(CallError, match="no site"):
        model.run_with_cache(tokens(model), [name])


def test_the_error_for_an_unknown_site_names_a_likely_one(random_model):
    model = random_model()
    with pytest.raises(CallError, match=r"Did you mean blocks.0.attn.hook_z\?"):
        model.run_with_cache(tokens(model), ["hook_z"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"d_model": 50},
            "heads must divide d_model unless d_head is set. Got 3 heads and d_model 50.",
        ),
        ({"heads": 0}, "heads must be at least 1. Got 0."),
        ({"layers": 0}, "layers must be at least 1. Got 0."),
        ({"d_head": -1}, "d_head must be at least 1. Got -1."),
        ({"d_mlp": -2}, "d_mlp must be at least 0. Got -2."),
        ({"d_model": -3}, "d_model must be at least 1. Got -3."),
        ({"digits": 21}, "digits must be between 1 and 20. Got 21."),
        ({"vocabulary": 11}, "vocabulary must be 12 or 15. Got 11."),
    ],
)
def test_shapes_that_cannot_be_are_refused(fields, message):
    with pytest.raises(CallError, match=message):
        ModelConfig(**fields)
