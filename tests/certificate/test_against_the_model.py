"""What is proved of the shipped model against the model itself."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from carryscope.certificate.certify import Search, draw
from carryscope.certificate.exploring import RIGHT, WRONG
from carryscope.certificate.finding import Certificate
from carryscope.certificate.workers import Task, Worker
from carryscope.core.storage import read_json
from carryscope.model.prediction import predict
from carryscope.stages import Run
from carryscope.task.operation import State
from carryscope.task.questions import Questions
from carryscope.task.sampling import with_states

KEPT = Path(__file__).parents[3] / "certificates" / "fast-5.json"


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
    decided = [(p, p.leaves(verdict)) for p in search.proofs for verdict in (RIGHT, WRONG)]
    decided = [(proof, boxes) for proof, boxes in decided if len(boxes)]
    each, drawn = -(-count // len(decided)), []
    for proof, boxes in decided:
        some = boxes[generator.integers(len(boxes), size=64)]
        drawn.append(draw(proof.space, some, each, generator))
    return Questions.joined(drawn)


@pytest.fixture(scope="module")
def shipped() -> Search:
    """The certificate that is kept, with all its boxes."""
    return Search(Run().model(), read_json(KEPT, Certificate))


def test_the_model_does_what_is_proved_of_a_row() -> None:
    """A2 with the query 3: a few thousand boxes, some of them decided."""
    work, row, query = Search(Run().model()), 3, 3
    proof = work.proofs[row]
    at = proof.open_boxes()
    at = at[proof.space.queries(proof.space.digits(proof.boxes[at])) == query]
    task = Task(row, query, proof.boxes[at], proof.beaten[at], small=1e-6, most=2000)
    proof.graft(at, Worker(work.subject).do(task))
    boxes = proof.leaves(RIGHT)
    assert len(boxes) > 50
    questions = draw(proof.space, boxes, 1500, np.random.default_rng(0))
    assert contradictions(work, questions) == (0, 1500)


PARTS = 10


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_a_million_questions_contradict_nothing(shipped: Search, part: int) -> None:
    generator, asked = np.random.default_rng(1000 + part), 0
    for draws in (uniform, cascades, partial(from_boxes, shipped)):
        questions = draws(34_000, generator)
        found, decided = contradictions(shipped, questions)
        assert not found
        assert decided > len(questions)
        asked += len(questions)
    assert PARTS * asked >= 1_000_000
