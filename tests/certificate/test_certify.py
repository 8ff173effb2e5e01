"""The certificate against the truth: every question, known circuits, no circuit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from built_adder import built_adder
from exact_margins import as_double
from untrained import untrained

from carryscope.certificate.boxes import questions_of_pairs
from carryscope.certificate.certify import certify
from carryscope.certificate.checking import check_certificate
from carryscope.certificate.finding import Certificate
from carryscope.certificate.proof import Engine
from carryscope.certificate.subject import fastest_engine
from carryscope.core.errors import CallError, WorkError
from carryscope.model.config import ModelConfig
from carryscope.model.files import load_model
from carryscope.model.prediction import predict
from carryscope.model.transformer import Transformer
from carryscope.task.questions import Questions, parse_question
from carryscope.training.loop import train
from carryscope.training.presets import run_config

TIE = 0.01
"""Logits; ten times the margin that a proof demands."""


def all_questions(model: Transformer) -> list[Questions]:
    """All questions of a model, operation by operation."""
    digits, layout = model.config.digits, model.config.layout
    pairs = np.stack(np.meshgrid(*[np.arange(100)] * digits, indexing="ij"), -1).reshape(-1, digits)
    return [questions_of_pairs(pairs, one) for one in layout.operation.each_part]


def counted(model: Transformer) -> tuple[int, list[int]]:
    """By asking every question: whole answers right, and each token right."""
    answers = [predict(model, one, free_running=False) for one in all_questions(model)]
    right = sum(int(one.correct.sum()) for one in answers)
    return right, [count for one in answers for count in one.right.sum(0).tolist()]


def entire(model: Transformer, engine: Engine = "torch") -> Certificate:
    """In exact arithmetic all questions are decided but those that are nearly tied."""
    return certify(model, until=1.0, minutes=5.0, about="exact", engine=engine)


def nearly_tied(model: Transformer) -> int:
    """Questions in which some row has its target within a hair of another token."""
    everything = Questions.joined(all_questions(model))
    tokens = torch.from_numpy(model.config.layout.encode(everything))
    with torch.inference_mode():
        logits = as_double(model)(tokens)
    tied = torch.zeros(len(tokens), dtype=torch.bool)
    for position in model.config.layout.answer_rows:
        target = tokens[:, position + 1, None]
        others = logits[:, position].scatter(1, target, -torch.inf).amax(1)
        tied |= (logits[:, position].gather(1, target)[:, 0] - others).abs() < TIE
    return int(tied.sum())


def assert_equal_to_counting(model: Transformer, engine: Engine) -> Certificate:
    found = entire(model, engine)
    right, tokens = counted(model)
    undecided = int(found.undecided)
    assert undecided <= nearly_tied(model)
    assert 0 <= right - int(found.proved_right) <= undecided
    assert int(found.proved_right) + int(found.proved_wrong) + undecided == int(found.questions)
    for digit, count in zip(found.per_digit, tokens, strict=True):
        assert int(digit.proved_right) <= count <= int(digit.proved_right) + int(digit.undecided)
    return found


SIGNED: dict[str, Any] = {"format": "signed", "vocabulary": 15}
FORMATS: dict[str, dict[str, Any]] = {
    "plain": {},
    "signed": {"format": "signed"},
    "subtraction": {**SIGNED, "operation": "subtraction"},
    "mixed": {**SIGNED, "operation": "mixed"},
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", FORMATS)
def test_for_one_digit_the_certificate_equals_asking_every_question(
    name: str, seed: int, engine: Engine
) -> None:
    config = ModelConfig(digits=1, heads=2, d_model=32, **FORMATS[name])
    found = assert_equal_to_counting(untrained(config, seed), engine)
    check_certificate(untrained(config, seed), found)


def test_without_an_mlp_the_certificate_equals_asking_every_question(engine: Engine) -> None:
    model = untrained(ModelConfig(digits=1, heads=1, d_model=16, d_mlp=0))
    assert_equal_to_counting(model, engine)


@pytest.mark.usefixtures("few_questions")
def test_a_model_trained_on_two_digits_is_decided_as_asking_every_question_decides_it(
    tmp_path: Path,
) -> None:
    """A small model that was trained a little: some questions right, others not."""
    train(run_config("tiny", {"steps": 200, "d_model": 64}), tmp_path)
    found = assert_equal_to_counting(load_model(tmp_path), fastest_engine())
    assert 0 < int(found.per_digit[0].proved_right) < int(found.questions)


@pytest.mark.parametrize("digits", [1, 2])
def test_a_hand_built_adder_is_proved_entirely(digits: int, engine: Engine) -> None:
    found = entire(built_adder(digits, reach=digits), engine)
    assert found.proved_right == found.questions == str(100**digits)


def test_a_hand_built_adder_that_looks_too_short_is_proved_wrong_just_where_it_is(
    engine: Engine,
) -> None:
    model = built_adder(2, reach=1)
    found = assert_equal_to_counting(model, engine)
    # A2 needs the carry of column 0 where column 1 sums to 9: 10 pairs times 45.
    assert found.proved_wrong == "450"
    assert {family.states for family in found.wrong_families} == {"PG"}
    for family in found.wrong_families:
        question = parse_question(family.example, 2)
        assert not predict(model, question, free_running=True).correct.any()


def test_an_untrained_model_is_proved_nothing_it_does_not_do(engine: Engine) -> None:
    model = untrained(ModelConfig(digits=3, heads=2, d_model=48))
    found = certify(model, until=1.0, minutes=0.03, engine=engine)
    generator = np.random.default_rng(0)
    drawn = Questions(
        generator.integers(10, size=(4000, 3)), generator.integers(10, size=(4000, 3))
    )
    right = float(predict(model, drawn, free_running=True).correct.mean())
    questions = int(found.questions)
    assert int(found.proved_right) / questions <= right + 0.01
    assert int(found.proved_wrong) / questions <= 1 - right + 0.01


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("blocks.0.mlp.b_in", math.nan),
        ("blocks.0.mlp.W_in", math.inf),
        ("blocks.0.mlp.W_in", 3e38),
        ("blocks.0.mlp.W_out", 1e7),
        ("unembed.b_U", -math.inf),
        ("pos_embed.W_pos", math.nan),
        ("blocks.0.attn.b_Q", 1e15),  # scores of which float64 keeps nothing
    ],
)
def test_a_model_whose_numbers_cannot_be_bounded_is_refused(name: str, value: float) -> None:
    model = untrained(ModelConfig(digits=1, heads=1, d_model=16))
    model.state_dict()[name].flatten()[0] = value
    with pytest.raises(WorkError, match="cannot be certified"):
        certify(model)


def test_more_than_one_layer_is_refused_in_one_line() -> None:
    with pytest.raises(CallError, match="models of 1 layer"):
        certify(untrained(ModelConfig(digits=1, heads=1, d_model=16, layers=2)))
