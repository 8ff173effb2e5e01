"""Subtraction and mixed questions, from training to every command, as a user types them."""

import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
from untrained import untrained

from carryscope.certificate.finding import DigitProof
from carryscope.cli.main import run
from carryscope.core.errors import CallError
from carryscope.dissection.comparing import comparison_statement, comparisons
from carryscope.dissection.explaining import explain
from carryscope.fits import check_fit
from carryscope.model.config import ModelConfig
from carryscope.model.files import read_model_config, weights_hash
from carryscope.report.markdown import markdown
from carryscope.report.sections.verification import risk_section
from carryscope.task.columns import Columns
from carryscope.task.operation import ADD, MIXED, OPERATIONS, SUBTRACT
from carryscope.task.questions import Questions
from carryscope.task.sampling import uniform
from carryscope.task.strata import as_written, stratum_probabilities
from carryscope.task.tokens import Format
from carryscope.training.checkpoint import read_metrics
from carryscope.training.config import TrainingConfig
from carryscope.training.data import training_batch
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer
from carryscope.verification.partition import partition
from carryscope.verification.risk import judged_risk

SIGNED = ("subtraction", "mixed")

TINY = ["--preset", "tiny", "--d-model", "24", "--steps", "40", "--threads", "1"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> dict[str, Path]:
    """A two-digit model of each operation that can be negative, trained for a moment."""
    runs = {name: tmp_path_factory.mktemp("operations") / name for name in SIGNED}
    for name, directory in runs.items():
        assert run(["train", *TINY, "--operation", name, "--out", str(directory)]) == 0
    return runs


@pytest.fixture(params=SIGNED)
def signed_run(request, trained, tmp_path) -> Path:
    """A copy of one of them."""
    return Path(shutil.copytree(trained[request.param], tmp_path / request.param))


def test_the_tokens_follow_the_operation_and_the_operation_is_kept(signed_run):
    config = read_model_config(signed_run)
    assert (config.operation, config.format, config.vocabulary) == (signed_run.name, "signed", 15)
    assert config.layout.operation is OPERATIONS[config.operation]


def test_a_config_from_before_operations_is_of_addition():
    assert msgspec.json.decode(b'{"digits": 2}', type=ModelConfig).operation == "addition"
    with pytest.raises(CallError, match="operation must be one of"):
        ModelConfig(operation="division")
    with pytest.raises(CallError, match="needs the signed format and 15 tokens"):
        ModelConfig(operation="subtraction")


def test_the_same_weights_of_another_operation_are_another_model():
    names = ("addition", "subtraction", "mixed")
    shape = {"digits": 1, "heads": 1, "d_model": 4, "format": "signed", "vocabulary": 15}
    hashes = {weights_hash(untrained(ModelConfig(operation=name, **shape))) for name in names}
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("question", "truth"), [("12-99", "-087"), ("99 - 12", "+087"), ("5-5=", "+000")]
)
def test_a_difference_is_asked_as_it_is_written(signed_run, question, truth, capsys):
    assert run(["ask", str(signed_run), question, "--csv"]) == 0
    assert f",{truth}," in capsys.readouterr().out


def test_a_mixed_model_answers_both_in_one_table(trained, capsys):
    assert run(["ask", str(trained["mixed"]), "12+99", "12-99", "--csv"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split(",")[2] for line in lines] == ["+111", "-087"]


@pytest.mark.parametrize("question", ["5--3", "5-", "-5+3", "-5", "123-4", "5-+3", "5*3"])
def test_what_is_no_difference_is_refused_in_one_line(signed_run, question, capsys):
    assert run(["ask", str(signed_run), question]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "question", "said"),
    [
        ("fast-5", "5-3", "only adds, without signs. Got a minus sign in '5-3'"),
        ("subtraction", "5+3", "only subtracts, without signs. Got a plus sign in '5+3'"),
    ],
)
def test_an_operation_that_the_model_does_not_know_is_refused(
    name, question, said, trained, capsys
):
    assert run(["ask", str(trained.get(name, name)), question]) == 2
    assert said in capsys.readouterr().err


def test_three_words_are_no_difference_and_wait_for_no_input(trained, capsys):
    assert run(["ask", str(trained["mixed"]), "12", "-", "99"]) == 2
    assert "in quotes" in capsys.readouterr().err


def test_losses_are_recorded_under_the_names_of_each_operation(trained):
    names = {name: set(read_metrics(path)[0].task_loss) for name, path in trained.items()}
    assert names["subtraction"] == {"MD", "UB", "UZ"}
    assert names["mixed"] == {"BA", "UC1", "US9", "MD", "UB", "UZ"}


def test_task_classes_count_every_digit_of_a_mixed_batch_once(trained):
    record = read_metrics(trained["mixed"])[0]
    counts = np.sum(list(record.task_count.values()), axis=0)
    assert counts.tolist() == [0, 128, 128, 128]  # the sign has no task


@pytest.mark.parametrize(
    ("share", "least", "most"), [(0.0, 0, 0), (0.5, 400, 600), (1.0, 999, 1000)]
)
def test_a_recipe_says_which_share_of_a_mixture_are_differences(share, least, most):
    recipe = TrainingConfig(batch=1000, differences=share)
    batch = training_batch(recipe, 4, 0, MIXED)
    assert least <= (batch.kind == MIXED.parts.index(SUBTRACT)).sum() <= most


@pytest.mark.parametrize("operation", [ADD, SUBTRACT, MIXED])
def test_our_own_rule_makes_cascades_of_every_operation(operation):
    recipe = TrainingConfig(batch=2000, nines=1.0, near_nines=0.7, paper_tail=0.0)
    columns = Columns.of(training_batch(recipe, 5, 0, operation))
    passing = columns.make_sum_9.mean(axis=1)
    for kind in range(len(operation.parts)) or [None]:
        ours = slice(None) if kind is None else columns.kind == kind
        assert 0.4 < passing[ours].mean() < 0.6
        assert (columns.look_ahead[ours] >= 4).any()


def test_near_misses_of_a_mixture_are_one_off_in_each_operation():
    recipe = TrainingConfig(batch=4000, nines=1e-9, near_nines=1.0, paper_tail=0.0)
    columns = Columns.of(training_batch(recipe, 5, 0, MIXED))
    for place, one in enumerate(MIXED.parts):
        off = np.abs(columns.sums[columns.kind == place] - one.propagates) == 1
        assert off.mean() > 0.5


def test_patterns_of_a_mixture_are_drawn_for_both_operations():
    recipe = TrainingConfig(batch=400, patterns=("KPPG",))
    batch = training_batch(recipe, 4, 0, MIXED)
    state = np.stack([one.state[batch.first, batch.second] for one in MIXED.parts])
    fits = (state[batch.kind, np.arange(400)][:, ::-1] == [0, 1, 1, 2]).all(axis=1)
    assert [fits[batch.kind == place].sum() >= 90 for place in (0, 1)] == [True, True]


class Proof(msgspec.Struct):
    """What is checked of a certificate."""

    per_digit: list[DigitProof]


def test_a_proof_of_a_mixed_model_is_read_again_by_its_operation_and_no_other():
    model = ModelConfig(digits=2, operation="mixed", format="signed", vocabulary=15)
    kept = {"proved_right": "9000", "proved_wrong": "0", "undecided": "1000", "boxes": 1}
    digits = [
        DigitProof(digit=f"A{digit} ({symbol})", **kept) for symbol in "+-" for digit in "3210"
    ]
    check_fit(Proof(digits), model)
    with pytest.raises(CallError, match="digit does not fit"):
        check_fit(Proof([*digits[:-1], DigitProof(digit="A0 (*)", **kept)]), model)
    with pytest.raises(CallError, match="an entry for each answer token"):
        check_fit(Proof(digits[:4]), model)


def test_the_authors_stream_has_sums_only():
    with pytest.raises(CallError, match="sums only. Got mixed"):
        run_config("paper-5", {"operation": "mixed"})


COMMANDS = {
    "ask": ["ask", "RUN", "90-9"],
    "dissect": ["dissect", "RUN"],
    "risk": ["risk", "RUN"],
    "faithful": ["faithful", "RUN"],
    "report": ["report", "RUN"],
    "figures": ["figures", "RUN", "--out", "OUT"],
    "explorer": ["explorer", "RUN", "--out", "OUT.html"],
    "repair": ["repair", "RUN", "--out", "OUT", "--minutes", "0.02", "--threads", "1"],
}


@pytest.fixture(scope="module", params=SIGNED)
def walked(request, trained, tmp_path_factory) -> Path:
    """A run that every command finds as the one before left it."""
    place = tmp_path_factory.mktemp("walked") / request.param
    return Path(shutil.copytree(trained[request.param], place))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_a_model_that_subtracts(name, walked, capsys):
    out = str(walked.parent / f"{walked.name}-{name}")
    words = [word.replace("RUN", str(walked)).replace("OUT", out) for word in COMMANDS[name]]
    code = run(words)
    printed = capsys.readouterr()
    assert code == 0, printed.err
    said = printed.out.lower()
    assert not {"nine", "does not add:", "sums to"} & set(said.split())


def test_a_sweep_of_subtraction_has_the_words_of_subtraction(tmp_path, capsys):
    sweep = ["sweep", "--seeds", "0", "--out", str(tmp_path / "sweep"), *TINY]
    assert run([*sweep, "--operation", "subtraction"]) == 0
    assert "equal pair" in (tmp_path / "sweep" / "sweep.html").read_text()


def fails_negative(questions: Questions) -> np.ndarray:
    """A judge that fails every negative answer: 99 of 200 differences of two digits."""
    wrong = np.zeros((len(questions), questions.digits + 2), dtype=bool)
    wrong[:, 0] = questions.negative
    return wrong


@pytest.mark.parametrize("operation", [SUBTRACT, MIXED])
def test_the_risk_of_a_known_failure_is_its_probability(operation):
    layout = Format(2, "signed", 15, operation)
    found = judged_risk(fails_negative, layout, weights_sha256="", seed=0, width=0.1, budget=1000)
    negative = 0.495 / len(operation.each_part)
    assert found.teacher_forced.estimate == pytest.approx(negative)
    assert int(found.questions) == 10_000 * len(operation.each_part)
    assert {s.name.split()[-1][0] for s in found.strata if s.failed.count} == {"-"}
    signs = [case for case in found.cases if case.digit == "A3"]
    assert all(case.wrong.estimate == case.carrying for case in signs)
    assert sum(case.probability for case in signs) == pytest.approx(1 / len(operation.each_part))


def test_the_risk_of_long_differences_is_weighted_by_sign_and_cascades():
    layout = Format(7, "signed", 15, SUBTRACT)
    found = judged_risk(fails_negative, layout, weights_sha256="", seed=0, width=0.1, budget=1000)
    assert found.teacher_forced.estimate == pytest.approx((1 - 1e-7) / 2)
    assert all(one.name.startswith("negative, longest") for one in found.failures)
    assert "Quiet: how many in a row would" in markdown([risk_section(found)])


def test_strata_of_a_mixture_are_sampled_with_their_exact_probabilities(generator):
    strata = partition(3, MIXED)
    assert sum(strata.probabilities) == 1
    assert dict(zip(strata.names, strata.probabilities, strict=True)) == stratum_probabilities(
        3, MIXED
    )
    drawn, stratum = strata.draw_each(generator, np.full(len(strata), 3))
    assert (strata.of(drawn) == stratum).all()


def test_a_pattern_is_the_states_as_they_are_written():
    assert [as_written(name) for name in ("KPG", "+KPG", "-KPG", "- -KPG", "+ KPG")] == [
        "KPG", "KPG", "GPK", "GPK", "KPG",
    ]  # fmt: skip


def test_a_mixed_training_that_is_stopped_continues_with_the_same_bits():
    config = run_config("tiny", {"operation": "mixed", "d_model": 8, "steps": 6})
    whole, early, late = (Trainer(config) for _ in range(3))
    records = [whole.advance() for _ in range(6)]
    assert [early.advance() for _ in range(3)] == records[:3]
    late.restore(3, early.state())
    assert [late.advance() for _ in range(3)] == records[3:]
    for name, weight in whole.state().items():
        assert (late.state()[name] == weight).all(), name


def test_why_a_digit_is_wrong_is_said_of_the_numbers_as_they_are_written(trained):
    """In 10-94 no borrow arrives at A1: of 94-10, column 0 has the larger digit first."""
    config = read_model_config(trained["subtraction"])
    columns = Columns.of(config.layout.parse("10-94"))
    nothing = np.zeros((1, 2, 2))
    found = explain(columns, 1, "7", nothing, config, misled=False)
    assert "no borrow arrives, because column 0 has the smaller digit first" in found.sentence


def test_a_head_that_attends_to_the_larger_digit_compares():
    """Two heads at every row of two-digit differences: one compares column 0, one reads D1."""
    layout = Format(2, "signed", 15, SUBTRACT)
    questions = uniform(np.random.default_rng(0), 500, 2, SUBTRACT)
    patterns = np.zeros((500, 1, 2, layout.answer_length, layout.context))
    larger = np.sign(questions.first[:, 0] - questions.second[:, 0]) / 2 + 0.5
    patterns[:, 0, 0, :, 1], patterns[:, 0, 0, :, 4] = larger[:, None], 1 - larger[:, None]
    patterns[:, 0, 1, :, 0] = 1.0
    found = comparisons(patterns, questions, layout)
    assert len(found) == 2 * layout.answer_length
    first, second = found[: layout.answer_length], found[layout.answer_length :]
    assert all((one.compares, one.one_digit) == (True, False) for one in first)
    assert all((one.compares, one.one_digit) == (False, True) for one in second)
    assert [one.own for one in first] == [False, False, False, True]
    said = comparison_statement(found)
    assert "compares in 3:" in said
    assert "alone in 1." in said
    assert comparisons(patterns, questions, Format(2, "signed", 15)) == []
