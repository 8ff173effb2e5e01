"""A dissection as a whole: any model, part by part, kept, reused, refused if not its own."""

import shutil

import msgspec
import pytest
import torch

import carryscope
from carryscope.core.errors import CallError
from carryscope.core.storage import read_json, write_json
from carryscope.dissection.dissect import dissect
from carryscope.dissection.exchange import behaviors, features
from carryscope.dissection.findings import DISSECTION_FILE, PARTS, Dissection, chosen_parts
from carryscope.model.config import ModelConfig
from carryscope.model.files import save_weights
from carryscope.stages import Run, import_model
from carryscope.training.config import RunConfig
from carryscope.training.loop import train
from carryscope.training.presets import run_config

SHAPES = {
    "one digit, one head": {"digits": 1, "heads": 1},
    "two layers": {"digits": 2, "layers": 2},
    "three layers, signed, two heads": {"digits": 1, "layers": 3, "heads": 2, "format": "signed"},
    "attention only": {"digits": 2, "d_mlp": 0},
    "four heads, 15 tokens": {"digits": 3, "heads": 4, "vocabulary": 15, "format": "signed"},
    "ten digits": {"digits": 10, "heads": 2, "d_model": 16},
}


@pytest.fixture
def few_questions(monkeypatch):
    """Smaller samples: these tests ask whether it works, not what it finds."""
    for name, value in {
        "samples.PER_CLASS": 20,
        "samples.BATCHES": 1,
        "rows.EDGE_QUESTIONS": 16,
        "keys.QUESTIONS": 200,
        "first_digits.PAIRS": 20,
        "first_digits.FRESH_QUESTIONS": 100,
    }.items():
        monkeypatch.setattr(f"carryscope.dissection.{name}", value)
    study = carryscope.dissection.subtasks.study_subtasks
    monkeypatch.setitem(
        carryscope.dissection.dissect._ALIKE, "subtasks", lambda *work: study(*work, pairs=100)
    )


@pytest.fixture
def run(tmp_path) -> Run:
    train(run_config("tiny", {"steps": 20, "d_model": 24}), tmp_path / "run")
    return Run(tmp_path / "run")


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_any_model_can_be_dissected(shape, random_model, few_questions):
    *_, found = dissect(random_model(**shape))
    skipped = {"story"} | ({"mlp"} if shape.get("d_mlp") == 0 else set())
    assert {part for part in PARTS if getattr(found, part) is None} == skipped
    assert set(found.statements()) == set(PARTS) - skipped
    again = msgspec.json.decode(msgspec.json.encode(found), type=Dissection)
    assert again == found


def test_two_layers_have_rows_below_the_last_that_are_not_forced(random_model, few_questions):
    *_, found = dissect(random_model(digits=2, layers=2), parts=["rows"])
    lower = [effect for effect in found.rows.rows if effect.layer == 0]
    assert not any(effect.forced for effect in lower)
    reached = {digit for effect in lower if effect.row == 0 for digit in effect.changed}
    assert len(reached) > 1, "a row of layer 0 reaches several answers"


def test_the_same_seed_gives_the_same_bytes(run, few_questions):
    run.dissect()
    first = (run.directory / DISSECTION_FILE).read_bytes()
    run.dissect(again=True)
    assert (run.directory / DISSECTION_FILE).read_bytes() == first
    assert run.dissect(seed=1, again=True).seed == 1


def test_a_second_call_reuses_what_is_there(run, few_questions):
    made = []

    def bar(part, answers):
        made.append(part)
        return carryscope.dissection.dissect.no_bar(part, answers)

    run.dissect("attention", bar=bar)
    run.dissect(["attention", "nodes"], bar=bar)
    run.dissect("attention", bar=bar)
    assert made == ["attention", "nodes"]
    assert run.dissection().rows is None


def test_again_makes_only_the_named_parts_anew(run, few_questions):
    before = run.dissect(["attention", "nodes"])
    after = run.dissect("nodes", again=True)
    assert after == before
    with pytest.raises(CallError, match="The findings have seed 0. Leave out --only"):
        run.dissect("nodes", seed=1)
    assert run.dissection() == before


def test_complete_findings_need_no_writing(run, few_questions):
    run.dissect("attention")
    (run.directory / ".lock").unlink()
    run.dissect("attention")
    assert not (run.directory / ".lock").exists()


def test_findings_of_a_retrained_model_are_not_read_as_its_own(run, few_questions):
    run.dissect("nodes")
    model = run.model()
    with torch.no_grad():
        model.unembed.W_U.neg_()
    save_weights(model, run.directory)
    with pytest.raises(CallError, match="are about other weights. Run: carryscope dissect"):
        run.dissection()


def test_heads_bring_attention_with_them_because_it_names_them(run, few_questions):
    assert run.dissect("heads").attention is not None


def test_findings_of_other_weights_are_not_taken_for_these(run, few_questions):
    before = run.dissect("nodes")
    model = run.model()
    with torch.no_grad():
        model.unembed.W_U.neg_()
    save_weights(model, run.directory)
    after = run.dissect("nodes")
    assert after.weights_sha256 != before.weights_sha256
    assert after.nodes != before.nodes


def test_findings_survive_an_interruption_part_by_part(run, few_questions):
    def bar(part, answers):
        if part == "nodes":
            raise KeyboardInterrupt
        return carryscope.dissection.dissect.no_bar(part, answers)

    with pytest.raises(KeyboardInterrupt):
        run.dissect(["attention", "nodes"], bar=bar)
    assert run.dissection().attention is not None
    assert run.dissection().nodes is None


def test_an_imported_model_has_no_story(run, tmp_path, few_questions):
    torch.save(run.model().state_dict(), tmp_path / "model.pth")
    imported = import_model(tmp_path / "model.pth", tmp_path / "imported")
    found = imported.dissect()
    assert found.story is None
    assert found.nodes == run.dissect("nodes").nodes


def test_the_story_needs_only_the_metrics(run):
    assert run.dissect("story").story.steps == 20


def test_a_damaged_findings_file_is_told_in_one_line(run):
    (run.directory / DISSECTION_FILE).write_text('{"seed": "none"}')
    with pytest.raises(CallError, match=r"dissection.json is damaged or not a carryscope file"):
        run.dissection()
    with pytest.raises(CallError, match=r"dissection.json is damaged"):
        run.dissect("attention")


def test_missing_findings_name_the_command_that_makes_them(run):
    with pytest.raises(CallError, match=r"has not been dissected. Run: carryscope dissect"):
        run.dissection()


def test_a_run_without_weights_cannot_be_dissected_yet(run):
    (run.directory / "model.safetensors").unlink()
    with pytest.raises(CallError, match="no model.safetensors: its weights were not kept"):
        run.dissect()
    shutil.rmtree(run.directory / "findings")
    with pytest.raises(CallError, match="Finish its training"):
        run.dissect()


def test_a_model_that_does_not_fit_its_format_is_refused(run):
    config = read_json(run.directory / "config.json", RunConfig)
    wrong = msgspec.structs.replace(config, model=ModelConfig(digits=7, d_model=24))
    write_json(run.directory / "config.json", wrong)
    with pytest.raises(CallError, match="model.safetensors"):
        run.dissect()


def test_a_part_that_does_not_exist_is_refused():
    with pytest.raises(CallError, match="has the parts attention, rows, .* Got 'hands'"):
        chosen_parts("attention,hands")
    assert chosen_parts("nodes, attention") == ("attention", "nodes")
    assert chosen_parts(None) == PARTS


def test_the_authors_format_has_their_fields_and_tags(run, few_questions):
    found = run.dissect()
    written = msgspec.json.decode((run.directory / "findings" / "behaviors.json").read_bytes())
    assert len(written) == sum(node.useful for node in found.nodes.nodes)
    for node in written:
        assert list(node) == ["position", "layer", "is_head", "num", "tags"]
        kinds = {tag.split(":")[0] for tag in node["tags"]}
        assert kinds >= {"Fail%", "Impact", "Math.Add"}
        assert ("Attn" in kinds) == node["is_head"]


def test_the_authors_tags_say_what_was_found():
    found = carryscope.load().dissection()
    nodes = {(n.position, n.num): n.tags for n in behaviors(found) if n.is_head}
    effect = next(n for n in found.nodes.nodes if n.node == "P13.L0.H1")
    assert f"Fail%:{round(100 * effect.fails.estimate)}" in nodes[13, 1]
    assert "Impact:A3" in nodes[13, 1]
    assert any(tag.startswith("Attn:P2=") for tag in nodes[13, 1])
    algorithm = {(n.position, n.num): n.tags for n in features(found) if n.is_head}
    assert algorithm[13, 0] == ["Algo:A3.SA"]
    assert algorithm[13, 1] == ["Algo:A2.ST"]
    assert algorithm[13, 2] == ["Algo:A1.SC"]
