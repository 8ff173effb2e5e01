"""The recipes for exact adders, trained for real."""

import pytest

from carryscope.model.files import load_model
from carryscope.training.loop import train
from carryscope.training.presets import run_config
from carryscope.verification.risk import measure_risk


@pytest.mark.slow
def test_exact_3_answers_all_its_million_questions_right(tmp_path):
    train(run_config("exact-3", {}), tmp_path / "run", threads=1)
    risk = measure_risk(load_model(tmp_path / "run"))
    assert risk.exhaustive
    assert sum(stratum.failed.count for stratum in risk.strata) == 0
