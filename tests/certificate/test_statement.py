"""What a certificate says: shares are rounded to the safe side."""

from carryscope.certificate.counting import Counts
from carryscope.certificate.finding import DigitProof, Family, in_words, statement


def test_what_is_proved_is_rounded_down_and_what_is_undecided_up() -> None:
    said = statement(Counts(10**10, 10**10 - 30_001, 1), [], [], "exact")
    assert "99.999699% are proved right" in said
    assert "<0.000001% are proved wrong" in said
    assert "0.000300% are undecided" in said


def test_nothing_is_0_per_cent_and_all_is_100() -> None:
    said = statement(Counts(100, 0, 100), [], [], "exact")
    assert "0% are proved right, 100% are proved wrong and 0% are undecided, in exact" in said


def test_a_model_that_is_right_throughout_gets_one_sentence() -> None:
    said = statement(Counts(10**10, 10**10, 0), [digit_proof("A0", right=100)], [], "exact")
    assert (
        said
        == "The model is proved to answer all 10,000,000,000 questions right in exact arithmetic."
    )


def test_before_whole_questions_are_proved_single_digits_are_reported() -> None:
    digits = [digit_proof("A1", right=60), digit_proof("A0", right=35)]
    said = statement(Counts(100, 0, 0), digits, [], "exact")
    assert "Single digits proved right: A1 in 60.0%, A0 in 35.0%." in said
    assert "Single digits" not in statement(Counts(100, 1, 0), digits, [], "exact")


def test_the_largest_failure_is_in_the_words_of_the_operation() -> None:
    family = Family(
        digit="A2", states="*PG", words=in_words("*PG"), questions="450", boxes=1, example="1+99"
    )
    assert statement(Counts(10**6, 1, 450), [], [family], "exact").endswith(
        "The largest proved failure: A2 or a digit before it is wrong in 450 of the 45,000 "
        "questions where column 1 sums to 9, column 0 sums to 10 or more, such as 1+99."
    )


def digit_proof(digit: str, *, right: int) -> DigitProof:
    return DigitProof(
        digit=digit, proved_right=str(right), proved_wrong="0", undecided=str(100 - right), boxes=1
    )
