"""Subtraction and mixed batches, against Python's integers and against every small question."""

import re
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from cases import exact_sum, look_ahead_sum

from carryscope.core.errors import CallError
from carryscope.task.columns import Columns, Task
from carryscope.task.curated import curated_questions, question_keys, without_curated
from carryscope.task.operation import ADD, MIXED, SUBTRACT
from carryscope.task.questions import Questions, parse_question
from carryscope.task.sampling import enriched, near_nines, uniform, with_nines, with_states
from carryscope.task.strata import (
    LookAhead,
    look_ahead_probabilities,
    stratum_probabilities,
    stratum_states,
)
from carryscope.task.tokens import Format
from carryscope.verification.partition import by_cascade, partition


def every(digits: int, operation=SUBTRACT) -> Questions:
    numbers = np.arange(10**digits)
    digit = (numbers[:, None] // 10 ** np.arange(digits) % 10).astype(np.int8)
    first, second = np.repeat(digit, len(digit), axis=0), np.tile(digit, (len(digit), 1))
    if operation is not MIXED:
        return Questions(first, second, operation)
    return Questions.joined([Questions(first, second, one) for one in (ADD, SUBTRACT)])


def answers(questions: Questions, digits=None) -> list[int]:
    """Answer digits and signs as integers."""
    digits = exact_sum(questions) if digits is None else digits
    size = (digits.astype(object) * 10 ** np.arange(digits.shape[1], dtype=object)).sum(1)
    return [-n if minus else n for n, minus in zip(size, questions.negative, strict=True)]


def stratum_by_hand(first: int, second: int, symbol: str, digits: int) -> str:
    """From the numbers as text, with no help of the package."""
    sign = ""
    if symbol == "-":
        sign = "-" if first < second else "+"
        first, second = max(first, second), min(first, second)
    letters = []
    for a, b in zip(f"{first:0{digits}}", f"{second:0{digits}}", strict=True):
        over = int(a) + int(b) - 9 if symbol == "+" else int(b) - int(a)
        letters.append("P" if over == 0 else "G" if over > 0 else "K")
    return sign + "".join(letters)


@pytest.mark.parametrize("digits", [1, 2])
def test_every_difference_is_that_of_python(digits):
    questions = every(digits)
    assert answers(questions) == [a - b for a, b in questions.integers()]


@pytest.mark.parametrize("digits", [3, 5, 12, 20])
def test_differences_of_long_numbers_are_those_of_python(generator, digits):
    questions = enriched(generator, 3000, digits, SUBTRACT, batch_share=1.0, cell_share=0.6)
    assert answers(questions) == [a - b for a, b in questions.integers()]
    differ = (questions.first != questions.second).any(axis=1)
    assert 0.4 < questions.negative[differ].mean() < 0.6


def test_a_mixed_batch_answers_each_question_by_its_own_operation(generator):
    questions = enriched(generator, 2000, 6, MIXED, batch_share=1.0)
    asked = questions.texts()
    assert {"+", "-"} == {symbol for text in asked for symbol in text if not symbol.isdigit()}
    assert answers(questions) == [eval(text) for text in asked]
    for operation in (ADD, SUBTRACT):
        alone = [operation.symbol in text for text in asked]
        single = Questions(questions.first[alone], questions.second[alone], operation)
        whole, part = Columns.of(questions), Columns.of(single)
        for name in ("sums", "state", "base_add", "carry_in", "look_ahead", "task"):
            np.testing.assert_array_equal(getattr(whole, name)[alone], getattr(part, name))


def test_batches_of_two_operations_join_to_a_mixed_one_and_come_apart():
    sums, differences = every(1, ADD), every(1, SUBTRACT)
    mixed = Questions.joined([differences[:2], sums[:1], differences[12:13]])
    assert mixed.operation is MIXED
    assert mixed.texts() == ["0-0", "0-1", "0+0", "1-2"]
    assert mixed[2:].texts() == ["0+0", "1-2"]
    assert mixed.swapped().texts() == ["0-0", "1-0", "0+0", "2-1"]
    assert Questions.joined([mixed, sums[:1]]).texts()[-1] == "0+0"
    assert Questions.joined([sums[:1], sums[:1]]).operation is ADD


def test_a_borrow_travels_as_a_carry_does():
    columns = Columns.of(parse_question("1000-1", 5, SUBTRACT))
    assert columns.look_ahead[0].tolist() == [0, 0, 1, 2, 0, 1]
    assert columns.carry_in[0].tolist() == [False, True, True, True, False, False]
    assert columns.task[0].tolist() == [Task.BA, Task.US9, Task.US9, Task.UC1, Task.BA, Task.BA]
    assert columns.deciding[0, 3] == 0
    assert columns.sign_look_ahead[0] == 1


def test_a_negative_answer_has_the_columns_of_the_exchanged_question(generator):
    questions = uniform(generator, 500, 4, SUBTRACT)
    here, there = Columns.of(questions), Columns.of(questions.swapped())
    for name in ("sums", "state", "carry_in", "look_ahead"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name))
    different = questions.first != questions.second
    apart = different.any(axis=1)
    np.testing.assert_array_equal(questions.negative[apart], ~questions.swapped().negative[apart])
    assert not every(1)[::11].negative.any(), "0 has no minus"


@pytest.mark.parametrize("operation", [ADD, SUBTRACT, MIXED], ids=lambda one: one.name)
@pytest.mark.parametrize("digits", [1, 2])
def test_strata_have_the_sizes_counted_over_every_question(digits, operation):
    questions = every(digits, operation)
    counted: Counter[str] = Counter()
    for text in questions.texts():
        symbol = "+" if "+" in text else "-"
        name = stratum_by_hand(*map(int, text.split(symbol)), symbol, digits)
        counted[f"{symbol} {name}" if operation is MIXED else name] += 1
    found = {name: Fraction(n, len(questions)) for name, n in counted.items()}
    assert found == stratum_probabilities(digits, operation)


def test_strata_of_three_digits_have_the_sizes_counted_over_a_million_differences():
    questions = every(3)
    rows = np.column_stack([questions.negative, Columns.of(questions).state[:, ::-1]])
    found, count = np.unique(rows.astype(np.int8), axis=0, return_counts=True)
    names = ["+-"[row[0]] + "".join("KPG"[state] for state in row[1:]) for row in found]
    sizes = {name: Fraction(int(n), 10**6) for name, n in zip(names, count, strict=True)}
    assert sizes == stratum_probabilities(3, SUBTRACT)


@pytest.mark.parametrize("operation", [SUBTRACT, MIXED], ids=lambda one: one.name)
@pytest.mark.parametrize("digits", [1, 2, 3])
def test_look_aheads_have_the_chances_counted_over_every_question(digits, operation):
    questions = every(digits, operation)
    columns, counted = Columns.of(questions), {}
    for k, depth, carrying in product(range(digits + 1), range(digits + 1), (False, True)):
        here = (columns.look_ahead[:, k] == depth) & (columns.carry_in[:, k] == carrying)
        if here.any():
            counted[LookAhead(k, depth, carrying)] = Fraction(int(here.sum()), len(questions))
    assert counted == look_ahead_probabilities(digits, operation)


def test_no_borrow_reaches_the_highest_digit_of_a_difference():
    chances = look_ahead_probabilities(3, SUBTRACT)
    assert not any(case.carrying for case in chances if case.digit == 3)
    for k in range(4):
        assert sum(share for case, share in chances.items() if case.digit == k) == 1


@pytest.mark.parametrize("stratum", ["+KPG", "-KPG", "+PPP", "-PKK"])
def test_questions_drawn_from_a_stratum_lie_in_it(generator, stratum):
    drawn = with_states(generator, np.tile(stratum_states(stratum), (200, 1)), SUBTRACT)
    assert {stratum_by_hand(*pair, "-", 3) for pair in drawn.integers()} == {stratum}


@pytest.mark.parametrize("stratum", ["-PPP", "+GKK", "-PGK"])
def test_a_sign_that_its_columns_do_not_have_is_refused(stratum):
    with pytest.raises(CallError, match="larger one first: K. Got"):
        stratum_states(stratum)


def test_the_partition_of_differences_names_sign_and_states(generator):
    strata = partition(3, SUBTRACT)
    chances = dict(zip(strata.names, strata.probabilities, strict=True))
    assert chances == stratum_probabilities(3, SUBTRACT)
    drawn, stratum = strata.draw_each(generator, np.full(len(strata), 20))
    np.testing.assert_array_equal(strata.of(drawn), stratum)
    named = [stratum_by_hand(*pair, "-", 3) for pair in drawn.integers()]
    assert named == [strata.names[s] for s in stratum]


def cascades_by_hand(stratum: str) -> str:
    """The stratum of a pattern such as -KKPPG beyond six digits, read off its letters."""
    runs = [(len(run), below) for run, below in re.findall(r"(P+)([KG]?)", stratum)]
    carry = max((n for n, below in runs if below == "G"), default=0)
    quiet = max((n for n, below in runs if below != "G"), default=0)
    sign = {"+": "positive, ", "-": "negative, "}.get(stratum[0], "")
    return f"{sign}longest carrying {carry}, longest quiet {quiet}"


@pytest.mark.parametrize("operation", [ADD, SUBTRACT], ids=lambda one: one.name)
@pytest.mark.parametrize("digits", [1, 2, 3, 6])
def test_longest_cascades_have_the_sizes_of_the_patterns_in_them(digits, operation, generator):
    strata, sizes = by_cascade(digits, operation), Counter()
    for pattern, chance in stratum_probabilities(digits, operation).items():
        sizes[cascades_by_hand(pattern)] += chance
    assert dict(zip(strata.names, strata.probabilities, strict=True)) == sizes
    drawn, stratum = strata.draw_each(generator, np.full(len(strata), 20))
    np.testing.assert_array_equal(strata.of(drawn), stratum)
    symbol = operation.symbol
    named = [stratum_by_hand(*pair, symbol, digits) for pair in drawn.integers()]
    assert [cascades_by_hand(one) for one in named] == [strata.names[s] for s in stratum]


@pytest.mark.parametrize("digits", [7, 20])
def test_long_differences_have_strata_with_exact_chances(digits, generator):
    strata = partition(digits, MIXED)
    assert sum(strata.probabilities) == 1
    drawn = uniform(generator, 500, digits, SUBTRACT)
    negative = [strata.names[s].startswith("- negative, ") for s in strata.of(drawn)]
    np.testing.assert_array_equal(negative, drawn.negative)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("123-456", "123-456"),
        (" 12345 - 99999 =", "12345-99999"),
        ("7−2", "7-2"),  # noqa: RUF001
        ("0-0", "0-0"),
    ],
)
def test_differences_are_understood_as_people_type_them(text, asked):
    for operation in (SUBTRACT, MIXED):
        question = parse_question(text, 5, operation)
        assert question.texts() == [asked]
        assert question.operation is SUBTRACT
    assert parse_question("445+555", 5, MIXED).operation is ADD


@pytest.mark.parametrize(
    ("text", "operation", "message"),
    [
        ("5--3", SUBTRACT, "A difference is two numbers with one '-' between them. Got '5--3'."),
        ("5-", SUBTRACT, "A difference is two numbers with one '-' between them. Got '5-'."),
        ("5+3", SUBTRACT, "This model only subtracts, without signs. Got a plus sign in '5+3'."),
        ("", SUBTRACT, "Type a difference such as 445-555. Got an empty question."),
        ("-5+3", MIXED, "A question is two numbers with one '+' or '-' between them. Got '-5+3'."),
        ("5--3", MIXED, "A question is two numbers with one '+' or '-' between them. Got '5--3'."),
        ("5*3", MIXED, "A question has only digits and one '+' or '-'. Got '*' in '5*3'."),
        (
            "123456-1",
            MIXED,
            "This model adds and subtracts numbers of at most 5 digits. Got 123456, which has 6.",
        ),
    ],
)
def test_each_mistake_in_a_difference_has_one_line(text, operation, message):
    with pytest.raises(CallError) as error:
        parse_question(text, 5, operation)
    assert str(error.value) == message


def test_differences_are_written_with_operator_and_sign():
    layout = Format(5, "signed", 15, MIXED)
    mixed = Questions.joined(
        [parse_question(text, 5, MIXED) for text in ("12345-67890", "67890-12345", "12345+67890")]
    )
    assert [layout.text(tokens) for tokens in layout.encode(mixed)] == [
        "12345-67890=-055545",
        "67890-12345=+055545",
        "12345+67890=+080235",
    ]
    assert layout.position_names[5] == "±"
    assert Format(1, "signed", 15, SUBTRACT).position_names[1] == "-"
    first = Format(1, "signed", 15, SUBTRACT).encode(parse_question("7-8", 1, SUBTRACT))
    assert first[0].tolist() == [7, 11, 8, 12, 11, 0, 1], "the tokens of the authors' library"


@pytest.mark.parametrize(("name", "vocabulary"), [("plain", 15), ("signed", 12), ("plain", 12)])
def test_a_format_without_a_minus_is_refused(name, vocabulary):
    with pytest.raises(CallError, match="Subtraction needs the signed format and 15 tokens"):
        Format(5, name, vocabulary, SUBTRACT)


def test_questions_of_an_operation_that_the_format_does_not_know_are_refused():
    with pytest.raises(CallError, match="must be of addition. Got subtraction."):
        Format(1, "signed", 15).encode(every(1))
    with pytest.raises(CallError, match="must be of subtraction. Got addition and subtraction."):
        Format(1, "signed", 15, SUBTRACT).encode(every(1, MIXED))


def test_a_look_ahead_of_borrows_fails_where_it_cannot_see_them():
    questions = every(3)
    columns, truth = Columns.of(questions), exact_sum(questions)
    for reach in (0, 1, 2, 3):
        wrong = look_ahead_sum(questions, reach=reach) != truth
        np.testing.assert_array_equal(wrong, columns.carry_in & (columns.look_ahead >= reach))
    assert (columns.sign_look_ahead[questions.negative] < 3).all(), "some digits differ"


def test_algorithm_1_passes_a_borrow_on_through_one_pair_of_equal_digits():
    questions = Questions.joined(
        [parse_question(text, 5, SUBTRACT) for text in ("100-1", "1000-1", "1-1000")]
    )
    assert answers(questions, look_ahead_sum(questions, reach=2)) == [99, 1999, -1999]


@pytest.mark.parametrize("operation", [SUBTRACT, MIXED], ids=lambda one: one.name)
@pytest.mark.parametrize("digits", [1, 2, 5, 20])
def test_curated_questions_have_every_look_ahead_and_both_signs(digits, operation):
    curated = curated_questions(digits, operation)
    texts = curated.texts()
    assert len(set(texts)) == len(texts) == len(np.unique(question_keys(curated)))
    if digits > 1:
        columns = Columns.of(curated)
        found = {
            LookAhead(k, int(columns.look_ahead[row, k]), bool(columns.carry_in[row, k]))
            for row in range(len(curated))
            for k in range(digits + 1)
        }
        assert found == set(look_ahead_probabilities(digits, operation))
        assert 0.2 < curated.negative.mean() < 0.6
    if digits == 5:
        assert {"445-555", "1000-1", "1-10000"} <= set(texts)


def test_curated_questions_of_both_operations_are_kept_out_of_a_mixed_batch(generator):
    curated = curated_questions(3, MIXED)
    sums, differences = (curated_questions(3, one) for one in (ADD, SUBTRACT))
    assert curated.texts() == sums.texts() + differences.texts()
    cleaned = without_curated(generator, curated)
    assert not set(cleaned.texts()) & set(curated.texts())
    np.testing.assert_array_equal(cleaned.kind, curated.kind)
    minus = Questions(sums.first, sums.second, SUBTRACT)
    assert not np.isin(question_keys(minus), question_keys(sums)).any()


def test_enriched_differences_have_more_equal_digits_and_only_where_marked(generator):
    questions = uniform(generator, 4000, 5, MIXED)
    cells = generator.random((4000, 5)) < 0.3
    columns = Columns.of(with_nines(generator, questions, cells))
    assert columns.make_sum_9[cells].all()
    assert 0.08 < columns.make_sum_9[~cells].mean() < 0.12
    near = near_nines(generator, every(2), np.ones((10_000, 2), dtype=bool))
    assert set(np.unique(near.first - near.second)) == {-1, 1}


def test_what_needs_one_operation_refuses_a_mixture(generator):
    with pytest.raises(CallError, match="one operation at a time"):
        with_states(generator, np.zeros((5, 2), dtype=np.int8), MIXED)
