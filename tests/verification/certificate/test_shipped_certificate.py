"""The certificate that comes with the package, against the model it is about."""

from __future__ import annotations

import numpy as np
import pytest

from carryscope.model.prediction import predict
from carryscope.runs import Run
from carryscope.task.columns import State
from carryscope.task.questions import Questions
from carryscope.task.sampling import with_states
from carryscope.verification.certificate.certify import Search, draw
from carryscope.verification.certificate.checking import check_certificate
from carryscope.verification.certificate.exploring import RIGHT, WRONG


@pytest.fixture(scope="module")
def search() -> Search:
    run = Run()
    return Search(run.model(), run.certificate())


def contradictions(search: Search, questions: Questions) -> tuple[int, int]:
    """How often the model does otherwise than is proved, and how often something is proved."""
    right = predict(search.model, questions, free_running=False).right
    found = decided = 0
    for row, proof in enumerate(search.proofs):
        verdict = proof.about(questions)
        found += int(((verdict == RIGHT) & ~right[:, row]).sum())
        found += int(((verdict == WRONG) & right[:, row]).sum())
        decided += int(np.isin(verdict, (RIGHT, WRONG)).sum())
    return found, decided


def uniform(count: int, generator: np.random.Generator) -> Questions:
    return Questions(
        generator.integers(10, size=(count, 5)), generator.integers(10, size=(count, 5))
    )


def cascades(count: int, generator: np.random.Generator) -> Questions:
    """Questions in which most columns sum to 9."""
    chances = [0.15, 0.7, 0.15]
    return with_states(generator, generator.choice(len(State), size=(count, 5), p=chances))


def from_boxes(search: Search, count: int, generator: np.random.Generator) -> Questions:
    """Questions from decided boxes of every row, boxes drawn alike whatever they hold."""
    each, drawn = count // (2 * len(search.proofs)), []
    for proof in search.proofs:
        for verdict in (RIGHT, WRONG):
            boxes = proof.leaves(verdict)
            if len(boxes):
                some = boxes[generator.integers(len(boxes), size=64)]
                drawn.append(draw(proof.space, some, each, generator))
    return Questions.joined(drawn)


def test_at_least_99_per_cent_of_all_questions_are_decided() -> None:
    assert Run().certificate().decided >= 0.99


def test_the_measured_risk_lies_within_the_proved_bounds() -> None:
    run = Run()
    certificate, risk = run.certificate(), run.risk()
    questions = int(certificate.questions)
    assert int(certificate.proved_wrong) / questions <= risk.teacher_forced.estimate
    assert risk.teacher_forced.estimate <= 1 - int(certificate.proved_right) / questions


def test_the_model_does_what_is_proved(search: Search) -> None:
    generator = np.random.default_rng(0)
    for questions in (
        uniform(2000, generator),
        cascades(2000, generator),
        from_boxes(search, 2000, generator),
    ):
        found, decided = contradictions(search, questions)
        assert found == 0
        assert decided > 0


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_a_million_questions_contradict_nothing(search: Search, part: int) -> None:
    generator = np.random.default_rng(1000 + part)
    for draws in (uniform, cascades):
        assert contradictions(search, draws(34_000, generator))[0] == 0
    assert contradictions(search, from_boxes(search, 34_000, generator))[0] == 0


@pytest.mark.slow
def test_the_shipped_certificate_passes_its_check() -> None:
    run = Run()
    assert check_certificate(run.model(), run.certificate()).claims > 1_000_000


def test_every_example_of_a_proved_failure_is_answered_wrong() -> None:
    run = Run()
    pairs = [
        tuple(map(int, family.example.split("+"))) for family in run.certificate().wrong_families
    ]
    questions = Questions.from_integers(pairs, 5)  # type: ignore[arg-type]
    assert not predict(run.model(), questions, free_running=True).correct.any()
