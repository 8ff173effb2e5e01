"""What a training says about itself when it ends."""

import numpy as np
import pytest

from carryscope.stages import Run
from carryscope.training.loop import train
from carryscope.training.presets import run_config


def test_the_summary_says_what_was_measured_on_how_many_questions(tmp_path):
    config = run_config("tiny", {"steps": 12, "d_model": 24})
    summary = train(config, tmp_path)
    run = Run(tmp_path)
    assert run.training() == summary
    assert run.config == config
    assert summary.held_out_loss.of == 8192
    assert summary.uniform_correct.of == 10_000
    assert summary.held_out_loss.estimate == pytest.approx(np.mean(summary.held_out_digit_loss))
    assert summary.last_steps_loss == pytest.approx(np.mean([r.loss for r in run.metrics()]))
    card = (tmp_path / "README.md").read_text()
    assert "the recipe `tiny` (model.d_model is 24; " in card
    assert f"Held-out loss {summary.held_out_loss.estimate:.4f}" in card
