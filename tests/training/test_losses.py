import numpy as np

from carryscope.task.columns import Columns
from carryscope.task.questions import Questions
from carryscope.training.losses import step_record

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
