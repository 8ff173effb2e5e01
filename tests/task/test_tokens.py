import subprocess
import sys

import pytest

from carryscope.core.errors import CallError
from carryscope.task.questions import parse_question
from carryscope.task.tokens import Format


def test_plain_format_is_the_papers():
    layout = Format(5)
    tokens = layout.encode(parse_question("12345+67890", 5))
    assert layout.text(tokens[0]) == "12345+67890=080235"
    assert layout.context == tokens.shape[1] == 18
    assert list(layout.answer_rows) == [11, 12, 13, 14, 15, 16]
    assert "".join(layout.symbols[t] for t in layout.answer_part(tokens)[0]) == "080235"


def test_signed_format_opens_the_answer_with_a_plus():
    layout = Format(5, "signed")
    tokens = layout.encode(parse_question("12345+67890", 5))
    assert layout.text(tokens[0]) == "12345+67890=+080235"
    assert layout.context == tokens.shape[1] == 19
    assert list(layout.answer_rows) == [11, 12, 13, 14, 15, 16, 17]


def test_the_larger_vocabulary_has_its_own_plus_and_equals():
    tokens = Format(1, "signed", 15).encode(parse_question("7+8", 1))
    assert tokens[0].tolist() == [7, 10, 8, 12, 10, 1, 5]


def test_positions_have_the_papers_names():
    names = Format(5).position_names
    assert " ".join(names) == "D4 D3 D2 D1 D0 + D'4 D'3 D'2 D'1 D'0 = A5 A4 A3 A2 A1 A0"
    assert Format(5, "signed").position_names[12] == "A6"


@pytest.mark.parametrize("digits", [1, 2, 10, 20])
@pytest.mark.parametrize("name", ["plain", "signed"])
def test_every_position_has_a_name_and_every_answer_token_a_row(digits, name):
    layout = Format(digits, name)
    assert len(layout.position_names) == layout.context
    assert len(layout.answer_rows) == len(layout.answer_names) == layout.answer_length
    assert layout.answer_rows.stop == layout.context - 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, "plain", 13), "vocabulary must be 12 or 15. Got 13."),
        ((0,), "digits must be between 1 and 20. Got 0."),
    ],
)
def test_formats_that_do_not_exist_are_refused(arguments, message):
    with pytest.raises(CallError, match=message):
        Format(*arguments)


def test_a_format_of_another_name_is_refused_where_no_type_checker_runs():
    call = "from carryscope.task.tokens import Format; Format(5, 'reversed')"
    ended = subprocess.run(
        [sys.executable, "-c", call], capture_output=True, text=True, check=False
    )
    assert "format must be 'plain' or 'signed'. Got 'reversed'." in ended.stderr


def test_questions_of_another_size_are_refused():
    with pytest.raises(CallError, match="must have 5 digits. Got 3."):
        Format(5).encode(parse_question("1+2", 3))
