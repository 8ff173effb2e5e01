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
PEER_4 = Path(os.environ.get("CARRYSCOPE_PEER_4", ROOT / ".venv-tl4" / "bin" / "python"))


@pytest.fixture
def state_dict(random_model, tmp_path):
    model = random_model(layers=2, heads=2, format="signed", vocabulary=15)
    path = tmp_path / "add_d5_l2_h2_t1K_s1.pth"
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


def of_version_4(model):
    """A state dict as TransformerLens 4 writes it: no axis of heads, matrices transposed."""
    flatten = {
        **dict.fromkeys(("W_Q", "W_K", "W_V"), lambda t: t.permute(0, 2, 1).flatten(0, 1)),
        **dict.fromkeys(("b_Q", "b_K", "b_V"), torch.flatten),
        **dict.fromkeys(("W_U", "W_in", "W_out"), torch.t),
        "W_O": lambda t: t.flatten(0, 1).T,
    }
    flat = {}
    for name, tensor in model.state_dict().items():
        part, _, kind = name.rpartition(".")
        inner = [kind[2:].lower()] if part.endswith(("attn", "mlp")) else []
        ending = "weight" if kind == "w" or kind.startswith("W_") else "bias"
        flat[".".join([part, *inner, ending])] = flatten.get(kind, torch.clone)(tensor)
    return flat


def natively(state):
    """The same before the bridge is put around the model."""
    first = {
        "embed": "tok_embed",
        "pos_embed": "pos",
        "unembed": "head",
        "blocks": "layers",
        "ln_final": "ln_out",
    }
    split = {name: name.partition(".") for name in state}
    renamed = {
        f"{first[part]}.{rest}".replace("mlp.", "mlp.fc_"): state[name]
        for name, (part, _, rest) in split.items()
    }
    del renamed["head.bias"]
    return renamed


@pytest.mark.parametrize("d_mlp", [-1, 0])
@pytest.mark.parametrize("native", [False, True])
def test_the_names_of_version_4_are_read(random_model, tmp_path, d_mlp, native):
    model = random_model(layers=2, heads=4, d_head=10, d_model=24, d_mlp=d_mlp)
    model.unembed.b_U.data.zero_()
    state = of_version_4(model)
    torch.save(natively(state) if native else state, tmp_path / "m.pth")
    again = read_state_dict(tmp_path / "m.pth", heads=4)
    assert again.config == model.config
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name


def test_the_heads_of_version_4_come_from_a_name_a_config_or_a_person(random_model, tmp_path):
    model = random_model(heads=4, d_head=10, d_model=24)
    folder = tmp_path / "QuantaMaths_add_d5_l1_h4_t15K_s372001"
    folder.mkdir()
    for name in ("add_d5_l1_h4_t15K_s1.pth", "m.pth", "QuantaMaths_add_d5_l1_h4_t1K_s1/model.pth"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        torch.save(of_version_4(model), tmp_path / name)
    with pytest.raises(CallError, match=r"m.pth does not say how many heads.* Add --heads N"):
        read_state_dict(tmp_path / "m.pth")
    with pytest.raises(CallError, match=r"7 heads must divide the axis of blocks.0.attn.W_Q"):
        read_state_dict(tmp_path / "m.pth", heads=7)
    with pytest.raises(CallError, match=r"heads must be at least 1. Got 0"):
        read_state_dict(tmp_path / "m.pth", heads=0)
    (tmp_path / "training_loss.json").write_text('{"Config": {"n_heads": 4}, "TrainingLoss": [1]}')
    for name in ("add_d5_l1_h4_t15K_s1.pth", "m.pth", "QuantaMaths_add_d5_l1_h4_t1K_s1/model.pth"):
        assert read_state_dict(tmp_path / name).config == model.config


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ('{"act_fn": "gelu"}', "act_fn must be relu. Got gelu"),
        ('{"normalization_type": "RMS"}', "normalization_type must be LN. Got RMS"),
        ('{"attention_dir": "bidirectional"}', "attention_dir must be causal"),
        ('{"n_heads": "three"}', "The config next to .* does not fit: Expected `int"),
        ("{", "is damaged"),
    ],
)
def test_a_config_that_says_otherwise_is_refused(state_dict, config, message):
    state_dict[1].with_name("config.json").write_text(config)
    with pytest.raises(CallError, match=message):
        read_state_dict(state_dict[1])


@pytest.mark.parametrize(
    ("name", "config", "operation"),
    [
        ("add_d5_l1_h3_t15K_s372001", "{}", "addition"),
        ("sub_d5_l1_h3_t15K_s372001", "{}", "subtraction"),
        ("mix_d5_l1_h3_t15K_s372001", "{}", "mixed"),
        ("ins1_mix_d5_l1_h3_t15K_s372001", "{}", "mixed"),
        ("m", '{"Config": {"perc_sub": 0}}', "addition"),
        ("m", '{"Config": {"perc_sub": 100}}', "subtraction"),
        ("m", '{"Config": {"perc_sub": 66}}', "mixed"),
        ("m", '{"Config": {"model_name": "ins1_mix_d5_l1_h3_t9K_s1"}}', "mixed"),
        ("m", '{"model": {"operation": "subtraction"}}', "subtraction"),
    ],
)
def test_the_operation_comes_from_the_name_or_a_config(
    random_model, tmp_path, name, config, operation
):
    write_state_dict(random_model(format="signed", vocabulary=15), tmp_path / f"{name}.pth")
    (tmp_path / "config.json").write_text(config)
    assert read_state_dict(tmp_path / f"{name}.pth").config.operation == operation


def test_an_operation_that_nothing_says_must_be_named(random_model, tmp_path):
    write_state_dict(random_model(format="signed", vocabulary=15), tmp_path / "m.pth")
    with pytest.raises(CallError, match=r"Add --operation, one of addition, subtraction, mixed"):
        read_state_dict(tmp_path / "m.pth")
    assert read_state_dict(tmp_path / "m.pth", operation="mixed").config.operation == "mixed"
    (tmp_path / "config.json").write_text('{"perc_mult": 50}')
    with pytest.raises(CallError, match="a model that multiplies"):
        read_state_dict(tmp_path / "m.pth")
    write_state_dict(random_model(), tmp_path / "sub_d5_l1_h3_t1K_s1.pth")
    (tmp_path / "config.json").unlink()
    with pytest.raises(CallError, match="needs the signed format and 15 tokens"):
        read_state_dict(tmp_path / "sub_d5_l1_h3_t1K_s1.pth")


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
        (lambda s: {**s, "mlm_head.W": torch.ones(2)}, "must be a decoder. Got an encoder"),
        (
            lambda s: {"embed.token_type_embed.W_token_type": torch.ones(2, 2)},
            "must be a decoder. Got an encoder: it has embed.token_type_embed",
        ),
        (lambda s: torch.ones(3), "must hold a state dict of tensors. Got Tensor"),
    ],
)
def test_state_dicts_that_do_not_fit_are_refused(state_dict, tmp_path, change, message):
    state = torch.load(state_dict[1], weights_only=True)
    path = tmp_path / "add_d5_l2_h2_t2K_s1.pth"
    torch.save(change(state), path)
    with pytest.raises(CallError, match=message):
        read_state_dict(path)


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
    "wide-heads": {
        "heads": 4,
        "d_head": 170,
        "d_model": 510,
        "layers": 3,
        "vocabulary": 15,
        "format": "signed",
    },
}


def random_tokens(context: int) -> torch.Tensor:
    return torch.randint(0, 12, (8, context), generator=torch.Generator().manual_seed(0))


def peer(*arguments: str, version: int = 2) -> None:
    """Run a script that stands beside this test, with TransformerLens."""
    python, script = (
        (PEER, "transformer_lens_peer.py")
        if version == 2
        else (PEER_4, "transformer_lens_4_peer.py")
    )
    quiet = {**os.environ, "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}
    command = [python, Path(__file__).with_name(script), *arguments]
    subprocess.run(command, check=True, env=quiet, capture_output=True)


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
        model = read_state_dict(tmp_path / "theirs.pth", operation="addition")
        assert model.config == config
        theirs = torch.load(tmp_path / "cache.pt", weights_only=True)["logits"]
        torch.testing.assert_close(model(tokens), theirs, atol=1e-4, rtol=0)


@pytest.mark.slow
@pytest.mark.skipif(not PEER_4.exists(), reason="no venv of TransformerLens 4")
@pytest.mark.parametrize("shape", [SHAPES["wide-heads"], SHAPES["attention-only"]])
def test_version_4_converts_our_export_and_we_read_what_it_writes(random_model, tmp_path, shape):
    model = random_model(**shape)
    write_state_dict(model, tmp_path / "ours.pth")
    torch.save(hooked_transformer_config(model.config), tmp_path / "config.pt")
    tokens = random_tokens(model.config.context)
    torch.save(tokens, tmp_path / "tokens.pt")
    peer(str(tmp_path), version=4)
    theirs = torch.load(tmp_path / "logits.pt", weights_only=True)
    torch.testing.assert_close(model(tokens), theirs, atol=1e-4, rtol=0)
    for name in ("converted.pth", "bridge.pth"):
        again = read_state_dict(tmp_path / name, operation="addition", heads=model.config.heads)
        assert again.config == model.config
        for part, tensor in model.state_dict().items():
            assert torch.equal(again.state_dict()[part], tensor), part


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
