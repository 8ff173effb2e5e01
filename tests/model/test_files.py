import json

import msgspec
import pytest
import safetensors.torch
import torch

from carryscope.core.errors import CallError
from carryscope.core.storage import write_json
from carryscope.model.config import FORMAT_VERSION, ModelConfig
from carryscope.model.files import load_model, save_weights, weights_hash, with_weights
from carryscope.training.config import RunConfig


@pytest.fixture
def saved(random_model, tmp_path):
    model = random_model(layers=2, format="signed")
    save_weights(model, tmp_path)
    write_json(tmp_path / "config.json", RunConfig(format_version=1, model=model.config))
    return model, tmp_path


def test_a_saved_model_comes_back_bit_for_bit(saved):
    model, directory = saved
    again = load_model(directory)
    assert again.config == model.config
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor)


def test_the_same_numbers_with_other_heads_are_another_model(random_model, tmp_path):
    model = random_model(layers=1, heads=2, d_model=16)
    four = msgspec.structs.replace(model.config, heads=4, d_head=4)
    reshaped = {n: t.reshape(four.shapes[n]) for n, t in model.state_dict().items()}
    assert weights_hash(with_weights(four, reshaped, tmp_path)) != weights_hash(model)


def test_the_shapes_of_a_config_are_those_of_its_model(random_model):
    for shape in ({"layers": 2}, {"d_mlp": 0}, {"d_model": 10, "heads": 3, "d_head": 5}):
        model = random_model(**shape)
        assert {n: tuple(t.shape) for n, t in model.state_dict().items()} == model.config.shapes


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_weight_that_is_no_number_is_refused(saved, value):
    model, directory = saved
    with torch.no_grad():
        model.unembed.b_U[3] = value
    save_weights(model, directory)
    with pytest.raises(CallError, match=r"number in unembed.b_U that is infinite"):
        load_model(directory)


def test_a_config_of_a_huge_model_is_refused_before_memory_is_taken(saved):
    config = RunConfig(format_version=1, model=ModelConfig(d_model=3_000_000))
    write_json(saved[1] / "config.json", config)
    with pytest.raises(CallError, match=r"needs about .* GB of memory. There are"):
        load_model(saved[1])


def test_a_truncated_file_is_refused(saved):
    path = saved[1] / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CallError, match=r"model.safetensors is damaged or not a safetensors file"):
        load_model(saved[1])


def test_a_file_with_a_flipped_byte_is_refused(saved):
    path = saved[1] / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1000] ^= 1
    path.write_bytes(content)
    with pytest.raises(CallError, match="is damaged: its data does not have the checksum"):
        load_model(saved[1])


def test_other_number_types_are_refused(saved):
    path = saved[1] / "model.safetensors"
    doubled = {name: t.double() for name, t in safetensors.torch.load_file(path).items()}
    safetensors.torch.save_file(doubled, path)
    with pytest.raises(CallError, match=r"must be .* float32. Got .* float64"):
        load_model(saved[1])


def test_any_safetensors_reader_can_read_it(saved):
    model, directory = saved
    read = safetensors.torch.load_file(directory / "model.safetensors")
    assert all(torch.equal(read[name], tensor) for name, tensor in model.state_dict().items())


def test_a_damaged_config_is_refused(saved):
    (saved[1] / "config.json").write_text('{"format_version": 1, "model": {"digits": ')
    with pytest.raises(CallError, match=r"config.json is damaged or not a carryscope file"):
        load_model(saved[1])


def test_a_config_from_before_heads_had_a_width_of_their_own_is_read(saved):
    config = json.loads((saved[1] / "config.json").read_text())
    del config["model"]["d_head"]
    (saved[1] / "config.json").write_text(json.dumps(config))
    assert load_model(saved[1]).config == saved[0].config


def test_a_config_with_an_impossible_shape_is_refused(saved):
    config = json.loads((saved[1] / "config.json").read_text())
    config["model"] |= {"heads": 7, "d_head": 0}
    (saved[1] / "config.json").write_text(json.dumps(config))
    with pytest.raises(CallError, match="heads must divide d_model"):
        load_model(saved[1])


def test_foreign_tensors_are_refused(saved):
    safetensors.torch.save_file({"some.weight": torch.ones(2)}, saved[1] / "model.safetensors")
    with pytest.raises(CallError, match="does not fit its config: blocks.0.attn.W_K must be"):
        load_model(saved[1])


def test_a_newer_format_is_refused(saved):
    config = json.loads((saved[1] / "config.json").read_text())
    config["format_version"] = FORMAT_VERSION + 1
    (saved[1] / "config.json").write_text(json.dumps(config))
    with pytest.raises(CallError, match="newer carryscope .*Upgrade carryscope"):
        load_model(saved[1])


def test_a_directory_without_a_run_is_refused(tmp_path):
    with pytest.raises(CallError, match=r"No run at .*: it has no config.json"):
        load_model(tmp_path)


def test_a_run_without_weights_says_how_to_get_them(saved):
    (saved[1] / "model.safetensors").unlink()
    with pytest.raises(CallError, match="Finish its training: carryscope train --out"):
        load_model(saved[1])
