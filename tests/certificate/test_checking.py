"""Checks of certificates: those that are sound pass, and whatever was changed is found."""

from __future__ import annotations

import base64
import zlib

import msgspec
import numpy as np
import pytest
from untrained import untrained

from carryscope.certificate.certify import ProofSearch, certify
from carryscope.certificate.checking import check_certificate
from carryscope.certificate.finding import RUNNING, Certificate
from carryscope.certificate.proof import OPEN, RIGHT, WRONG
from carryscope.core.errors import CallError, WorkError
from carryscope.model.config import ModelConfig
from carryscope.model.transformer import Transformer

Certified = tuple[Transformer, Certificate]


@pytest.fixture
def certified(two_digits: Certified) -> Certified:
    return two_digits


def test_a_certificate_passes_its_check(certified: Certified) -> None:
    model, found = certified
    checked = check_certificate(model, found)
    assert checked.claims > 0
    assert checked.boxes == sum(digit.boxes for digit in found.per_digit)


def test_a_bound_that_does_not_hold_fails_the_check(certified: Certified) -> None:
    """A forged log whose every count is right: open boxes are called right, all rivals beaten."""
    model, found = certified
    search = ProofSearch(model, found)
    proof = search.proofs[rows_with(found, "undecided")[0]]
    at = proof.open_boxes()
    proof.verdict[at], proof.beaten[at] = RIGHT, (1 << 12) - 1
    forged = search.certificate(until=0.6, ended=RUNNING, seconds=0.0)
    with pytest.raises(WorkError, match="a claim of the log does not hold"):
        check_certificate(model, forged)


def test_a_certificate_of_other_weights_is_refused(certified: Certified) -> None:
    _, found = certified
    other = untrained(ModelConfig(digits=2, heads=2, d_model=24), seed=1)
    with pytest.raises(CallError, match="other weights"):
        check_certificate(other, found)
    with pytest.raises(CallError, match="other weights"):
        certify(other, known=found)


def test_a_log_of_another_version_is_refused(certified: Certified) -> None:
    model, found = certified
    with pytest.raises(CallError, match="version 99"):
        check_certificate(model, msgspec.structs.replace(found, log_version=99))


def tampered(found: Certificate, row: int, verdict_from: int, verdict_to: int) -> Certificate:
    """The certificate with one verdict of its log changed."""
    log = found.log[row]
    verdicts = np.frombuffer(zlib.decompress(base64.b64decode(log.verdicts)), dtype=np.int8).copy()
    verdicts[np.flatnonzero(verdicts == verdict_from)[0]] = verdict_to
    packed = base64.b64encode(zlib.compress(verdicts.tobytes())).decode()
    changed = [*found.log]
    changed[row] = msgspec.structs.replace(log, verdicts=packed)
    return msgspec.structs.replace(found, log=changed)


def rows_with(found: Certificate, field: str) -> list[int]:
    return [i for i, digit in enumerate(found.per_digit) if int(getattr(digit, field))]


@pytest.mark.parametrize(
    ("before", "field", "after"),
    [
        (OPEN, "undecided", RIGHT),
        (OPEN, "undecided", WRONG),
        (WRONG, "proved_wrong", RIGHT),
    ],
)
def test_a_log_that_claims_more_than_was_proved_fails_the_check(
    certified: Certified, before: int, field: str, after: int
) -> None:
    model, found = certified
    false = tampered(found, rows_with(found, field)[0], before, after)
    with pytest.raises(WorkError, match="not what its log says"):
        check_certificate(model, false)


def test_counts_that_are_not_those_of_the_log_fail_the_check(
    certified: Certified,
) -> None:
    model, found = certified
    more = str(int(found.proved_right) + 1)
    with pytest.raises(WorkError, match="not what its log says"):
        check_certificate(model, msgspec.structs.replace(found, proved_right=more))


def test_a_damaged_log_is_refused_in_one_line(certified: Certified) -> None:
    model, found = certified
    changed = [msgspec.structs.replace(found.log[0], verdicts="AAAA"), *found.log[1:]]
    with pytest.raises(CallError, match="damaged"):
        check_certificate(model, msgspec.structs.replace(found, log=changed))


def test_a_log_with_another_number_of_columns_is_refused(
    certified: Certified,
) -> None:
    model, found = certified
    wider = [msgspec.structs.replace(log, trees=[*log.trees, log.trees[0]]) for log in found.log]
    for log in (wider, found.log[:-1]):
        with pytest.raises(CallError, match="a tree for every column of every row"):
            check_certificate(model, msgspec.structs.replace(found, log=log))


def test_half_a_byte_too_many_is_a_damaged_log(certified: Certified) -> None:
    model, found = certified
    odd = base64.b64encode(zlib.compress(b"abc")).decode()
    changed = [msgspec.structs.replace(found.log[0], beaten=odd), *found.log[1:]]
    with pytest.raises(CallError, match="damaged"):
        check_certificate(model, msgspec.structs.replace(found, log=changed))


@pytest.mark.parametrize("example", ["1+1", "any you like"])
def test_an_example_must_be_one_of_its_family(certified: Certified, example: str) -> None:
    model, found = certified
    first, *others = found.undecided_families
    changed = [msgspec.structs.replace(first, example=example), *others]
    with pytest.raises(WorkError, match="undecided_families of the certificate is not what"):
        check_certificate(model, msgspec.structs.replace(found, undecided_families=changed))


def test_the_same_weights_with_other_heads_are_another_model(
    certified: Certified,
) -> None:
    model, found = certified
    other = Transformer(ModelConfig(digits=2, heads=4, d_model=24))
    weights = model.state_dict()
    other.load_state_dict({k: weights[k].reshape(v.shape) for k, v in other.state_dict().items()})
    with pytest.raises(CallError, match="other weights"):
        check_certificate(other, found)


def test_splitting_a_question_into_nothing_is_refused(certified: Certified) -> None:
    model, _ = certified
    proof = ProofSearch(model).proofs[0]
    tree = proof.space.trees[0]
    at = proof.open_boxes()[:1]
    while tree.parts[proof.boxes[at[0], 0]]:
        at = proof.split(at, np.zeros(1, dtype=np.int64))[:1]
    with pytest.raises(CallError, match="cannot be split"):
        proof.split(at, np.zeros(1, dtype=np.int64))
