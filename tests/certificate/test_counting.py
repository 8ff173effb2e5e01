"""Whole questions from rows, against counting them one by one."""

from itertools import product

import numpy as np
import pytest
from box_spaces import questions_of, space_of

from carryscope.certificate import counting
from carryscope.certificate.counting import count_whole_questions, overlap
from carryscope.certificate.proof import OPEN, RIGHT, STUCK, WRONG, RowProof


def random_proof(index: int, seed: int) -> RowProof:
    """A proof of two digits with verdicts drawn at random."""
    generator = np.random.default_rng(seed)
    proof = RowProof(space_of(2, index))
    for _ in range(3):
        at = proof.open_boxes()
        column = generator.integers(2, size=len(at))
        splits = proof.space.parts(proof.boxes[at], column) > 0
        proof.split(at[splits], column[splits])
    at = proof.open_boxes()
    proof.verdict[at] = generator.choice(
        [RIGHT, WRONG, OPEN, STUCK], len(at), p=[0.7, 0.1, 0.1, 0.1]
    )
    return proof


def members(proof: RowProof, *verdicts: int) -> set[int]:
    """The questions of the leaves with these verdicts, one by one."""
    found: set[int] = set()
    for box in proof.leaves(*verdicts):
        questions = questions_of(proof.space, box)
        numbers = np.concatenate([questions.first, questions.second], axis=1) @ [1, 10, 100, 1000]
        found |= set(numbers.tolist())
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_overlap_of_two_rows_is_what_counting_finds(seed: int) -> None:
    one, other = random_proof(0, seed), random_proof(1, seed + 100)
    expected = len(members(one, WRONG) & members(other, WRONG))
    assert overlap(one, other, (WRONG,)) == expected


@pytest.fixture(params=[0, 3])
def one_by_one(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether questions are looked up one by one; otherwise by inclusion and exclusion."""
    monkeypatch.setattr(counting, "MOST_DIGITS_ONE_BY_ONE", request.param)
    return bool(request.param)


@pytest.mark.parametrize("seed", range(4))
def test_counts_are_on_the_safe_side_and_with_two_rows_exact(seed: int, one_by_one: bool) -> None:
    proofs = [random_proof(index, seed + 10 * index) for index in range(3)]
    for used in (proofs, proofs[:2]):
        wrong = set.union(*(members(proof, WRONG) for proof in used))
        bad = set.union(*(members(proof, WRONG, OPEN, STUCK) for proof in used))
        counts = count_whole_questions(used)
        assert counts.right <= 10_000 - len(bad)
        assert counts.wrong <= len(wrong)
        rough = count_whole_questions(used, overlaps=False)
        assert rough.right <= counts.right
        assert rough.wrong <= counts.wrong
        if one_by_one:
            assert (counts.right, counts.wrong) == (10_000 - len(bad), len(wrong))
    assert counts.right == 10_000 - len(bad)
    assert counts.wrong == len(wrong)


def test_too_many_pairs_are_not_counted_and_counts_stay_safe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counting, "MOST_DIGITS_ONE_BY_ONE", 0)
    proofs = [random_proof(index, index) for index in range(2)]
    exact = count_whole_questions(proofs)
    monkeypatch.setattr(counting, "MOST_PAIRS", 0)
    rough = count_whole_questions(proofs)
    assert rough == count_whole_questions(proofs, overlaps=False)
    assert rough.right < exact.right


def test_overlaps_of_ten_digits_are_counted_in_whole_numbers() -> None:
    everything = RowProof(space_of(10, 0))
    assert overlap(everything, everything, (OPEN,)) == 10**20


def test_every_verdict_of_a_proof_is_counted_once() -> None:
    proof = random_proof(2, 3)
    parts = [len(members(proof, verdict)) for verdict in (RIGHT, WRONG, OPEN, STUCK)]
    assert [proof.count(verdict) for verdict in (RIGHT, WRONG, OPEN, STUCK)] == parts
    assert sum(parts) == 10_000
    assert all(
        a.isdisjoint(b) for a, b in product([members(proof, RIGHT)], [members(proof, WRONG)])
    )
