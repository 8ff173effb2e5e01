"""What a training says about itself when it ends."""

import numpy as np
import pytest

from carryscope.core.storage import read_json
from carryscope.training.checkpoint import read_metrics
from carryscope.training.config import RunConfig
from carryscope.training.loop import train
from carryscope.training.presets import run_config
from carryscope.training.summary import TrainingSummary


def test_the_summary_says_what_was_measured_on_how_many_questions(tmp_path):
    config = run_config("tiny", {"steps": 12, "d_model": 24})
    summary = train(config, tmp_path)
    assert read_json(tmp_path / "findings" / "training.json", TrainingSummary) == summary
    assert read_json(tmp_path / "config.json", RunConfig) == config
    assert summary.held_out_loss.of == 8192
    assert summary.uniform_correct.of == 10_000
    assert summary.held_out_loss.estimate == pytest.approx(np.mean(summary.held_out_digit_loss))
    losses = [record.loss for record in read_metrics(tmp_path)]
    assert summary.last_steps_loss == pytest.approx(np.mean(losses))
    card = (tmp_path / "README.md").read_text()
    assert "the recipe `tiny` (model.d_model is 24; " in card
    assert f"Held-out loss {summary.held_out_loss.estimate:.4f}" in card
