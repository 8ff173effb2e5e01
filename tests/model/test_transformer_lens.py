"""State dicts in and out. The slow tests talk to a real TransformerLens, in its own venv."""

import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from carryscope.core.errors import CallError
from carryscope.model.transformer_lens import (
    hooked_transformer_config,
    read_state_dict,
    write_state_dict,
)
from carryscope.training.data import training_batch
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer

ROOT = Path(__file__).parents[2]
PEER = Path(os.environ.get("CARRYSCOPE_PEER", ROOT / ".venv-tl" / "bin" / "python"))


@pytest.fixture
def state_dict(random_model, tmp_path):
    model = random_model(layers=2, heads=2, format="signed", vocabulary=15)
    path = tmp_path / "model.pth"
    write_state_dict(model, path)
    return model, path


def test_shape_is_inferred_and_weights_survive(state_dict):
    model, path = state_dict
    again = read_state_dict(path)
    assert again.config == model.config
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor)


def test_heads_of_any_width_survive(random_model, tmp_path):
    model = random_model(heads=4, d_head=10, d_model=24)
    write_state_dict(model, tmp_path / "m.pth")
    again = read_state_dict(tmp_path / "m.pth")
    assert again.config == model.config
    assert again.config.d_head == 10
    assert hooked_transformer_config(again.config)["d_head"] == 10


def test_attention_only_models_are_recognised(random_model, tmp_path):
    model = random_model(d_mlp=0)
    write_state_dict(model, tmp_path / "m.pth")
    assert read_state_dict(tmp_path / "m.pth").config == model.config


class Malicious:
    def __reduce__(self):
        return (os.mkdir, ("should-not-exist",))


def test_a_pickle_that_would_run_code_is_refused_and_does_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.pth").write_bytes(pickle.dumps(Malicious()))
    with pytest.raises(CallError, match="not a state dict that can be read safely"):
        read_state_dict(tmp_path / "m.pth")
    assert not (tmp_path / "should-not-exist").exists()


def without(state, *names):
    return {name: tensor for name, tensor in state.items() if name not in names}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: without(s, "embed.W_E"), "not a TransformerLens state dict: its embed.W_E"),
        (lambda s: without(s, "blocks.0.ln1.w", "blocks.0.ln1.b"), "has no LayerNorm weights"),
        (lambda s: {**s, "pos_embed.W_pos": torch.ones(20, 24)}, "context must be 3n"),
        (lambda s: {**s, "embed.W_E": torch.ones(50, 24)}, "vocabulary must be 12 or 15"),
        (
            lambda s: {**s, "blocks.0.attn.W_Q": torch.ones(2, 24, 7)},
            r"does not fit its config: blocks.0.attn.W_K must be \(2, 24, 7\)",
        ),
        (lambda s: without(s, "blocks.1.mlp.W_in"), "does not fit its config: blocks.1.mlp.W_in"),
        (lambda s: {**s, "embed.W_E": torch.ones(12)}, "must have 2, 2 and 3 axes"),
        (lambda s: {**s, "blocks.0.attn.W_Q": torch.ones(2, 24)}, "must have 2, 2 and 3 axes"),
        (lambda s: {**s, "pos_embed.W_pos": torch.tensor(1.0)}, "must have 2, 2 and 3 axes"),
        (lambda s: {**s, 7: torch.ones(2)}, "must hold a state dict of tensors. Got dict"),
        (lambda s: {"a": 1}, "must hold a state dict of tensors. Got dict"),
        (lambda s: torch.ones(3), "must hold a state dict of tensors. Got Tensor"),
    ],
)
def test_state_dicts_that_do_not_fit_are_refused(state_dict, tmp_path, change, message):
    state = torch.load(state_dict[1], weights_only=True)
    torch.save(change(state), tmp_path / "changed.pth")
    with pytest.raises(CallError, match=message):
        read_state_dict(tmp_path / "changed.pth")


def test_a_damaged_state_dict_is_refused_or_read_but_never_a_crash(state_dict, tmp_path):
    content, refused = state_dict[1].read_bytes(), 0
    for at in np.random.default_rng(0).integers(0, len(content), 200):
        damaged = bytearray(content)
        damaged[at] ^= 255
        (tmp_path / "m.pth").write_bytes(damaged)
        try:
            read_state_dict(tmp_path / "m.pth")
        except CallError:
            refused += 1
    assert refused > 0


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04 cut short"])
def test_files_of_another_kind_are_refused(tmp_path, content):
    (tmp_path / "m.pth").write_bytes(content)
    with pytest.raises(CallError, match="not a state dict that can be read safely"):
        read_state_dict(tmp_path / "m.pth")


def test_a_missing_file_is_told_in_one_line(tmp_path):
    with pytest.raises(CallError, match=r"Cannot read .*m.pth: No such file"):
        read_state_dict(tmp_path / "m.pth")


SHAPES = {
    "paper": {"d_model": 510},
    "signed-two-layers": {"layers": 2, "heads": 4, "d_model": 64, "format": "signed"},
    "later-library": {"vocabulary": 15, "format": "signed", "digits": 6},
    "attention-only": {"d_mlp": 0},
    "wide-heads": {"heads": 4, "d_head": 10, "d_model": 24},
}


def random_tokens(context: int) -> torch.Tensor:
    return torch.randint(0, 12, (8, context), generator=torch.Generator().manual_seed(0))


def peer(*arguments: str) -> None:
    """Run the script that stands beside this test, with TransformerLens."""
    script = Path(__file__).with_name("transformer_lens_peer.py")
    quiet = {**os.environ, "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}
    subprocess.run([PEER, script, *arguments], check=True, env=quiet, capture_output=True)


@pytest.mark.slow
@pytest.mark.skipif(not PEER.exists(), reason="no TransformerLens venv; `make test-slow` makes it")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
class TestAgainstRealTransformerLens:
    def test_it_loads_our_export_and_every_site_agrees(self, random_model, tmp_path, shape):
        model = random_model(**shape)
        write_state_dict(model, tmp_path / "ours.pth")
        torch.save(hooked_transformer_config(model.config), tmp_path / "config.pt")
        tokens = random_tokens(model.config.context)
        torch.save(tokens, tmp_path / "tokens.pt")
        peer("run", str(tmp_path))
        theirs = torch.load(tmp_path / "cache.pt", weights_only=True)
        logits, cache = model.run_with_cache(tokens)
        assert set(cache) <= set(theirs)
        for name, value in {**cache, "logits": logits}.items():
            torch.testing.assert_close(value, theirs[name], atol=1e-4, rtol=1e-4, msg=name)

    def test_its_own_file_is_read_and_its_logits_reproduced(self, random_model, tmp_path, shape):
        config = random_model(**shape).config
        torch.save(hooked_transformer_config(config), tmp_path / "config.pt")
        tokens = random_tokens(config.context)
        torch.save(tokens, tmp_path / "tokens.pt")
        peer("make", str(tmp_path))
        model = read_state_dict(tmp_path / "theirs.pth")
        assert model.config == config
        theirs = torch.load(tmp_path / "cache.pt", weights_only=True)["logits"]
        torch.testing.assert_close(model(tokens), theirs, atol=1e-4, rtol=0)


@pytest.mark.slow
@pytest.mark.skipif(not PEER.exists(), reason="no TransformerLens venv; `make test-slow` makes it")
def test_a_training_by_the_papers_recipe_is_the_same_on_transformer_lens(tmp_path):
    trainer, steps = Trainer(run_config("paper-5", {})), 60
    write_state_dict(trainer.model, tmp_path / "ours.pth")
    torch.save(hooked_transformer_config(trainer.model.config), tmp_path / "config.pt")
    asked = [training_batch(trainer.recipe, 5, step) for step in range(steps)]
    batches = [torch.from_numpy(trainer.model.config.layout.encode(batch)) for batch in asked]
    torch.save(torch.stack(batches), tmp_path / "tokens.pt")
    peer("train", str(tmp_path))
    theirs = torch.load(tmp_path / "losses.pt", weights_only=True)
    ours = torch.tensor([trainer.advance().loss for _ in range(steps)])
    torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=0)
    assert ours[-1] < ours[0] - 0.5
