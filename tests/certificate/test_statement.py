"""What a certificate says: shares are rounded to the safe side."""

from carryscope.certificate.counting import Counts
from carryscope.certificate.finding import DigitProof
from carryscope.certificate.statement import statement


def test_what_is_proved_is_rounded_down_and_what_is_undecided_up() -> None:
    told = statement(Counts(10**10, 10**10 - 30_001, 1), [], [])
    assert "99.99% are proved to get the right answer" in told
    assert "0.00000001% a wrong one" in told
    assert "0.0003% are undecided" in told


def test_nothing_is_0_per_cent_and_all_is_100() -> None:
    told = statement(Counts(100, 0, 100), [], [])
    assert "0% are proved to get the right answer and 100% a wrong one; 0% are undecided" in told


def test_before_whole_questions_are_proved_digits_are_told_one_by_one() -> None:
    digits = [digit_proof("A1", right=60), digit_proof("A0", right=35)]
    told = statement(Counts(100, 0, 0), digits, [])
    assert "Digit by digit more is proved right: A1 in 60%, A0 in 35%." in told
    assert "Digit by digit" not in statement(Counts(100, 1, 0), digits, [])


def digit_proof(digit: str, *, right: int) -> DigitProof:
    return DigitProof(
        digit=digit, proved_right=str(right), proved_wrong="0", undecided=str(100 - right), boxes=1
    )
