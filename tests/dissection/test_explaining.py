"""Why a digit is wrong: on built adders, on the shipped model, and on models that know nothing."""

import re

import numpy as np
import pytest
import torch
from built_adder import built_adder
from untrained import untrained

import carryscope
from carryscope.dissection.asking import Answer, answers, answers_without
from carryscope.dissection.explaining import READS
from carryscope.dissection.interventions import Cut
from carryscope.model import prediction
from carryscope.model.config import ModelConfig
from carryscope.model.plain import PlainModel
from carryscope.task.questions import Questions
from carryscope.task.sampling import uniform, with_nines


def plain(model) -> PlainModel:
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    return PlainModel(model.config, weights)


def answer(model, text, *, without=None) -> Answer:
    if without is None:
        return answers(plain(model), [text])[0]
    return answers_without(model, [text], without)[0]


def why(model, text, *, without=None) -> dict:
    """The explanation of each wrong digit."""
    digits = [d for d in answer(model, text, without=without).digits if d.task]
    assert all((d.explanation is not None) == (d.predicted != d.truth) for d in digits)
    return {digit.name: digit.explanation for digit in digits if digit.explanation}


def test_a_column_that_no_head_reads_is_named():
    (digit, found), *others = why(built_adder(), "445+555").items()
    assert (digit, others) == ("A3", [])
    assert (found.deciding, found.carrying, found.blind) == (0, True, [0])
    assert found.read == {3: ["H0"], 2: ["H1"], 1: ["H2"]}
    assert (found.assumed, found.misled) == (False, False)
    assert found.glance < 1e-20
    assert found.sentence == (
        "A3 is 0 and should be 1: the carry is made in column 0, and to write A3 the heads read "
        "columns 3, 2 and 1. No head reads column 0, so the model wrote A3 as if no carry arrived."
    )


def test_all_columns_that_a_cascade_needs_are_named():
    found = why(built_adder(reach=1), "99999+1")["A5"]
    assert found.blind == [3, 2, 1, 0]
    assert found.read == {4: ["H1"]}, "A5 has no column of its own"
    assert "to write A5 the heads read column 4. No head reads columns 3, 2, 1 and 0, so " in (
        found.sentence
    )


def test_a_column_that_is_read_in_vain_is_no_blind_one():
    found = why(built_adder(without=[2]), "95+6")["A2"]
    assert (found.deciding, found.blind) == (0, [])
    assert found.sentence.endswith(
        "the heads read columns 2, 1 and 0. H2 reads column 0 without effect: the model wrote A2 "
        "as if no carry arrived."
    )


@pytest.mark.parametrize("without", ["H2", "P14.L0.H2"])
def test_a_head_that_is_taken_away_reads_nothing(without):
    found = why(built_adder(), "95+6", without=without)["A2"]
    assert found.read == {2: ["H0"], 1: ["H1"]}
    assert "No head reads column 0" in found.sentence


def test_a_head_that_is_taken_away_at_another_row_still_reads_at_this_one():
    (digit, found), *_ = why(built_adder(), "445+555", without="P16.L0.H1").items()
    assert (digit, found.read[2]) == ("A3", ["H1"])


def test_a_cut_edge_is_not_read():
    names = built_adder().config.layout.position_names
    keys = (names.index("D0"), names.index("D'0"))
    cut = Cut("blocks.0.attn.hook_pattern", rows=(14,), keys=keys)
    assert why(built_adder(), "95+6", without=cut)["A2"].blind == [0]


def test_without_its_own_column_a_digit_cannot_be_computed():
    found = why(built_adder(), "22222+11111", without="H0")["A3"]
    assert found.blind == [3]
    assert found.sentence.endswith(
        "should be 3: no carry arrives, because column 2 sums to 8 or less, and to write A3 the "
        "heads read columns 2 and 1. No head reads column 3, which A3 needs."
    )


@pytest.mark.parametrize(
    ("text", "digit", "reason"),
    [
        ("49+50", "A2", "no carry arrives, because columns 1 and 0 sum to 9, and "),
        ("4+5", "A1", "no carry arrives, because column 0 sums to 9, and "),
        ("5+5", "A1", "the carry is made in column 0, and "),
        ("1+1", "A0", "no carry can arrive at column 0, and "),
    ],
)
def test_the_reason_is_where_the_carry_is_made_or_stopped(text, digit, reason):
    assert reason in why(built_adder(3), text, without="H0")[digit].sentence


def test_a_digit_that_only_follows_a_wrong_one_says_so():
    shipped = carryscope.load().model()
    found = why(shipped, "99999+1")
    assert list(found) == ["A5", "A4", "A3"]
    assert not found["A5"].misled
    assert found["A5"].blind == [1, 0]
    for name in ("A4", "A3"):
        assert found[name].misled
        assert found[name].sentence == (
            f"{name} is 9 and should be 0: a digit before it is wrong. After the true ones the "
            "model writes 0."
        )
    layout, question = shipped.config.layout, Questions.from_integers([(99999, 1)], 5)
    with torch.inference_mode():
        forced = shipped(torch.from_numpy(layout.encode(question)))[0, layout.first_row : -1]
    assert layout.text(forced.argmax(-1).numpy()) == "000000", "only A5 is wrong after true digits"


def failing_sums(model, count: int) -> list[Answer]:
    generator = np.random.default_rng(7)
    rich = with_nines(generator, uniform(generator, 600, 5), generator.random((600, 5)) < 0.5)
    wrong = np.flatnonzero(~prediction.answer(model, rich, free_running=True).correct)
    return answers(plain(model), rich[wrong[:count]].texts())


def test_what_is_said_of_50_failing_sums_agrees_with_attention_computed_another_way():
    """Columns by hand from the numbers; attention from the instrumented pass in torch."""
    shipped = carryscope.load().model()
    layout, failing = shipped.config.layout, failing_sums(shipped, 50)
    assert [one.correct for one in failing] == [False] * 50
    explained = 0
    for one in failing:
        a, b = (number.zfill(5)[::-1] for number in one.question.split("+"))
        sums = [int(x) + int(y) for x, y in zip(a, b, strict=True)]
        text = f"{a[::-1]}+{b[::-1]}={one.answer}"
        tokens = torch.tensor([[layout.symbols.index(symbol) for symbol in text]])
        _, cache = shipped.run_with_cache(tokens, ["blocks.0.attn.hook_pattern"])
        pattern = cache["blocks.0.attn.hook_pattern"][0].detach()
        for digit in one.digits:
            found, k = digit.explanation, int(digit.name[1:])
            if found is None:
                continue
            below = [i for i in reversed(range(k)) if sums[i] != 9]
            assert found.deciding == (None if not k else below[0] if below else 0)
            assert found.carrying == bool(below and sums[below[0]] >= 10)
            row = pattern[:, layout.position_names.index(digit.name) - 1]
            shares = {i: row[:, 4 - i] + row[:, 10 - i] for i in range(5)}
            read = {i: [f"H{h}" for h in range(3) if shares[i][h] > READS] for i in shares}
            assert found.read == {i: heads for i, heads in read.items() if heads}
            needed = range(found.deciding if k else 0, min(k, 4) + 1)
            assert found.blind == [i for i in reversed(needed) if not read[i]]
            with_other = sums[k] + (not found.carrying) if k < 5 else int(not found.carrying)
            fits = digit.predicted == str(with_other % 10)
            assert found.assumed == ((not found.carrying) if fits else None)
            if found.blind and not found.misled:
                unread = re.search(r"No head reads columns? ([\d, and]+)", found.sentence)
                assert re.findall(r"\d", unread[1]) == [str(i) for i in found.blind]
                explained += 1
    assert explained > 40, "nearly every failing sum has a digit whose column is not read"


def test_an_untrained_model_is_said_to_read_nothing():
    model = untrained(ModelConfig(d_model=48))
    for found in why(model, "445+555").values():
        if not found.misled:
            assert found.read == {}
            assert "no head reads a column. A" in found.sentence
            assert "the model wrote" not in found.sentence, "a guess is no assumption"


def test_with_several_layers_nothing_is_concluded_from_the_heads_of_a_row(random_model):
    model = random_model(digits=3, layers=2, format="signed")
    found = why(model, "445+555")
    assert found
    assert answer(model, "445+555").digits[0].explanation is None, "a sign is not explained"
    for one in found.values():
        assert one.misled or one.sentence.endswith("Lower layers may bring more to its row.")
        assert "No head reads" not in one.sentence


@pytest.mark.parametrize("shape", [{"digits": 1, "heads": 1}, {"digits": 2, "d_mlp": 0}])
def test_any_wrong_answer_has_sentences(shape, random_model):
    digits = shape["digits"]
    questions = uniform(np.random.default_rng(0), 50, digits)
    for one in answers(plain(random_model(**shape)), questions.texts()):
        for digit in one.digits:
            assert digit.explanation is None or digit.explanation.sentence.startswith(
                f"{digit.name} is {digit.predicted} and should be {digit.truth}: "
            )
