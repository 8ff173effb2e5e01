"""Trainings that start from another run, with parts drawn anew and parts left alone."""

import shutil
from pathlib import Path

import msgspec
import pytest
import torch
from watching import Watched

import carryscope
from carryscope.cli.main import run
from carryscope.core.errors import CallError
from carryscope.core.progress import Stopped
from carryscope.core.storage import read_json
from carryscope.model.answer_path import answer_logits
from carryscope.model.files import load_model, weights_hash
from carryscope.training.config import (
    MODEL_PARTS,
    RunConfig,
    TrainingConfig,
    all_but,
    part_of,
)
from carryscope.training.loop import train
from carryscope.training.presets import preset, run_config, started_config
from carryscope.training.trainer import Trainer

SHIPPED = Path(carryscope.__file__).parent / "shipped" / "fast-5"
SMALL = {"steps": 8, "d_model": 8, "batch": 32}
MLP_ALONE = {"renew": ("mlp",), "freeze": all_but("mlp")}

pytestmark = pytest.mark.usefixtures("few_questions")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A run whose weights have all moved."""
    directory = tmp_path_factory.mktemp("runs") / "base"
    train(run_config("tiny", SMALL), directory)
    return directory


def config_of(directory):
    return read_json(directory / "config.json", RunConfig)


def weights(directory):
    return dict(load_model(directory).state_dict())


def same(one, other, parts):
    """For each parameter of these parts, whether it is the same bit for bit."""
    return [torch.equal(one[name], other[name]) for name in one if part_of(name) in parts]


def test_every_parameter_belongs_to_a_part_and_a_layer_norm_to_what_reads_through_it():
    model = Trainer(run_config("tiny", {"d_model": 24, "layers": 2})).model
    names = {part: [] for part in MODEL_PARTS}
    for name, _ in model.named_parameters():
        names[part_of(name)].append(name)
    assert names["embeddings"] == ["embed.W_E", "pos_embed.W_pos"]
    assert {"blocks.1.ln1.w", "blocks.0.attn.b_O"} <= set(names["attention"])
    assert {"blocks.1.ln2.b", "blocks.0.mlp.W_out"} <= set(names["mlp"])
    assert set(names["readout"]) == {"ln_final.w", "ln_final.b", "unembed.W_U", "unembed.b_U"}


@pytest.mark.parametrize("part", MODEL_PARTS)
def test_a_part_trained_alone_moves_and_nothing_else_does(tmp_path, base, part):
    train(started_config(base, {"freeze": all_but(part)}), tmp_path, start_from=base)
    before, after = weights(base), weights(tmp_path)
    assert all(same(before, after, all_but(part)))
    del before["blocks.0.attn.b_K"]  # it has no gradient in layer 0
    assert not any(same(before, after, [part]))


def test_weights_decay_and_gradients_leave_a_frozen_part_of_a_new_run_alone():
    trainer = Trainer(
        run_config("fast-5", {**SMALL, "heads": 2, "head_delay": 3, "freeze": ("mlp",)})
    )
    before = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    for _ in range(3):
        trainer.advance()
    after = dict(trainer.model.named_parameters())
    assert all(same(before, after, ["mlp"]))
    assert not all(same(before, after, ["attention"]))
    assert all(p.grad is None for name, p in after.items() if part_of(name) == "mlp")


def test_a_renewed_part_is_drawn_by_the_new_seed_and_all_else_is_taken_over(base):
    config = started_config(base, {"renew": ("attention", "mlp"), "seed": 7})
    trainer, drawn = Trainer(config), dict(Trainer(config).model.named_parameters())
    trainer.start_from(load_model(base))
    start = dict(trainer.model.named_parameters())
    assert all(same(start, weights(base), ["embeddings", "readout"]))
    assert all(same(start, drawn, ["attention", "mlp"]))
    matrices = {name: w for name, w in start.items() if ".W_" in name}
    assert not any(same(matrices, weights(base), ["attention", "mlp"]))


@pytest.mark.parametrize("stop", [1, 5])
@pytest.mark.parametrize("part", ["mlp", "attention"])
def test_it_continues_bit_for_bit_without_the_run_it_started_from(tmp_path, base, part, stop):
    gone = shutil.copytree(base, tmp_path / "gone")
    config = started_config(gone, {"renew": (part,), "freeze": all_but(part), "seed": 1})
    train(config, tmp_path / "whole", start_from=base)
    with pytest.raises(Stopped):
        train(config, tmp_path / "parts", start_from=gone, progress=Watched(stop_after=stop))
    shutil.rmtree(gone)
    train(config, tmp_path / "parts")
    for name in ("model.safetensors", "metrics.jsonl"):
        one, other = ((tmp_path / which / name).read_bytes() for which in ("whole", "parts"))
        assert one == other


def test_a_run_killed_before_its_first_step_has_the_weights_it_starts_from(
    tmp_path, base, monkeypatch
):
    config = started_config(base, MLP_ALONE)
    with monkeypatch.context() as patched:
        patched.setattr("carryscope.training.loop.MetricsWriter", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train(config, tmp_path / "cut", start_from=base)
    train(config, tmp_path / "cut")
    train(config, tmp_path / "whole", start_from=base)
    assert all(same(weights(tmp_path / "cut"), weights(tmp_path / "whole"), MODEL_PARTS))


def test_a_run_killed_before_it_had_the_weights_says_where_they_come_from(
    tmp_path, base, monkeypatch
):
    config = started_config(base, MLP_ALONE)
    with monkeypatch.context() as patched:
        patched.setattr("carryscope.training.loop.donor", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train(config, tmp_path, start_from=base)
    with pytest.raises(CallError, match="starts from the weights of 'base'. Name that run"):
        train(config, tmp_path)
    assert train(config, tmp_path, start_from=base).steps == 8


def test_other_weights_than_those_of_the_config_are_refused(tmp_path, base):
    train(run_config("tiny", {**SMALL, "seed": 5}), tmp_path / "other")
    config = started_config(base, MLP_ALONE)
    with pytest.raises(CallError, match="has other weights than this training starts from"):
        train(config, tmp_path / "new", start_from=tmp_path / "other")
    train(config, tmp_path / "new", start_from=base)
    with pytest.raises(CallError, match=r"training.start_weights is \w{64}, asked for \w{64}"):
        train(started_config(tmp_path / "other", MLP_ALONE), tmp_path / "new")


def test_the_config_and_the_card_say_what_it_started_from(tmp_path, base):
    train(started_config(base, MLP_ALONE), tmp_path, start_from=base)
    config = config_of(tmp_path)
    assert config.source == "base"
    assert config.training.start_weights == weights_hash(load_model(base))
    assert (config.training.renew, config.training.freeze) == (("mlp",), all_but("mlp"))
    card = (tmp_path / "README.md").read_text()
    assert "training.renew is ('mlp',); " in card
    assert "from the weights of `base`" in card


def test_a_start_from_a_started_run_forgets_what_that_one_renewed_and_froze(tmp_path, base):
    train(started_config(base, MLP_ALONE), tmp_path, start_from=base)
    again = started_config(tmp_path, {}).training
    assert (again.renew, again.freeze) == ((), ())
    assert again.start_weights == weights_hash(load_model(tmp_path))


def test_another_preset_gives_the_recipe_and_the_run_the_model(base):
    config = started_config(base, {"steps": 3}, "paper-5")
    assert config.model == config_of(base).model
    assert config.training.learning_rate == TrainingConfig().learning_rate


def test_the_shipped_run_reads_as_before():
    found = config_of(SHIPPED).training
    assert (found.start_weights, found.renew, found.freeze) == ("", (), ())
    assert found == preset("fast-5").training


@pytest.mark.parametrize(
    ("preset_fields", "message"),
    [
        ({"renew": ("mlp",)}, "renew must be empty without --start-from RUN"),
        ({"freeze": ("nose",)}, "freeze must be among embeddings, attention, mlp, readout"),
        ({"freeze": MODEL_PARTS}, "freeze must leave a part of the model to train"),
        ({"freeze": all_but("mlp"), "d_mlp": 0}, "freeze must leave a part of the model"),
    ],
)
def test_what_cannot_be_is_refused(preset_fields, message):
    with pytest.raises(CallError, match=message):
        run_config("tiny", preset_fields)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d_model": 16}, r"d_model must be \d+, as in the run"),
        ({"d_head": 8}, r"d_head must be \d+, as in the run"),
        ({"digits": 3}, "digits must be 2, as in the run"),
        ({"heads": 1}, "heads must be at least 2, as in the run"),
    ],
)
def test_a_started_run_can_only_grow(base, change, message):
    with pytest.raises(CallError, match=message):
        started_config(base, change)


def test_a_larger_model_answers_as_its_donor_until_it_is_trained(base):
    grown = {"layers": 3, "heads": 4, "d_mlp": 200, "operation": "mixed"}
    config, old = started_config(base, grown), load_model(base)
    assert (config.model.format, config.model.vocabulary) == ("signed", 15)
    assert config.new_parts == (
        "2 more layers",
        "2 more heads a layer",
        f"{200 - old.config.d_mlp} more neurons a layer",
        "tokens - * \\",
        "the position of the sign",
    )
    trainer = Trainer(config)
    trainer.start_from(old)
    new, taken = trainer.model.state_dict(), old.state_dict()
    symbols = [config.model.layout.symbols.index(symbol) for symbol in old.config.layout.symbols]
    assert torch.equal(new["embed.W_E"][symbols], taken["embed.W_E"])
    assert torch.equal(new["unembed.W_U"][:, symbols], taken["unembed.W_U"])
    names = [old.config.layout.position_names, config.model.layout.position_names]
    for name in ("D1", "D'0", "=", "A2", "A0"):
        before, after = (found.index(name) for found in names)
        assert torch.equal(new["pos_embed.W_pos"][after], taken["pos_embed.W_pos"][before])
    assert torch.equal(new["blocks.0.attn.W_Q"][:2], taken["blocks.0.attn.W_Q"])
    assert new["blocks.1.attn.W_Q"].std() > 0
    assert not new["blocks.0.attn.W_O"][2:].any()
    assert not new["blocks.2.mlp.W_out"].any()


@pytest.mark.parametrize("grown", [{"layers": 3}, {"heads": 4}, {"d_mlp": 200}])
def test_what_is_added_writes_nothing_at_first(base, grown):
    trainer, old = Trainer(started_config(base, grown)), load_model(base)
    trainer.start_from(old)
    tokens = torch.randint(0, 10, (50, old.config.context), generator=torch.manual_seed(0))
    assert torch.allclose(
        answer_logits(trainer.model, tokens), answer_logits(old, tokens), atol=1e-5
    )


def test_added_heads_change_no_answer_until_they_are_trained(tmp_path, base):
    config = started_config(base, {"heads": 4})
    assert config.model == msgspec.structs.replace(config_of(base).model, heads=4)
    trainer, old = Trainer(config), load_model(base)
    trainer.start_from(old)
    tokens = torch.randint(0, 10, (50, old.config.context), generator=torch.manual_seed(0))
    assert torch.allclose(answer_logits(trainer.model, tokens), answer_logits(old, tokens))
    assert not torch.equal(trainer.model.blocks[0].attn.W_V[2], trainer.model.blocks[0].attn.W_V[3])

    train(config, tmp_path, start_from=base)
    assert (load_model(tmp_path).blocks[0].attn.W_O[2:] != 0).any()


def test_an_imported_model_needs_a_recipe(tmp_path, base):
    shutil.copytree(base, tmp_path / "imported")
    path = tmp_path / "imported" / "config.json"
    config = msgspec.json.decode(path.read_bytes(), type=RunConfig)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(config, training=None)))
    with pytest.raises(CallError, match="was imported and has no recipe. Name one: --preset"):
        started_config(tmp_path / "imported", {})
    assert started_config(tmp_path / "imported", {}, "tiny").training.steps == 800


def test_the_command_starts_from_a_run_and_continues_when_typed_again(capsys, tmp_path, base):
    where = str(tmp_path / "new")
    renewed = ["--renew", "mlp", "--freeze", "embeddings", "attention", "readout"]
    command = ["train", "--start-from", str(base), *renewed, "--out", where, "--json"]
    assert run(command) == 0
    first = capsys.readouterr().out
    assert run(command) == 0
    assert capsys.readouterr().out == first
    assert run(["train", "--out", where, "--json"]) == 0
    assert capsys.readouterr().out == first
    assert all(same(weights(base), weights(tmp_path / "new"), all_but("mlp")))
    assert run(["train", "--start-from", str(base), "--out", where]) == 2
    assert "training.renew is ('mlp',), asked for ()" in capsys.readouterr().err
