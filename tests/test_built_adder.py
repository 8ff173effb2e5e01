import numpy as np
import pytest
import torch
from built_adder import LOGIT, MAX_REACH, built_adder
from cases import CASES, look_ahead_sum

from carryscope.model.answer_path import answer_logits
from carryscope.model.prediction import predict
from carryscope.task.columns import Columns
from carryscope.task.curated import curated_questions
from carryscope.task.questions import Questions, parse_question
from carryscope.task.sampling import uniform, with_nines

sizes = pytest.mark.parametrize("digits", [1, 2, 5, 10, pytest.param(15, marks=pytest.mark.slow)])
formats = pytest.mark.parametrize("layout", ["plain", "signed"])
reaches = pytest.mark.parametrize("reach", [1, 2, 3])


def hard_questions(generator, digits: int, count: int = 1500) -> Questions:
    """Uniform questions, questions with any share of nines, and the curated ones."""
    plain = uniform(generator, count, digits)
    nines = generator.random((count, digits)) < generator.random((count, 1))
    rich = with_nines(generator, uniform(generator, count, digits), nines)
    return Questions.joined([plain, rich, curated_questions(digits)])


def as_tokens(model, questions: Questions, answer: np.ndarray) -> np.ndarray:
    """Answer digits as the model would write them."""
    layout = model.config.layout
    return layout.answer_part(layout.encode(questions, answer))


def written(model, questions: Questions) -> np.ndarray:
    return predict(model, questions, free_running=True).predicted


@sizes
@formats
@reaches
def test_it_writes_every_digit_that_adding_with_its_reach_gives(generator, digits, layout, reach):
    model = built_adder(digits, format=layout, reach=reach)
    questions = hard_questions(generator, digits)
    expected = as_tokens(model, questions, look_ahead_sum(questions, reach=reach))
    for free_running in (False, True):
        answers = predict(model, questions, free_running=free_running)
        assert (answers.predicted == expected).all()
        assert answers.probability.min() > 0.9


@sizes
@formats
@reaches
def test_both_ways_through_it_agree(generator, digits, layout, reach):
    model = built_adder(digits, format=layout, reach=reach)
    questions = hard_questions(generator, digits, count=300)
    tokens = torch.from_numpy(model.config.layout.encode(questions))
    with torch.inference_mode():
        instrumented = model(tokens)[:, list(model.config.layout.answer_rows)]
        fast = answer_logits(model, tokens)
    assert (instrumented.argmax(-1) == fast.argmax(-1)).all()
    # A step is one unit of T, and the rounding of T grows with its size, 10^reach.
    torch.testing.assert_close(fast, instrumented, atol=1e-3 * 10**reach, rtol=0)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_named_sums_come_out_as_algorithm_1_gives_them(case):
    answer = written(built_adder(), parse_question(case.question, 5))[0]
    assert "".join(map(str, answer)) == case.algorithm_1


def test_every_triple_of_raw_sums_gives_the_right_digits(generator):
    sums = np.indices((19, 19, 19)).reshape(3, -1).T
    first = generator.integers(np.maximum(sums - 9, 0), np.minimum(sums, 9) + 1)
    questions = Questions(first, sums - first)
    model = built_adder(3)
    expected = as_tokens(model, questions, look_ahead_sum(questions, reach=2))
    assert (written(model, questions) == expected).all()


@formats
def test_its_logits_are_near_their_nominal_value_for_one_token_and_near_0_for_the_rest(
    generator, layout
):
    model = built_adder(format=layout)
    tokens = torch.from_numpy(model.config.layout.encode(hard_questions(generator, 5)))
    with torch.inference_mode():
        logits = answer_logits(model, tokens)
    chosen = logits.argmax(-1, keepdim=True)
    assert ((logits.gather(-1, chosen) - LOGIT).abs() < 0.05 * LOGIT).all()
    assert (logits.scatter(-1, chosen, 0.0).abs() < 0.01 * LOGIT).all()


@formats
def test_each_head_reads_the_pair_of_its_column_and_equals_where_there_is_none(generator, layout):
    offsets = (1, 2, 0)
    model = built_adder(format=layout, offsets=offsets)
    names = model.config.layout.position_names
    tokens = torch.from_numpy(model.config.layout.encode(uniform(generator, 20, 5)))
    _, cache = model.run_with_cache(tokens, ["blocks.0.attn.hook_pattern"])
    pattern = cache["blocks.0.attn.hook_pattern"].detach()
    for head, offset in enumerate(offsets):
        for k in range(6):
            column = k - offset
            read = [f"D{column}", f"D'{column}"] if 0 <= column < 5 else ["="]
            expected = torch.zeros(len(names))
            expected[[names.index(name) for name in read]] = 1 / len(read)
            found = pattern[:, head, names.index(f"A{k}") - 1]
            torch.testing.assert_close(found, expected.expand_as(found), atol=1e-6, rtol=0)
            assert (found[:, expected == 0] < 1e-20).all()


@formats
def test_the_order_of_the_heads_does_not_matter(generator, layout):
    questions = hard_questions(generator, 5)
    expected = written(built_adder(format=layout), questions)
    for offsets in [(0, 2, 1), (1, 2, 0), (2, 1, 0)]:
        model = built_adder(format=layout, offsets=offsets)
        assert (written(model, questions) == expected).all()


@pytest.mark.parametrize("offsets", [(0, 1, 2), (2, 0, 1)])
def test_without_its_head_for_the_own_column_it_writes_only_the_carries_it_sees(generator, offsets):
    questions = hard_questions(generator, 5)
    columns = Columns.of(questions)
    seen = (columns.carry_in & (columns.look_ahead < 2)).astype(np.int8)
    model = built_adder(offsets=offsets, without=[0])
    found = written(model, questions)
    assert (found == as_tokens(model, questions, seen)).all()
    right = found == as_tokens(model, questions, look_ahead_sum(questions, reach=2))
    assert right[:, 1:].mean() < 0.3


@pytest.mark.parametrize("offsets", [(0, 1, 2), (2, 0, 1)])
def test_without_its_head_for_the_second_column_below_its_reach_is_one(generator, offsets):
    questions = hard_questions(generator, 5)
    model = built_adder(offsets=offsets, without=[2])
    expected = as_tokens(model, questions, look_ahead_sum(questions, reach=1))
    assert (written(model, questions) == expected).all()


def test_without_its_head_for_the_first_column_below_no_carry_arrives(generator):
    questions = hard_questions(generator, 5)
    model = built_adder(without=[1])
    expected = as_tokens(model, questions, look_ahead_sum(questions, reach=0))
    assert (written(model, questions) == expected).all()


def test_it_does_not_look_at_the_answer_it_has_written_so_far(generator):
    model = built_adder(format="signed")
    tokens = torch.from_numpy(model.config.layout.encode(uniform(generator, 200, 5)))
    before = answer_logits(model, tokens).argmax(-1)
    first = model.config.layout.first_row + 1
    tokens[:, first:] = torch.from_numpy(generator.integers(0, 12, tokens[:, first:].shape))
    assert (answer_logits(model, tokens).argmax(-1) == before).all()


def test_what_cannot_be_built_is_refused():
    with pytest.raises(ValueError, match=rf"reach must be between 0 and {MAX_REACH}\. Got 4\."):
        built_adder(reach=4)
    with pytest.raises(ValueError, match=r"offsets must be 0 \.\. 2 in some order\. Got"):
        built_adder(offsets=(0, 1, 1))
    with pytest.raises(ValueError, match=r"without must name some of the offsets"):
        built_adder(without=[3])
