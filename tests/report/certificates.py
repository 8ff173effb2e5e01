"""Certificates made by hand, for the tests of the report."""

from carryscope.certificate.finding import Certificate, DigitProof, Family, in_words
from carryscope.model.config import ModelConfig


def family(digit: str, states: str, questions: int, example: str) -> Family:
    return Family(
        digit=digit,
        states=states,
        words=in_words(states),
        questions=str(questions),
        boxes=17,
        example=example,
    )


def digit_proof(digit: str, questions: int, wrong: int, undecided: int) -> DigitProof:
    return DigitProof(
        digit=digit,
        proved_right=str(questions - wrong - undecided),
        proved_wrong=str(wrong),
        undecided=str(undecided),
        boxes=1234,
    )


def certificate(
    digits: int = 5,
    *,
    wrong: int = 41_000_000,
    undecided: int = 65_432_100,
    **fields,
) -> Certificate:
    """A certificate of a model of so many digits, with so many whole answers wrong and undecided.

    All that is wrong is wrong in A3, or A2 if there is none, and all that is undecided in A1.
    """
    questions = 100**digits
    failing = f"A{min(3, digits)}"
    tokens = [
        digit_proof(
            f"A{k}",
            questions,
            wrong if f"A{k}" == failing else 0,
            undecided if k == 1 else 0,
        )
        for k in range(digits, -1, -1)
    ]
    carried = ("*" * digits + "GPPG")[-digits:]
    made = Certificate(
        package_version="0.3.0",
        log_version=2,
        model=ModelConfig(digits=digits),
        weights_sha256="0",
        questions=str(questions),
        proved_right=str(questions - wrong - undecided),
        proved_wrong=str(wrong),
        undecided=str(undecided),
        per_digit=tokens,
        about="float32",
        demanded_margin=0.001,
        found_with=["numba"],
        checked_with="torch",
        until=0.99,
        ended="decided",
        seconds=2501.5,
        boxes=3_456_789,
        spot_checks=4090,
        undecided_families=[family("A1", carried, undecided, "95+5")] if undecided else [],
        wrong_families=[family(failing, carried, wrong, "997+3")] if wrong else [],
        statement=f"So much is proved of {questions:,} questions.",
        log=[],
    )
    return type(made)(**{**{n: getattr(made, n) for n in made.__struct_fields__}, **fields})
