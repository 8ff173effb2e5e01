"""Stated algorithms: each does what it says, and one of the user's own is checked before use."""

import textwrap
from dataclasses import replace

import numpy as np
import pytest
from cases import CASES, exact_sum, look_ahead_sum

import carryscope
from carryscope.core.errors import CallError
from carryscope.dissection.samples import Samples
from carryscope.task.columns import Columns
from carryscope.task.questions import Questions, parse_question
from carryscope.verification import own_algorithm as own_algorithms
from carryscope.verification.algorithms import (
    ALGORITHM_1,
    AS_DISSECTED,
    WRONG,
    Algorithm,
    look_ahead,
    shipped,
)
from carryscope.verification.own_algorithm import own_algorithm
from carryscope.verification.own_function import load_function

EXACT = "exact addition"


def nines_rich(digits: int, count: int = 3000) -> Questions:
    return Samples(digits, 1).nines_rich("test", count)


@pytest.fixture(scope="module")
def dissected() -> list[Algorithm]:
    return shipped(5, carryscope.load().dissection().attention)


def named(algorithms, name) -> Algorithm:
    return next(a for a in algorithms if a.name == name)


def test_the_shipped_algorithms_are_those_of_the_task(dissected):
    questions = nines_rich(5)
    columns = Columns.of(questions)
    assert (named(dissected, EXACT).answer(columns) == exact_sum(questions)).all()
    assert (
        named(dissected, ALGORITHM_1).answer(columns) == look_ahead_sum(questions, reach=2)
    ).all()
    for reach in (1, 3, 4):
        said = named(dissected, f"look-ahead {reach}").answer(columns)
        assert (said == look_ahead_sum(questions, reach=reach)).all()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_algorithm_1_gives_the_answers_worked_out_by_hand(case):
    said = look_ahead(2, 5).answer(Columns.of(parse_question(case.question, 5)))
    assert "".join(map(str, said[0, ::-1])) == case.algorithm_1


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("44500+55500", "100000"),  # A5 sees the carry of column 2, which Algorithm 1 does not
        ("44445+55555", "099000"),  # A5 and A4 see nothing but nines
        ("4450+5550", "000000"),  # A4 sees columns 3 and 2 only, and misses the carry of column 1
    ],
)
def test_the_dissected_algorithm_sees_what_heads_read_at_each_digit(dissected, question, answer):
    columns = Columns.of(parse_question(question, 5))
    said = named(dissected, AS_DISSECTED).answer(columns)
    assert "".join(map(str, said[0, ::-1])) == answer


def test_the_control_does_not_depend_on_the_columns_of_its_digits(dissected):
    control, columns = named(dissected, WRONG), Columns.of(nines_rich(5))
    assert control.control
    for k in range(5):
        other = columns.sums.copy()
        other[:, k] = np.roll(other[:, k], 1)
        moved = replace(columns, sums=other)
        assert (control.answer(moved)[:, k] == control.answer(columns)[:, k]).all()


@pytest.mark.parametrize("digits", [1, 2, 5, 12])
def test_the_key_of_a_digit_decides_it(digits, dissected):
    columns = Columns.of(nines_rich(digits))
    for algorithm in dissected if digits == 5 else shipped(digits):
        answer = algorithm.answer(columns)
        for k in range(digits + 1):
            key = algorithm.keys(columns, k)
            together = np.unique(key * 10 + answer[:, k])
            assert len(together) == key.max() + 1, (algorithm.name, k)


def base(columns):
    """No carries at all."""
    return np.pad(columns.base_add, ((0, 0), (0, 1)))


def large(columns):
    return (1000 * np.pad(columns.sums, ((0, 0), (0, 1))) // 1000) % 10


BROKEN = {
    "it gives nothing": (lambda c: None, r"Got object of shape \(\)"),
    "digits are missing": (
        lambda c: c.base_add,
        r"shape \(2000, 6\): questions, and digits A0 to A5. Got .* of shape \(2000, 5\)",
    ),
    "digits are fractions": (
        lambda c: np.zeros((len(c.sums), 6)),
        "must be an array of whole numbers .* Got float64",
    ),
    "digits are too large": (
        lambda c: np.pad(c.sums, ((0, 0), (0, 1))),
        "must have digits from 0 to 9. Got .1",
    ),
    "it depends on nothing": (
        lambda c: np.zeros((len(c.sums), 6), dtype=int),
        "must depend on the question",
    ),
    "it depends on the other questions": (
        lambda c: np.pad(c.base_add[::-1], ((0, 0), (0, 1))),
        "must answer each question by itself",
    ),
}


@pytest.mark.parametrize(("function", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_algorithm_is_refused_in_one_line(function, message):
    with pytest.raises(CallError, match=message) as error:
        own_algorithm(function, 5)
    assert "\n" not in str(error.value)


FILES = {
    "there is no colon": ("mine.py", "", "is given as file.py:name. Got 'mine.py'"),
    "there is no name": ("mine.py:", "", "is given as file.py:name"),
    "there is no file": ("other.py:f", "", "There is no file other.py"),
    "there is no such name": ("mine.py:f", "def g(c): pass", "has no function 'f'. It has: g"),
    "there is nothing": ("mine.py:f", "", "has no function 'f'. It has: none"),
    "it is no function": ("mine.py:f", "f = 7", "has no function 'f'. It has: none"),
    "the file is not Python": ("mine.py:f", "def f(:", "cannot be run: SyntaxError"),
    "the file fails": ("mine.py:f", "import nowhere", "cannot be run: ModuleNotFoundError"),
    "the file exits": ("mine.py:f", "raise SystemExit", "cannot be run: SystemExit"),
    "it takes nothing": ("mine.py:f", "def f(): pass", "f failed on 2,000 questions: TypeError"),
    "it fails": ("mine.py:f", "def f(c): return 1 / 0", "ZeroDivisionError: division by zero"),
    "it writes into the sums": ("mine.py:f", "def f(c): c.sums[:] = 0", "read-only"),
    "it gives ragged lists": ("mine.py:f", "def f(c): return [[1], [1, 2]]", "f failed on 2,000"),
}


@pytest.mark.parametrize(("place", "text", "message"), FILES.values(), ids=FILES)
def test_a_broken_file_is_refused_in_one_line(place, text, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(CallError, match=message) as error:
        own_algorithm(load_function(place), 5)
    assert "\n" not in str(error.value)


def test_a_function_becomes_an_algorithm():
    algorithm = own_algorithm(base, 5)
    assert (algorithm.name, algorithm.about) == ("base", "No carries at all.")
    columns = Columns.of(parse_question("45+67", 5))
    assert algorithm.answer(columns).tolist() == [[2, 0, 0, 0, 0, 0]]
    assert algorithm.variables(columns)["answer"].tolist() == [[2, 0, 0, 0, 0, 0]]


def test_raw_sums_can_be_multiplied_without_overflow():
    columns = Columns.of(nines_rich(5, 100))
    assert (own_algorithm(large, 5).answer(columns) == base(columns)).all()


def test_the_example_in_the_docstring_runs_and_is_the_shortest_look_ahead():
    defined = {}
    exec(textwrap.dedent(own_algorithms.__doc__.split("carry on:\n")[1]), defined)
    own, columns = own_algorithm(defined["no_cascades"], 5), Columns.of(nines_rich(5))
    assert (own.answer(columns) == look_ahead(1, 5).answer(columns)).all()
