"""Training in process: what it leaves behind, and that it continues exactly where it was."""

import json

import msgspec
import numpy as np
import pytest
import torch
from watching import Watched

from carryscope.core.errors import CallError, WorkError
from carryscope.core.progress import Stopped
from carryscope.model.answer_path import answer_rows
from carryscope.model.files import load_model
from carryscope.task.sampling import uniform
from carryscope.training.checkpoint import kept_weights, read_metrics
from carryscope.training.loop import train
from carryscope.training.losses import blur, unread
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer

VARIANTS = {
    "tiny": ("tiny", {"steps": 12, "d_model": 24}),
    "paper": ("paper-5", {"steps": 6, "d_model": 24, "digits": 3, "format": "signed"}),
    "fast": ("fast-5", {"steps": 10, "d_model": 24, "head_delay": 3, "final_batch": 80}),
    "reuse, two layers": ("reuse-5", {"steps": 8, "d_model": 24, "layers": 2}),
    "hard questions": ("tiny", {"steps": 10, "d_model": 24, "hard_start": 0.3}),
    "attention only": ("tiny", {"steps": 8, "d_model": 24, "d_mlp": 0, "digits": 1}),
}
QUICK = run_config("tiny", {"steps": 12, "d_model": 24})

pytestmark = pytest.mark.usefixtures("few_questions")


def weights(directory):
    return (directory / "model.safetensors").read_bytes()


def test_two_runs_with_one_seed_are_the_same_bit_for_bit(tmp_path):
    for name in "ab":
        train(QUICK, tmp_path / name)
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    metrics = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in "ab"]
    assert metrics[0] == metrics[1]


def test_another_seed_is_another_model(tmp_path):
    train(QUICK, tmp_path / "a")
    train(run_config("tiny", {"steps": 12, "d_model": 24, "seed": 1}), tmp_path / "b")
    assert weights(tmp_path / "a") != weights(tmp_path / "b")


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("stop", [1, 5])
def test_a_run_that_was_stopped_ends_with_the_weights_of_one_that_was_not(tmp_path, variant, stop):
    config = run_config(*variant)
    train(config, tmp_path / "whole")
    with pytest.raises(Stopped, match=f"Stopped at step {stop} of"):
        train(config, tmp_path / "parts", progress=Watched(stop_after=stop))
    assert not (tmp_path / "parts" / "model.safetensors").exists()
    train(config, tmp_path / "parts")
    assert weights(tmp_path / "whole") == weights(tmp_path / "parts")
    metrics = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in ("whole", "parts")]
    assert metrics[0] == metrics[1]


def test_metrics_beyond_the_checkpoint_are_cut_off_and_written_again(tmp_path):
    train(QUICK, tmp_path / "whole")
    with pytest.raises(Stopped):
        train(QUICK, tmp_path / "parts", progress=Watched(stop_after=5))
    with (tmp_path / "parts" / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 6, "loss": 0.1, "digit_lo')
    train(QUICK, tmp_path / "parts")
    metrics = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in ("whole", "parts")]
    assert metrics[0] == metrics[1]


def test_metrics_that_fell_behind_the_checkpoint_are_refused(tmp_path):
    with pytest.raises(Stopped):
        train(QUICK, tmp_path, progress=Watched(stop_after=5))
    (tmp_path / "metrics.jsonl").write_bytes(b"")
    with pytest.raises(CallError, match="has 0 of the 5 steps that the checkpoint has made"):
        train(QUICK, tmp_path)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    with pytest.raises(Stopped):
        train(QUICK, tmp_path, progress=Watched(stop_after=5))
    path = tmp_path / "checkpoint" / "state.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(CallError, match="is damaged or not a safetensors file"):
        train(QUICK, tmp_path)


def test_a_finished_run_is_not_trained_again(tmp_path):
    first = train(QUICK, tmp_path)
    watched = Watched()
    assert train(QUICK, tmp_path, progress=watched) == first
    assert watched.begun == []
    assert not (tmp_path / "checkpoint").exists()


def test_weights_that_are_kept_change_nothing_and_are_kept_again_when_it_continues(tmp_path):
    plain, kept, stopped = (tmp_path / name for name in ("plain", "kept", "stopped"))
    train(QUICK, plain)
    train(QUICK, kept, keep_checkpoints=4)
    with pytest.raises(Stopped):
        train(QUICK, stopped, keep_checkpoints=4, progress=Watched(stop_after=6))
    train(QUICK, stopped, keep_checkpoints=4)
    assert weights(kept) == weights(plain) == weights(stopped)
    steps = [step for step, _ in kept_weights(kept)]
    assert steps == [0, 1, 5, 12], "most of them early"
    for (_, one), (_, other) in zip(kept_weights(kept), kept_weights(stopped), strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)
    last = load_model(plain).state_dict()
    assert all(torch.equal(weight, last[name].half().float()) for name, weight in one.items())


def test_another_config_is_refused_and_the_differing_fields_named(tmp_path):
    train(QUICK, tmp_path)
    other = run_config("tiny", {"steps": 12, "d_model": 48, "seed": 9})
    with pytest.raises(CallError, match=r"model.d_model is 24, asked for 48.*training.seed is 0"):
        train(other, tmp_path)


def test_every_step_is_recorded_and_the_last_record_is_the_last_step(tmp_path):
    train(QUICK, tmp_path)
    assert [record.step for record in read_metrics(tmp_path)] == list(range(1, 13))


def test_progress_counts_questions_and_shows_the_loss_and_the_worst_digit(tmp_path):
    watched = Watched()
    train(QUICK, tmp_path, progress=watched)
    assert watched.begun == [("training", 12 * 128, "questions")]
    assert watched.amounts == [128] * 12
    first = read_metrics(tmp_path)[0]
    worst, name = max(zip(first.digit_loss, ("A2", "A1", "A0"), strict=True))
    flat = "▁" * 12
    assert watched.notes[0] == f"step 1/12 loss {flat} {first.loss:.4f} worst {name} {worst:.4f}"
    assert watched.notes[-1].startswith("step 12/12 loss █")


def test_progress_of_a_run_that_is_continued_starts_at_what_is_done(tmp_path):
    with pytest.raises(Stopped, match="The checkpoint in .* is kept"):
        train(QUICK, tmp_path, progress=Watched(stop_after=5))
    watched = Watched()
    train(QUICK, tmp_path, progress=watched)
    assert watched.amounts == [5 * 128, *[128] * 7]
    assert sum(watched.amounts) == watched.begun[0][1]


def test_a_run_whose_heads_have_a_width_of_their_own_trains(tmp_path):
    config = run_config("tiny", {"steps": 12, "heads": 4, "d_head": 10, "d_model": 24})
    train(config, tmp_path)
    assert load_model(tmp_path).blocks[0].attn.W_Q.shape == (4, 24, 10)
    losses = [record.loss for record in read_metrics(tmp_path)]
    assert losses[-1] < losses[0]


def test_the_recorded_loss_is_that_of_the_batch_before_the_step():
    trainer, twin = Trainer(QUICK), Trainer(QUICK)
    layout = twin.model.config.layout
    from carryscope.training.data import training_batch

    tokens = torch.from_numpy(layout.encode(training_batch(QUICK.training, 2, 0)))
    chances = twin.model(tokens)[:, list(layout.answer_rows)].double().log_softmax(-1)
    expected = -chances.gather(-1, tokens[:, layout.first_row + 1 :, None]).mean()
    assert trainer.advance().loss == pytest.approx(float(expected.detach()), rel=1e-4)


def test_it_makes_the_steps_that_plain_torch_makes_with_the_papers_recipe():
    """The answer path, its gradients, AdamW and the warm-up, against the slow textbook way."""
    config = run_config("paper-5", {"d_model": 24, "digits": 2, "steps": 30})
    trainer, twin = Trainer(config), Trainer(config).model
    layout, recipe = twin.config.layout, config.training
    slow = torch.optim.AdamW(
        twin.parameters(), lr=8e-5, betas=(0.9, 0.98), weight_decay=0.1, foreach=False
    )
    warmup = torch.optim.lr_scheduler.LambdaLR(slow, lambda step: min(1.0, step / 10))
    from carryscope.training.data import training_batch

    for step in range(30):
        trainer.advance()
        tokens = torch.from_numpy(layout.encode(training_batch(recipe, 2, step)))
        chances = twin(tokens)[:, list(layout.answer_rows)].double().log_softmax(-1)
        loss = -chances.gather(-1, tokens[:, layout.first_row + 1 :, None]).mean()
        slow.zero_grad()
        loss.backward()
        slow.step()
        warmup.step()
    for name, parameter in trainer.model.named_parameters():
        if name.endswith("b_K"):
            continue  # no effect on the model: rounding noise there, exactly zero here
        torch.testing.assert_close(
            parameter, dict(twin.named_parameters())[name], atol=3e-5, rtol=0
        )


def test_heads_that_wait_for_their_turn_stay_as_they_were():
    config = run_config("tiny", {"d_model": 24, "layers": 2, "weight_decay": 0.0, "head_delay": 3})
    trainer = Trainer(config)
    start = [block.attn.W_Q.detach().clone() for block in trainer.model.blocks]
    for _ in range(3):
        trainer.advance()
    for block, before in zip(trainer.model.blocks, start, strict=True):
        assert torch.equal(block.attn.W_Q[1], before[1])
        assert not torch.equal(block.attn.W_Q[0], before[0])
    trainer.advance()
    for block, before in zip(trainer.model.blocks, start, strict=True):
        assert not torch.equal(block.attn.W_Q[1], before[1])


def trained_model(steps, **fields):
    trainer = Trainer(run_config("tiny", {"steps": 120, "batch": 64, **fields}))
    for _ in range(steps):
        trainer.advance()
    return trainer.model


@pytest.mark.parametrize(("cost", "field"), [(blur, "sharpness"), (unread, "coverage")])
def test_heads_read_in_the_way_that_costs_less(cost, field):
    questions = uniform(np.random.default_rng(0), 100, 2)

    def paid(model):
        tokens = torch.from_numpy(model.config.layout.encode(questions))
        return cost(answer_rows(model, tokens).pattern, model.config.layout).item()

    assert paid(trained_model(120, **{field: 0.3})) < 0.7 * paid(trained_model(120))


@pytest.mark.parametrize(("start", "free"), [(0.25, 31), (0.5, 61)])
def test_a_blur_costs_nothing_before_its_start(start, free):
    before, after = (
        [
            trained_model(steps, sharpness=sharpness, sharpness_start=start).state_dict()
            for sharpness in (0.0, 0.3)
        ]
        for steps in (free, free + 1)
    )
    assert all(torch.equal(before[0][name], before[1][name]) for name in before[0])
    assert not all(torch.equal(after[0][name], after[1][name]) for name in after[0])


def fail_at(monkeypatch, name):
    """Let the end of a training die at one of its steps, as a kill would."""

    def die(*_):
        raise SystemExit

    monkeypatch.setattr(f"carryscope.training.loop.{name}", die)


@pytest.mark.parametrize("name", ["save_weights", "summarise", "card"])
def test_a_run_killed_while_it_finishes_ends_the_same(tmp_path, monkeypatch, name):
    whole = train(QUICK, tmp_path / "whole")
    with monkeypatch.context() as patched:
        fail_at(patched, name)
        with pytest.raises(SystemExit):
            train(QUICK, tmp_path / "cut")
    assert train(QUICK, tmp_path / "cut").steps == whole.steps == 12
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")


def test_a_checkpoint_that_outlived_its_run_is_dropped_on_the_next_call(tmp_path):
    train(QUICK, tmp_path)
    (tmp_path / "checkpoint").mkdir()
    train(QUICK, tmp_path)
    assert not (tmp_path / "checkpoint").exists()


def test_a_training_that_diverges_says_so(tmp_path):
    config = run_config("tiny", {"steps": 50, "d_model": 24, "learning_rate": 1e30, "clip": 0.0})
    with pytest.raises(WorkError, match=r"The loss is not a number at step \d+.*--learning-rate"):
        train(config, tmp_path)
    assert not (tmp_path / "model.safetensors").exists()


def test_a_directory_that_holds_something_else_is_left_alone(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(CallError, match=r"holds no run, but it is not empty \(README.md\)"):
        train(QUICK, tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.parametrize("threads", [0, -1])
def test_an_impossible_number_of_threads_is_refused(tmp_path, threads):
    with pytest.raises(CallError, match=f"threads must be at least 1. Got {threads}."):
        train(QUICK, tmp_path, threads=threads)


def test_config_json_holds_versions_seed_and_every_field(tmp_path):
    train(QUICK, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["format_version"] == 1
    assert config["package_version"]
    assert config["training"]["seed"] == 0
    assert config["model"] == msgspec.to_builtins(QUICK.model)


def test_a_directory_that_cannot_be_made_is_a_one_line_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(WorkError, match=r"Cannot write .*: Not a directory"):
        train(QUICK, tmp_path / "file" / "run")
