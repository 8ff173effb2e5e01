"""The page computes what Python computes: clean, and with parts taken away in every way."""

from functools import lru_cache

import hooked
import numpy as np
import pytest
import torch
from hooked import answers_by_hooks
from micro_model import MICRO_LOGITS, micro_model
from torch import Tensor

import carryscope
from carryscope.dissection.asking import answers_without
from carryscope.dissection.interventions import Ablate, Cut, Patch
from carryscope.dissection.samples import Samples
from carryscope.model.answer_path import answer_logits
from carryscope.model.prediction import predict
from carryscope.model.transformer import Transformer
from carryscope.task.questions import Questions, parse_question

CLOSE = 1e-3
"""As near as the issue asks for; float32 weights are the same on both sides."""

ASK = """argument.sums.map((sum) =>
    argument.changes.map(([off, how]) => explorer.logits(sum, off, how)))"""


@lru_cache
def clean_values(model: Transformer, questions: Questions) -> dict[str, Tensor]:
    """The clean values at every site that is ablated here."""
    parts = ["attn.hook_z", "hook_resid_post", *(["hook_mlp_out"] if model.config.d_mlp else [])]
    sites = [f"blocks.{layer}.{part}" for layer in range(model.config.layers) for part in parts]
    tokens = torch.from_numpy(model.config.layout.encode(questions))
    with torch.inference_mode():
        return model.run_with_cache(tokens, sites)[1]


@pytest.fixture(scope="module", autouse=True)
def clean_values_are_taken_once():
    """They take seconds, and are the same for every intervention."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            hooked, "_values", lambda model, site, asked: clean_values(model, asked)[site]
        )
        yield


@pytest.fixture(scope="module")
def shipped_model() -> Transformer:
    return carryscope.load().model()


@lru_cache
def reference(digits: int) -> Questions:
    return Samples(digits, seed=0).varied


def z(rows, head, how, layer=0):
    return Ablate(f"blocks.{layer}.attn.hook_z", tuple(rows), (head,), how)


def mlp(rows, how, layer=0):
    return Ablate(f"blocks.{layer}.hook_mlp_out", tuple(rows), None, how)


def stream(row, how, layer=0):
    return Ablate(f"blocks.{layer}.hook_resid_post", (row,), None, how)


def edge(row, head, key, layer=0):
    return Cut(f"blocks.{layer}.attn.hook_pattern", (row,), (key,), (head,))


def worst_difference(explorer, model: Transformer, questions: Questions, changes):
    """For each change, by how much the page's logits and Python's differ at most."""
    means_over = reference(model.config.digits)
    asked = {"sums": questions.texts(), "changes": [change[:2] for change in changes]}
    in_page = np.array(explorer.call(ASK, asked))
    worst = {}
    for place, (off, how, interventions) in enumerate(changes):
        expected = answers_by_hooks(model, questions, interventions, means_over).numpy()
        worst[f"{off} {how}"] = np.abs(in_page[:, place] - expected).max()
    return worst


def test_200_questions_have_the_logits_of_python(shipped, shipped_model):
    questions = Samples(5, seed=1).varied[:200]
    worst = worst_difference(shipped, shipped_model, questions, [([], "mean", [])])
    assert max(worst.values()) < CLOSE, worst


def test_under_each_kind_of_ablation_the_logits_are_those_of_python(shipped, shipped_model):
    rows, changes = range(17), []
    for how in ("mean", "zero"):
        changes += [
            (["P13.L0.H2"], how, [z([13], 2, how)]),
            (["P14.L0.MLP"], how, [mlp([14], how)]),
            (["P12.L0"], how, [stream(12, how)]),
        ]
    changes += [
        (["P15.L0.H0.P3"], "mean", [edge(15, 0, 3)]),
        (["L0.H1"], "mean", [z(rows, 1, "mean")]),
        (["L0.H1"], "zero", [z(rows, 1, "zero")]),
        (["L0.MLP"], "mean", [mlp(rows, "mean")]),
        (["L0.MLP"], "zero", [mlp(rows, "zero")]),
    ]
    questions = Samples(5, seed=1).varied[170:200]
    worst = worst_difference(shipped, shipped_model, questions, changes)
    assert len(worst) == 11
    assert max(worst.values()) < CLOSE, worst


def test_several_parts_taken_away_at_once_do_what_they_do_together_in_python(
    shipped, shipped_model
):
    names = ["L0.H2", "P12.L0.MLP", "P13.L0.H0.P1", "P13.L0.H0.P7", "P14.L0", "P14.L0.H1"]
    taken = [
        z(range(17), 2, "mean"),
        mlp([12], "mean"),
        edge(13, 0, 1),
        edge(13, 0, 7),
        stream(14, "mean"),
        z([14], 1, "mean"),
    ]
    questions = Samples(5, seed=2).varied[150:160]
    changes = [(names, "mean", taken)]
    worst = worst_difference(shipped, shipped_model, questions, changes)
    assert max(worst.values()) < CLOSE, worst


@pytest.mark.parametrize(
    "fields",
    [
        {"layers": 2, "format": "signed", "heads": 2, "vocabulary": 15},
        {"layers": 3, "heads": 4},
        {"layers": 2, "d_mlp": 0},
        {"layers": 2, "heads": 4, "d_head": 10},
    ],
    ids=lambda fields: " ".join(f"{name}={value}" for name, value in fields.items()),
)
def test_untrained_models_of_other_shapes_have_the_logits_of_python(
    fields, explore_model, random_model
):
    model = random_model(digits=3, **fields)
    last, rows = model.config.layers - 1, range(model.config.context - 1)
    changes = [
        ([], "mean", []),
        (["L0.H1"], "mean", [z(rows, 1, "mean")]),
        (["P2.L0.H0"], "zero", [z([2], 0, "zero")]),
        ([f"P9.L{last}.H0"], "mean", [z([9], 0, "mean", last)]),
        (["P4.L0"], "mean", [stream(4, "mean")]),
        (["P8.L0"], "zero", [stream(8, "zero")]),
        (["P7.L0.H1.P2"], "zero", [edge(7, 1, 2)]),
        (["P0.L0.H1.P0"], "zero", [edge(0, 1, 0)]),
        ([f"P8.L{last}.H0.P7"], "zero", [edge(8, 0, 7, last)]),
    ]
    if model.config.d_mlp:
        changes += [
            (["L0.MLP"], "mean", [mlp(rows, "mean")]),
            ([f"P7.L{last}.MLP"], "zero", [mlp([7], "zero", last)]),
        ]
    questions = Samples(3, seed=3).varied[:12]
    worst = worst_difference(explore_model(model), model, questions, changes)
    assert max(worst.values()) < CLOSE, worst


def test_the_micro_model_has_the_logits_that_were_worked_out_by_hand(explore_model):
    logits = explore_model(micro_model()).call("explorer.logits('1+2')")
    assert logits[0] == pytest.approx(MICRO_LOGITS, abs=CLOSE)


def test_free_running_the_page_writes_what_python_writes_wrong_answers_too(shipped, shipped_model):
    questions = Samples(5, seed=0).varied[:60]
    given = predict(shipped_model, questions, free_running=True)
    assert not given.correct.all(), "a wrong digit is read by the rows after it"
    code = "argument.map((sum) => explorer.logits(sum, [], 'mean', { free: true }))"
    logits = np.array(shipped.call(code, questions.texts()))
    assert (logits.argmax(-1) == given.predicted).all()
    chances = torch.from_numpy(logits).softmax(-1).amax(-1).numpy()
    assert np.abs(chances - given.probability).max() < CLOSE


def test_asked_in_any_order_with_any_parts_a_machine_gives_what_a_fresh_one_gives(
    explore_model, random_model, generator
):
    """A row is computed again only if something reaching it changed; so nothing may be stale."""
    model = random_model(digits=2, layers=2, format="signed")
    explorer = explore_model(model)
    parts = ["L0.H0", "L1.H2", "P1.L0.MLP", "P6.L1", "P2.L0", "P5.L0.H1.P3", "P7.L1.H0.P6"]
    asked = []
    for _ in range(80):
        chosen = [part for part in parts if generator.random() < 0.2]
        first, second = generator.integers(0, 100, 2)
        sum_ = f"{first}+{second}" if generator.random() < 0.5 or not asked else asked[-1][0]
        how = ("zero", "mean")[int(generator.random() < 0.5)]
        asked.append([sum_, chosen, how])
    kept = explorer.call("argument.map((call) => explorer.logits(...call))", asked)
    code = "argument.map((call) => { explorer.asked = undefined; return explorer.logits(...call) })"
    assert kept == explorer.call(code, asked)


@pytest.mark.parametrize("operation", ["addition", "subtraction", "mixed"])
def test_a_signed_question_that_python_answers_by_its_fast_path_comes_out_the_same(
    operation, explore_model, random_model
):
    shape = {"digits": 4, "format": "signed", "vocabulary": 15, "heads": 1}
    model = random_model(operation=operation, **shape)
    questions = Samples.of(model.config.layout, 5).varied[:300:7]
    tokens = torch.from_numpy(model.config.layout.encode(questions))
    with torch.inference_mode():
        expected = answer_logits(model, tokens).numpy()
    code = "argument.map((sum) => explorer.logits(sum))"
    in_page = np.array(explore_model(model).call(code, questions.texts()))
    assert np.abs(in_page - expected).max() < CLOSE


def test_parts_exchanged_between_two_sums_do_what_they_do_in_python(shipped, shipped_model):
    base, source = (parse_question(text, 5) for text in ("445+555", "12345+98765"))
    plain = answers_by_hooks(shipped_model, base, [], reference(5)).numpy()[0]
    sites = {
        "P13.L0.H2": Patch("blocks.0.attn.hook_z", (13,), source, (2,)),
        "P12.L0.MLP": Patch("blocks.0.hook_mlp_out", (12,), source),
        "L0.H1": Patch("blocks.0.attn.hook_z", tuple(range(17)), source, (1,)),
        "P14.L0": Patch("blocks.0.hook_resid_post", (14,), source),
    }
    for name, patch in sites.items():
        asked = "explorer.logits(argument[0], [argument[1]], 'swap', { other: argument[2] })"
        in_page = shipped.call(asked, ["445+555", name, "12345+98765"])
        python = answers_by_hooks(shipped_model, base, [patch], reference(5)).numpy()[0]
        assert np.abs(np.array(in_page) - python).max() < CLOSE, name
        assert np.abs(plain - python).max() > 0.1, "it changes something"


def test_an_exchange_is_shown_and_linked(shipped):
    shipped.page.locator("[data-how=swap]").click()
    shipped.part("donor").fill("1+9")
    shipped.named("L0.H1").click()
    assert shipped.status.startswith("With H1 of 1+9:")
    shipped.part("undo").click()
    assert shipped.removed == []


@pytest.mark.parametrize("operation", ["subtraction", "mixed"])
def test_differences_have_pythons_digits_borrows_signs_and_explanations(
    operation, explore_model, random_model
):
    model = random_model(digits=3, operation=operation, format="signed", vocabulary=15)
    explorer = explore_model(model)
    asked = ["135-36", "36-135", "700-7", "7-700", "0-0", "445-446", "998-999", "812-327"]
    asked += ["445+555", "999+1"] if operation == "mixed" else []
    for text in asked:
        explorer.type(text)
        (given,) = answers_without(model, [text], ())
        told = explorer.call("explorer.result.digits")
        for place, (digit, expected) in enumerate(zip(told, given.digits, strict=True)):
            for name, value in digit.items():
                if getattr(expected, name, None) is not None:
                    assert value == pytest.approx(getattr(expected, name), abs=1e-3), (text, name)
            assert digit["written"] == expected.predicted
            if expected.look_ahead is not None:
                assert digit["lookAhead"] == expected.look_ahead
            explorer.call("explorer.store.look(argument)", model.config.layout.first_row + place)
            why = explorer.part("why").inner_text()
            if operation == "subtraction" and expected.explanation is not None:
                assert why == expected.explanation.sentence
            assert why.startswith(f"{expected.name} is {expected.predicted}")
    explorer.type("12*3")
    signs = {"subtraction": "“-”", "mixed": "“+” or “-”"}[operation]
    assert f"only digits and one {signs}. Got “*”." in explorer.part("message").inner_text()
