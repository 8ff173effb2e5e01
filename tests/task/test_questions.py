import pytest

from carryscope.core.errors import CallError
from carryscope.task.questions import Questions, check_digits, parse_question


@pytest.mark.parametrize(
    "text",
    [
        "445+555",
        " 445 + 555 ",
        "00445+0555",
        "445+555=",
        "445 +555 = ",
        "000000445+555",
        "0" * 5000 + "445+555",
    ],
)
def test_what_people_type_is_understood(text):
    assert parse_question(text, 5).integers() == [(445, 555)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Type a sum such as 445+555. Got an empty question."),
        ("  ", "Type a sum such as 445+555. Got an empty question."),
        ("=", "Type a sum such as 445+555. Got an empty question."),
        ("5-3", "This model only adds, without signs. Got a minus sign in '5-3'."),
        ("-5+3", "This model only adds, without signs. Got a minus sign in '-5+3'."),
        ("12x+5", "A sum has only digits and one '+'. Got 'x' in '12x+5'."),
        ("٣+5", "A sum has only digits and one '+'. Got '٣' in '٣+5'."),
        ("12", "A sum is two numbers with one '+' between them. Got '12'."),
        ("1+2+3", "A sum is two numbers with one '+' between them. Got '1+2+3'."),
        ("+2", "A sum is two numbers with one '+' between them. Got '+2'."),
        ("1 2+3", "A number has no spaces inside it. Got '1 2+3'."),
        (
            "123456+1",
            "This model adds numbers of at most 5 digits. Got 123456, which has 6.",
        ),
    ],
)
def test_each_mistake_has_its_own_message(text, message):
    with pytest.raises(CallError) as error:
        parse_question(text, 5)
    assert str(error.value) == message


def test_a_number_that_does_not_fit_is_refused():
    with pytest.raises(CallError, match="at most 1 digit. Got 10"):
        Questions.from_integers([(10, 1)], 1)


@pytest.mark.parametrize("digits", [0, 21, -3])
def test_digits_outside_the_range_are_refused(digits):
    with pytest.raises(CallError, match=f"digits must be between 1 and 20. Got {digits}."):
        check_digits(digits)


def test_twenty_digits_survive_the_way_in_and_out():
    pair = (99999999999999999999, 12345678901234567890)
    assert Questions.from_integers([pair], 20).integers() == [pair]


def test_questions_can_be_picked_swapped_and_joined():
    questions = Questions.from_integers([(1, 2), (3, 4), (5, 6)], 2)
    assert questions[1:].texts() == ["3+4", "5+6"]
    assert questions.swapped().texts() == ["2+1", "4+3", "6+5"]
    assert Questions.joined([questions[2:], questions[:1]]).texts() == ["5+6", "1+2"]
