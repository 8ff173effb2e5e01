"""The recipes for exact adders, trained for real."""

import numpy as np
import pytest
import torch
from exact_margins import as_double

from carryscope.certificate.certify import ProofSearch, certify
from carryscope.certificate.proof import RIGHT, WRONG
from carryscope.model.answer_path import answer_logits
from carryscope.model.files import load_model
from carryscope.task.questions import Questions
from carryscope.training.loop import train
from carryscope.training.presets import run_config
from carryscope.verification.risk import measure_risk

AT_ONCE = 20_000


@pytest.fixture(scope="module")
def exact_3(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "exact-3"
    train(run_config("exact-3", {}), directory, threads=1)
    return load_model(directory)


def every_question():
    digits = np.indices((10,) * 6, dtype=np.int8).reshape(6, -1).T
    return Questions(digits[:, :3], digits[:, 3:])


def margins(model, questions):
    """How far the true token leads at every answer row, in float64."""
    tokens = torch.from_numpy(model.config.layout.encode(questions))
    truth = model.config.layout.answer_part(tokens).long()[..., None]
    with torch.inference_mode():
        logits = answer_logits(model, tokens)
    others = logits.scatter(-1, truth, -torch.inf)
    return (logits.gather(-1, truth)[..., 0] - others.amax(-1)).numpy()


@pytest.mark.slow
def test_exact_3_answers_all_its_million_questions_right(exact_3):
    risk = measure_risk(exact_3)
    assert risk.exhaustive
    assert sum(stratum.failed.count for stratum in risk.strata) == 0


@pytest.mark.slow
def test_the_proof_of_exact_3_says_row_by_row_what_all_its_million_questions_show(exact_3):
    certificate = certify(exact_3, until=1.0, minutes=5.0, workers=1)
    proofs = ProofSearch(exact_3, certificate).proofs
    everything, double = every_question(), as_double(exact_3)
    proved = np.zeros(len(proofs), dtype=int)
    for start in range(0, len(everything), AT_ONCE):
        questions = everything[start : start + AT_ONCE]
        leads = margins(double, questions)
        for row, proof in enumerate(proofs):
            verdict = proof.about(questions)
            proved[row] += (verdict == RIGHT).sum()
            assert (leads[verdict == RIGHT, row] > certificate.demanded_margin).all()
            assert (leads[verdict == WRONG, row] < 0).all()
    assert proved.tolist() == [int(digit.proved_right) for digit in certificate.per_digit]
    assert certificate.proved_right == "1000000"
