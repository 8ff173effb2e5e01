"""Questions as a person types them, with the whole model or without some of its parts."""

from pathlib import Path

import numpy as np
import pytest

import carryscope
from carryscope.core.errors import CallError
from carryscope.dissection.asking import Answer, answers, answers_without
from carryscope.dissection.engine import Engine
from carryscope.dissection.interventions import Ablate, Cut, Node
from carryscope.dissection.samples import Samples
from carryscope.model.files import load_model
from carryscope.model.plain import PlainModel
from carryscope.model.prediction import predict
from carryscope.task.questions import parse_question
from carryscope.task.sampling import uniform

SHIPPED = Path(carryscope.__file__).parent / "shipped" / "fast-5"


def plain(model) -> PlainModel:
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    return PlainModel(model.config, weights)


def answer(model, text, *, without=None) -> Answer:
    if without is None:
        return answers(plain(model), [text])[0]
    return answers_without(model, [text], without)[0]


@pytest.fixture(scope="module")
def shipped():
    return load_model(SHIPPED)


def test_an_answer_has_every_digit_with_its_task_and_where_the_heads_look(shipped):
    given = answer(shipped, " 0445 + 555 =")
    assert (given.question, given.truth, given.answer) == ("445+555", "001000", "000000")
    assert not given.correct
    a3 = given.digits[2]
    assert (a3.name, a3.truth, a3.predicted) == ("A3", "1", "0")
    assert (a3.task, a3.look_ahead, a3.carrying) == ("UC1", 2, True)
    assert [list(look.positions) for look in a3.attention] == [
        ["D3", "D'3"],
        ["D2", "D'2"],
        ["D1", "D'1"],
    ]


@pytest.mark.parametrize(
    "shape",
    [{"digits": 3}, {"digits": 2, "layers": 2, "format": "signed"}],
    ids=["plain", "signed"],
)
def test_answers_are_free_running_and_the_same_one_by_one(shape, random_model, generator):
    model = random_model(**shape)
    questions = uniform(generator, 20, shape["digits"])
    given = answers(plain(model), questions.texts())
    expected = predict(model, questions, free_running=True)
    for i, one in enumerate(given):
        assert one.answer == model.config.layout.text(expected.predicted[i])
        chances = [digit.probability for digit in one.digits]
        np.testing.assert_allclose(chances, expected.probability[i], atol=1e-5)
    alone = answer(model, questions.texts()[3])
    assert alone.answer == given[3].answer
    assert (given[0].digits[0].task is None) == (shape.get("format") == "signed")


def test_no_questions_have_no_answers(random_model):
    assert answers(plain(random_model(digits=2)), []) == []


def test_the_shipped_model_fails_without_a_head(shipped):
    whole, without = (answer(shipped, "23816+15327", without=name) for name in (None, "H1"))
    assert whole.correct
    assert not without.correct


def test_a_part_at_one_row_changes_the_digit_of_that_row_as_in_the_engine(shipped):
    text = "23816+15327"
    given = answer(shipped, text, without="P13.L0.H1")
    engine = Engine(shipped, Samples(5, 0).varied)
    question = parse_question(text, 5)
    said = engine.answers(question, [Node.parse("P13.L0.H1").ablated()]).predicted[0, 0]
    assert given.answer[:3] == shipped.config.layout.text(said)[:3]
    assert [d.name for d in given.digits if d.predicted != d.truth][:1] == ["A3"]


def test_what_is_taken_away_below_changes_where_heads_look_above(random_model):
    model = random_model(digits=2, layers=2)
    whole, without = (
        [
            np.array(list(look.positions.values()))
            for look in answer(model, "12+34", without=name).digits[0].attention
        ]
        for name in ([], "L0.H0,L0.MLP")
    )
    assert all(np.array_equal(a, b) for a, b in zip(whole[:3], without[:3], strict=True))
    assert not any(np.allclose(a, b) for a, b in zip(whole[3:], without[3:], strict=True))


def test_with_nothing_taken_away_both_ways_agree(random_model):
    model = random_model(digits=2, layers=2)
    whole, nothing = (answer(model, "12+34", without=name) for name in (None, []))
    assert nothing.answer == whole.answer
    chances = [[digit.probability for digit in one.digits] for one in (whole, nothing)]
    np.testing.assert_allclose(*chances, atol=1e-5)


def test_an_intervention_can_be_given_as_a_value(random_model):
    model = random_model(digits=2)
    everywhere = tuple(range(model.config.context))
    named = answer(model, "12+34", without="H1")
    assert answer(model, "12+34", without=["L0H1"]) == named
    value = answer(model, "12+34", without=Ablate("blocks.0.attn.hook_z", everywhere, (1,)))
    assert value == named
    blind = Cut("blocks.0.attn.hook_pattern", everywhere, keys=(0, 1), heads=(0,))
    seen = answer(model, "12+34", without=[blind, "MLP"]).digits[0].attention[0].positions
    assert not {"D0", "D1"} & {name for name, share in seen.items() if share > 0}


@pytest.mark.parametrize(
    ("without", "message"),
    [
        ("H3", r"This model has the heads H0 to H2. Got 'H3'."),
        ("L1H0", r"This model has the heads H0 to H2. Got 'L1H0'."),
        ("head 1", r"A part is written like H1, L0H1, MLP or P13.L0.H2. Got 'head 1'."),
        ("P40.L0.H1", r"Positions must be between 0 and 8"),
    ],
)
def test_a_part_that_does_not_exist_is_refused_in_one_line(without, message, random_model):
    with pytest.raises(CallError, match=message):
        answer(random_model(digits=2), "1+1", without=without)


def test_in_a_deeper_model_a_head_needs_its_layer(random_model):
    with pytest.raises(CallError, match=r"This model has 2 layers: write L0H1. Got 'H1'."):
        answer(random_model(digits=2, layers=2), "1+1", without="H1")


def test_a_model_without_an_mlp_cannot_lose_it(random_model):
    with pytest.raises(CallError, match="has no MLP"):
        answer(random_model(digits=2, d_mlp=0), "1+1", without="MLP")
