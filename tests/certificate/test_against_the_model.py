"""What is proved of the shipped model against the model itself."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import carryscope
from carryscope.certificate.certify import ProofSearch
from carryscope.certificate.checking import check_what_is_said, claims_of, verify
from carryscope.certificate.exploring import Piece, explore
from carryscope.certificate.finding import Certificate
from carryscope.certificate.proof import RIGHT, WRONG, Engine, RowProof
from carryscope.certificate.rows import SignAndQuery
from carryscope.certificate.spot_checks import draw
from carryscope.certificate.subject import ProofSubject
from carryscope.core.storage import read_json
from carryscope.model.prediction import predict
from carryscope.model.transformer import Transformer
from carryscope.task.operation import State
from carryscope.task.questions import Questions
from carryscope.task.sampling import with_states

KEPT = Path(carryscope.__file__).parent / "shipped/fast-5/findings/certificate.json"


def contradictions(
    model: Transformer, proofs: dict[int, RowProof], questions: Questions
) -> tuple[int, int]:
    """How often the model does otherwise than is proved, and how often something is proved."""
    right = predict(model, questions, free_running=False).right
    found = decided = 0
    for row, proof in proofs.items():
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


def from_boxes(
    proofs: dict[int, RowProof], count: int, generator: np.random.Generator
) -> Questions:
    """Questions from decided boxes of every row, boxes drawn alike whatever they hold."""
    decided = [(p, p.leaves(verdict)) for p in proofs.values() for verdict in (RIGHT, WRONG)]
    decided = [(proof, boxes) for proof, boxes in decided if len(boxes)]
    each, drawn = -(-count // len(decided)), []
    for proof, boxes in decided:
        some = boxes[generator.integers(len(boxes), size=64)]
        drawn.append(draw(proof.space, some, each, generator))
    return Questions.joined(drawn)


def test_the_model_does_what_is_proved_of_a_row(shipped: Transformer, engine: Engine) -> None:
    """A2 with the query 3: some hundred boxes, a part of them decided."""
    row, reading = 3, SignAndQuery(negative=False, query=3)
    subject = ProofSubject.of(shipped, about="float32", engine=engine)
    space, most = subject.spaces[row], 2000 if engine == "numba" else 300
    proof = RowProof.settled(space)
    at = proof.open_boxes()
    at = at[dict(space.readings(proof.boxes[at]))[reading]]
    piece = Piece(row, reading, at, proof.boxes[at], small=1e-6, most=most)
    proof.graft(at, explore(subject, piece))
    boxes = proof.leaves(RIGHT)
    assert len(boxes) > 5
    questions = draw(space, boxes, 1500, np.random.default_rng(0))
    assert contradictions(shipped, {row: proof}, questions) == (0, 1500)


@pytest.fixture(scope="module")
def kept(shipped: Transformer) -> dict[int, RowProof]:
    """The certificate that is kept, with all its boxes."""
    return dict(enumerate(ProofSearch(shipped, read_json(KEPT, Certificate)).proofs))


PARTS = 10


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_a_million_questions_contradict_nothing(
    shipped: Transformer, kept: dict[int, RowProof], part: int
) -> None:
    generator, asked = np.random.default_rng(1000 + part), 0
    for draws in (uniform, cascades, partial(from_boxes, kept)):
        questions = draws(34_000, generator)
        found, decided = contradictions(shipped, kept, questions)
        assert not found
        assert decided > len(questions)
        asked += len(questions)
    assert PARTS * asked >= 1_000_000


@pytest.mark.slow
def test_the_kept_certificate_says_what_its_log_says_and_a_sample_of_its_claims_holds(
    shipped: Transformer,
) -> None:
    """All claims take most of an hour: `carryscope certify --check`."""
    certificate = read_json(KEPT, Certificate)
    search = ProofSearch(shipped, certificate)
    check_what_is_said(search, certificate)
    generator = np.random.default_rng(0)
    for row in range(len(search.proofs)):
        claims = list(claims_of(search, row))
        some = claims[generator.integers(len(claims))]
        at = np.sort(generator.permutation(len(some.boxes))[:256])
        assert verify(search.subject, some[at]) == len(at)
