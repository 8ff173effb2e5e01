"""What a certificate says: shares are rounded to the safe side."""

from carryscope.verification.certificate.counting import Counts
from carryscope.verification.certificate.statement import statement


def test_what_is_proved_is_rounded_down_and_what_is_undecided_up() -> None:
    told = statement(Counts(10**10, 10**10 - 30_001, 1), [], [])
    assert "99.99% are proved to get the right answer" in told
    assert "0.00000001% a wrong one" in told
    assert "0.0003% are undecided" in told


def test_nothing_is_0_per_cent_and_all_is_100() -> None:
    told = statement(Counts(100, 0, 100), [], [])
    assert "0% are proved to get the right answer and 100% a wrong one; 0% are undecided" in told
