import numpy as np
import pytest
import torch

from carryscope.task.columns import Columns
from carryscope.task.questions import Questions
from carryscope.task.tokens import Format
from carryscope.training.losses import LEAST_READ, READING, blur, step_record, unread

QUESTIONS = Questions.from_integers([(45, 55), (11, 22), (19, 22)], 2)
#                      A2   A1   A0        45+55: UC1 US9 BA, 11+22: BA BA BA, 19+22: BA UC1 BA
LOSSES = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]])


def test_losses_are_averaged_over_questions_by_digit_and_by_task():
    record = step_record(1, LOSSES, Columns.of(QUESTIONS))
    assert record.loss == 0.5
    assert record.digit_loss == [0.4, 0.5, 0.6]
    assert record.task_loss["BA"] == [0.55, 0.5, 0.6]
    assert record.task_loss["UC1"] == [0.1, 0.8, None]
    assert record.task_loss["US9"] == [None, 0.2, None]


def test_cases_are_counted():
    record = step_record(1, LOSSES, Columns.of(QUESTIONS))
    assert record.task_count == {"BA": [2, 1, 3], "UC1": [1, 1, 0], "US9": [0, 1, 0]}


def test_a_sign_has_a_loss_and_no_task():
    losses = np.concatenate([np.full((3, 1), 2.0), LOSSES], axis=1)
    record = step_record(1, losses, Columns.of(QUESTIONS))
    assert record.digit_loss == [2.0, 0.4, 0.5, 0.6]
    assert [record.task_count[task][0] for task in ("BA", "UC1", "US9")] == [0, 0, 0]


# Two digits: D1 D0 + D'1 D'0 = A2 A1, and rows "=", A2, A1, which predict A2, A1, A0.
@pytest.mark.parametrize(
    ("row", "attention", "cost"),
    [
        (0, {"D1": 0.5, "D'1": 0.5}, READING),
        (0, {"D1": 1.0}, READING),
        (0, {"+": 0.4, "=": 0.6}, 0.0),
        (1, {"A2": 1.0}, 0.0),
        (2, {"A1": 1.0}, 0.0),
        (2, {"A2": 1.0}, READING),
        (2, {"D1": 0.25, "D'0": 0.25, "=": 0.5}, 2 * 0.25 * (0.75 + READING)),
    ],
)
def test_attention_costs_little_on_one_column_and_nothing_on_what_a_row_knows(row, attention, cost):
    layout = Format(2)
    pattern = torch.zeros(1, 1, 3, 8)
    pattern[..., layout.position_names.index("=")] = 1.0
    pattern[0, 0, row] = 0.0
    for name, share in attention.items():
        pattern[0, 0, row, layout.position_names.index(name)] = share
    assert blur(pattern, layout).item() == pytest.approx(cost / 3)


def looking(*heads):
    """The attention of heads, each with what it reads at the rows that write A2, A1 and A0."""
    layout = Format(2)
    pattern = torch.zeros(1, len(heads), 3, 8, dtype=torch.float64)
    for h, rows in enumerate(heads):
        for row, shares in enumerate(rows):
            for name, share in shares.items():
                pattern[0, h, row, layout.position_names.index(name)] = share
    return pattern


COLUMN_0, COLUMN_1, NOTHING = {"D0": 0.5, "D'0": 0.5}, {"D1": 0.5, "D'1": 0.5}, {"=": 1.0}


@pytest.mark.parametrize(
    ("heads", "read"),
    [
        ([(COLUMN_1, COLUMN_1, COLUMN_0), (COLUMN_0, COLUMN_0, NOTHING)], [1, 1, 1, 1, 1]),
        ([(COLUMN_0, COLUMN_0, COLUMN_0), (COLUMN_1, COLUMN_1, COLUMN_1)], [1, 1, 1, 1, 1]),
        ([(COLUMN_1, COLUMN_1, COLUMN_0), (COLUMN_1, COLUMN_0, NOTHING)], [1, 0, 1, 1, 1]),
        ([({"D1": 0.5, "D0": 0.5}, COLUMN_1, COLUMN_0)] * 2, [0.75, 0.75, 1, 0, 1]),
    ],
)
def test_a_column_costs_something_where_it_can_decide_a_digit_and_no_head_reads_it(heads, read):
    cost = -np.log(np.array(read) + LEAST_READ).mean()
    assert unread(looking(*heads), Format(2)).item() == pytest.approx(cost)


def test_the_sign_and_the_digit_below_it_need_every_column():
    layout = Format(2, "signed")
    pattern = torch.zeros(1, 1, 4, layout.first_row + 4, dtype=torch.float64)
    pattern[..., 0] = 1.0  # column 1, at every row
    needed = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 1)]
    cost = -np.log([LEAST_READ + (column == 0) for _, column in needed]).mean()
    assert unread(pattern, layout).item() == pytest.approx(cost)
