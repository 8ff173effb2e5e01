"""Boxes: what follows from the sets of digit pairs, against every question they hold."""

from math import prod

import numpy as np
import pytest
from box_spaces import questions_of, seen, space_of

from carryscope.certificate.boxes import RowSpace
from carryscope.certificate.finding import families
from carryscope.certificate.proof import OPEN, RowProof
from carryscope.certificate.rows import Row
from carryscope.core.errors import WorkError
from carryscope.task.columns import Columns
from carryscope.task.operation import ADD, SUBTRACT, Operation
from carryscope.task.questions import Questions
from carryscope.task.tokens import Format, FormatName


def split_at_random(space: RowSpace, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    box = space.everything
    for _ in range(generator.integers(1, 9)):
        parts, _ = space.children(box, generator.integers(space.columns, size=1))
        box = parts[generator.integers(len(parts))][None] if len(parts) else box
    return box


@pytest.mark.parametrize("seed", range(12))
def test_the_digits_of_a_box_are_just_those_of_its_questions(seed: int) -> None:
    space = space_of(2, seed % 3)
    box = split_at_random(space, seed)
    questions = questions_of(space, box[0])
    assert space.count(box) == len(questions)
    columns = Columns.of(questions)
    sets = space.digits(box)[0]
    for digit in range(3):
        values = columns.answer_digit(digit, columns.carry_in[:, digit])
        assert sets[digit] == sum(1 << int(value) for value in np.unique(values))


ROWS = [("plain", ADD, 3), ("signed", ADD, 4), ("signed", SUBTRACT, 4)]


@pytest.mark.parametrize(("name", "operation", "rows"), ROWS)
def test_settled_boxes_hold_every_question_once_and_what_they_read_and_write_is_certain(
    name: FormatName, operation: Operation, rows: int
) -> None:
    for index in range(rows):
        space = space_of(2, index, name, operation)
        proof = RowProof.settled(space)
        boxes = proof.boxes[proof.open_boxes()]
        assert space.count(boxes) == 10_000
        assert sum(len(mine) for _, mine in space.readings(boxes)) == len(boxes)


def test_a_box_whose_sign_is_open_is_refused() -> None:
    space = space_of(2, 1, "signed", SUBTRACT)
    with pytest.raises(WorkError, match="no certain digit"):
        list(space.readings(space.everything))


@pytest.mark.parametrize(("name", "operation", "rows"), ROWS)
def test_all_that_a_box_is_said_to_read_and_write_are_tokens_of_the_true_answers(
    name: FormatName, operation: Operation, rows: int
) -> None:
    for index in range(rows):
        space = space_of(2, index, name, operation)
        layout, proof = space.row.layout, RowProof.settled(space)
        for box in proof.boxes[proof.open_boxes()][::7]:
            tokens = layout.encode(questions_of(space, box))
            reading, of_sign, target = seen(space, box)
            assert (tokens[:, space.row.position + 1] == target).all()
            assert (tokens[:, space.row.position] == reading.query).all()
            assert all((tokens[:, at] == token).all() for at, token in of_sign.row.fixed)
            sets = of_sign.digits(box[None])[0]
            for digit, at in space.row.earlier:
                assert sets[digit] == sum(1 << int(token) for token in np.unique(tokens[:, at]))


def test_fixed_and_earlier_tokens_stand_where_the_row_says() -> None:
    questions = Questions(np.array([[5, 4]]), np.array([[7, 6]]))
    layout = Format(2, "signed")
    tokens = layout.encode(questions)[0]
    row = Row(layout, 3)
    assert row.name == "A0"
    assert row.query_digit == 1
    assert all(tokens[position] == token for position, token in row.fixed)
    truth = {2: 1, 1: 1, 0: 2}  # 45 + 67 = 112
    assert [(digit, tokens[at]) for digit, at in row.earlier] == [(2, truth[2])]
    assert [tokens[at] for at in row.positions_of(0)] == [5, 7]


def test_masses_of_twenty_digits_are_exact() -> None:
    space = space_of(20, 0)
    assert space.count(space.everything) == 10**40


def test_the_proof_says_of_a_question_what_its_leaf_says() -> None:
    space = space_of(2, 1)
    proof = RowProof.settled(space)
    leaves = proof.open_boxes()
    proof.verdict[leaves] = -1 - np.arange(len(leaves)) % 4
    for leaf in leaves[::11]:
        assert (proof.about(questions_of(space, proof.boxes[leaf])) == proof.verdict[leaf]).all()


def test_boxes_of_many_columns_are_counted_exactly_family_by_family() -> None:
    space = space_of(11, 5)
    proof = RowProof.settled(space)
    boxes = proof.leaves(OPEN)
    by_hand = [
        prod(int(tree.sizes[node]) for tree, node in zip(space.trees, box, strict=True))
        for box in boxes
    ]
    assert space.sizes(boxes).tolist() == by_hand
    assert space.count(boxes) == sum(by_hand) == 100**11
    found = families(proof, OPEN)
    assert sum(int(family.questions) for family in found) == 100**11
    assert sum(family.boxes for family in found) == len(boxes)
    assert len({family.states for family in found}) == len(found)
