"""While the tests run, a wrong shape in a call, a result or a record is an error."""

import numpy as np
import pytest
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Int
from shapes import checked

from carryscope.task.questions import Questions
from carryscope.verification.estimate import weighted_rate

ONES = np.ones(3, dtype=np.int64)


@checked
def doubled(numbers: Int[np.ndarray, " batch"]) -> Int[np.ndarray, " batch"]:  # noqa: F722
    return np.concatenate([numbers, numbers])


def test_the_arrays_of_a_call_must_agree():
    assert weighted_rate(ONES / 3, ONES, ONES).estimate == pytest.approx(1)
    with pytest.raises(BeartypeCallHintViolation):
        weighted_rate(ONES / 3, ONES[:2], ONES)


def test_a_result_must_have_its_shape():
    with pytest.raises(BeartypeCallHintViolation):
        doubled(ONES)


def test_the_fields_of_a_record_must_agree():
    with pytest.raises(Exception, match="Type-check error"):
        Questions(ONES[None], np.ones((2, 3), dtype=np.int64))
