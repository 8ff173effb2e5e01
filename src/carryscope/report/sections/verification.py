"""What the model does, seen from outside: where it fails, and which algorithm it agrees with.

In: the findings of `risk` and `faithful`. Out: parts, and their sections.
"""

from __future__ import annotations

from carryscope.core.words import percent, with_interval
from carryscope.model.config import ModelConfig
from carryscope.report.figures import picture
from carryscope.report.paper import paper_text
from carryscope.report.parts import (
    Facts,
    Faint,
    Folded,
    More,
    Note,
    Part,
    Section,
    Table,
    Text,
    Wrong,
)
from carryscope.report.shelf import Shelf
from carryscope.report.words import LETTERS, TASK, carry, control_name, nines
from carryscope.verification.cases import CaseRisk, by_look_ahead
from carryscope.verification.faithfulness import FaithfulnessFinding
from carryscope.verification.risk import RiskFinding
from carryscope.verification.risk_verdict import UNSAFE
from carryscope.verification.stratified import WeightedShare


def failures_section(shelf: Shelf) -> Section | None:
    """Failures by look-ahead depth, by digit and by pattern; the verdict stands at the top."""
    if shelf.risk is None:
        return None
    _, *evidence = risk_parts(shelf.risk, shelf.config.model)
    return Section("failures", "Where it fails, and how often", "Failures", evidence)


def risk_parts(risk: RiskFinding, model: ModelConfig | None = None) -> list[Part]:
    """The verdict, where digits are wrong, the likeliest failures."""
    rest: list[Part] = []
    rest += [_naive(risk)] if not risk.exhaustive and risk.teacher_forced.estimate else []
    rest += [_around(risk)] if risk.search.unpredicted else []
    return [
        Text(risk.verdict, lead=True),
        picture("depth", risk, paper_text("us9", model), instead=_cases(risk)),
        More([_digits(risk)]),
        *([_likeliest(risk)] if risk.failures else []),
        More(rest),
    ]


def _cases(risk: RiskFinding) -> Table:
    """The paper's central finding: wrong digits by how many nines lie below them."""
    digits = list(dict.fromkeys(case.digit for case in risk.cases))
    rows = []
    for (depth, carrying), cases in by_look_ahead(risk.cases).items():
        wrong = {case.digit: _wrong(case) for case in cases}
        name = f"{nines(depth)}, {carry(carrying)}"
        rows.append([name, *(wrong.get(digit, "") for digit in digits)])
    return Table(
        "case-table",
        "How often a digit is wrong, by the nines directly below it",
        ["below", *digits],
        rows,
        "Teacher-forced. A carry: one comes through the nines. '<': none failed.",
        frozenset(range(1, len(digits) + 1)),
    )


def _wrong(case: CaseRisk) -> str:
    rate = case.wrong
    if rate.estimate == 0 and rate.high:
        return Faint(f"<{percent(rate.high)}")
    told = percent(rate.estimate)
    return Wrong(told) if rate.low >= UNSAFE else told


def _digits(risk: RiskFinding) -> Table:
    rows = [
        [digit.digit, with_interval(digit.teacher_forced), with_interval(digit.free_running)]
        for digit in risk.digits
    ]
    rows.append(["whole answer", with_interval(risk.teacher_forced), ""])
    return Table(
        "digit-risk",
        "How often each digit is wrong",
        ["answer token", "teacher-forced", "free-running"],
        rows,
        "Over all questions, with 95 % intervals. Free-running, a digit may be wrong because one "
        "before it was. A whole answer is wrong in both ways or in neither.",
        frozenset({1, 2}),
    )


def _likeliest(risk: RiskFinding) -> Table:
    wrong = risk.teacher_forced.estimate
    return Table.of(
        "failures",
        "The likeliest failures",
        risk.failures,
        {
            f"{TASK.question}s like": lambda stratum: str(stratum.simplest),
            "pattern": lambda stratum: Faint(stratum.name),
            "share of all failures": lambda stratum: percent(stratum.contribution / wrong),
            "of the pattern fail": lambda stratum: percent(stratum.failed.estimate),
        },
        f"The {TASK.question} is the simplest of its pattern that fails. {LETTERS}.",
        text=["pattern"],
    )


def _naive(risk: RiskFinding) -> Note:
    naive = risk.naive
    low, high = percent(naive.low), percent(naive.high)
    return Note(
        f"{naive.questions:,} uniform questions would give {low} to {high}. An interval as narrow "
        f"as this one would take {naive.for_our_width:,} of them. Sampled pattern by pattern, it "
        f"took {risk.evaluated:,}.",
        "The usual test",
    )


def _around(risk: RiskFinding) -> Folded:
    pair = risk.search.common_pair
    common = f" The commonest digit pair among them: {pair}." if pair else ""
    table = Table.of(
        "unpredicted",
        "Failures out of line",
        risk.search.unpredicted,
        {
            "question": lambda failure: failure.question,
            "pattern": lambda failure: Faint(failure.stratum),
            "of the pattern fail": lambda failure: percent(failure.stratum_rate),
        },
        f"{risk.search.tried:,} questions one digit away from a failing one were tried. "
        f"{risk.search.failed:,} fail too.{common}",
        text=["pattern"],
    )
    return Folded("Failures where its kind of question is otherwise safe", [table])


def algorithms_section(shelf: Shelf) -> Section | None:
    """Does the model run a stated algorithm?"""
    if shelf.faithfulness is None:
        return None
    parts = faithfulness_parts(shelf.faithfulness)
    return Section("algorithms", "Does it run the paper's algorithm?", "Algorithm 1", parts)


def faithfulness_parts(finding: FaithfulnessFinding) -> list[Part]:
    """The verdict, the agreement with each algorithm, then the tests inside the model."""
    opening, _, rest = finding.verdict.partition(". ")
    about = {algorithm.name: algorithm.about for algorithm in finding.agreement.algorithms}
    return [
        Text(f"{opening}." if rest else opening, lead=True),
        More([*([Text(rest)] if rest else []), picture("agreement", finding, "not measured")]),
        _agreement(finding),
        Folded("What each algorithm does", [Facts(about)]),
        More([_inside(finding), *_parting(finding)]),
    ]


def _agreement(finding: FaithfulnessFinding) -> Table:
    return Table.of(
        "agreement-table",
        "Agreement with stated algorithms",
        finding.agreement.algorithms,
        {
            "algorithm": lambda one: control_name(one.name, one.control),
            "same whole answer": lambda one: with_interval(one.answer.agreement),
            "of the model's errors it makes too": lambda one: _share(one.answer.also_wrong),
            "with the same answer": lambda one: _share(one.answer.same_wrong),
            "model wrong where it is right": lambda one: _share(one.answer.left_wrong),
        },
        f"{finding.agreement.questions:,} questions from all {finding.agreement.strata:,} strata, "
        "weighted by their exact probabilities; teacher-forced, 95 % intervals.",
    )


def _share(share: WeightedShare | None) -> str:
    return with_interval(share) if share is not None else "no such case"


def _inside(finding: FaithfulnessFinding) -> Table:
    return Table.of(
        "inside",
        "Inside: answers that stay when all that should not matter is exchanged",
        finding.inside,
        {
            "algorithm": lambda one: control_name(one.name, one.control),
            "tokens": lambda one: with_interval(one.tokens.overall),
            "all heads together": lambda one: with_interval(one.joint.overall),
            "head by head": lambda one: (
                with_interval(one.heads.overall) if one.heads is not None else ""
            ),
        },
        "Tokens: columns that the algorithm does not look at. Heads: what they add, taken from "
        "other questions with the same key, together or each from its own.",
    )


def _parting(finding: FaithfulnessFinding) -> list[Folded]:
    """Where the model and the algorithms nearest to it differ."""
    named = [finding.agreement.best_on_errors, finding.agreement.best]
    found: list[Folded] = []
    for name in dict.fromkeys(name for name in named if name is not None):
        title = f"Where {name} and the model differ most"
        table = Table.of(
            f"parting-{len(found)}",
            title,
            finding.agreement.of(name).worst,
            {
                "for example": lambda worst: worst.example,
                "pattern": lambda worst: Faint(worst.stratum),
                "agree": lambda worst: with_interval(worst.agreement),
                "truth": lambda worst: worst.truth,
                "model": lambda worst: worst.model,
                "algorithm": lambda worst: worst.algorithm,
            },
            text=["pattern", "truth", "model", "algorithm"],
        )
        found += [Folded(title, [table])] if table.rows else []
    return found
