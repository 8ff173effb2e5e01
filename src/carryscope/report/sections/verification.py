"""What the model does, seen from outside: where it fails, which algorithm it agrees with, and what
a repair changed.

In: the findings of `risk`, `faithful` and `repair`. Out: parts, and their sections.
"""

from __future__ import annotations

from carryscope.core.words import percent, with_interval
from carryscope.report.parts import Facts, Folded, Part, Section, Text, evidence
from carryscope.report.sections.how import where_it_fails
from carryscope.report.tables import Cell, Faint, Table
from carryscope.report.words import above, control_name, letters, look_ahead, run_lengths
from carryscope.task.operation import ADD, OPERATIONS
from carryscope.task.strata import as_written, is_pattern
from carryscope.verification.before_after import RepairFinding, Round
from carryscope.verification.cases import CaseRisk, by_look_ahead
from carryscope.verification.estimate import WeightedShare
from carryscope.verification.faithfulness import FaithfulnessFinding
from carryscope.verification.risk import RiskFinding


def risk_section(risk: RiskFinding, *, told: bool = False) -> Section:
    """The verdict, unless it was told, where digits are wrong, the likeliest failures."""
    parts: list[Part] = [_cases(risk)]
    parts += [_likeliest(risk)] if risk.failures else []
    claim = where_it_fails(risk).partition(". ")[0]
    return evidence("failures", "Failures", "" if told else risk.verdict, parts, claim)


def _cases(risk: RiskFinding) -> Table:
    """The paper's central finding: wrong digits by how many nines lie below them."""
    words = risk.words
    return Table.crossed(
        "depth",
        f"How often a digit is wrong, by the {words.passing_plural} directly below it",
        [case for cases in by_look_ahead(risk.cases).values() for case in cases],
        "below",
        row=lambda case: look_ahead(case, words),
        column=lambda case: case.digit,
        order=[case.digit for case in risk.cases],
        cell=lambda case: case_cell(case, above(case, words)),
        caption=f"Of questions of the kind, teacher-forced. A {words.carry}: one comes through the "
        f"{words.passing_plural}. {_sign(risk)}'<': none failed. A number opens a "
        f"{words.question} of its kind in the explorer.",
    )


def _sign(risk: RiskFinding) -> str:
    """How to read the sign of a difference, which is the first answer token."""
    if not risk.asked.signed:
        return ""
    return f"{risk.digits[0].digit} is the sign of a difference; with a {risk.words.carry}: minus. "


def case_cell(case: CaseRisk, whose: str) -> Cell:
    """How often digits are wrong at a look-ahead; none that failed is not 0 %."""
    rate, unseen = case.wrong, case.wrong.estimate == 0
    return Cell(
        f"<{percent(rate.high)}" if unseen and rate.high else percent(rate.estimate),
        link=f"#explorer?case={case.digit}.{case.depth}{'+' if case.carrying else '-'}",
        tone="faint" if unseen else "wrong",
        shade=rate.estimate,
        tip=f"{whose}: {with_interval(rate)} wrong, {case.asked:,} asked; "
        f"{percent(case.probability)} of all questions",
    )


def _likeliest(risk: RiskFinding) -> Table:
    wrong, words = risk.teacher_forced.estimate, risk.words
    by_column = all(is_pattern(as_written(stratum.name)) for stratum in risk.failures)
    return Table.of(
        "failures",
        "The likeliest failures",
        risk.failures,
        {
            f"{words.question}s like": lambda stratum: str(stratum.simplest),
            "pattern": lambda stratum: Faint(stratum.name),
            "share of all failures": lambda stratum: percent(stratum.contribution / wrong),
            "of the pattern fail": lambda stratum: percent(stratum.failed.estimate),
        },
        f"The {words.question} is the simplest of its pattern that fails. "
        f"{letters(words) if by_column else run_lengths(words)}.",
        text=["pattern"],
    )


def faithfulness_section(finding: FaithfulnessFinding) -> Section:
    """The verdict, the agreement with each algorithm, then the tests inside the model."""
    about = {algorithm.name: algorithm.about for algorithm in finding.agreement.algorithms}
    parts: list[Part] = [
        _agreement(finding),
        Folded("What each algorithm does", [Facts(about)]),
        Folded("Tests inside the model", [_inside(finding)]),
    ]
    return evidence("algorithms", "Algorithms", finding.verdict, parts)


def _agreement(finding: FaithfulnessFinding) -> Table:
    """Every stated algorithm against the model: its answers, and its errors."""
    return Table.of(
        "agreement",
        "Agreement with stated algorithms",
        finding.agreement.algorithms,
        {
            "algorithm": lambda one: control_name(one.name, one.control),
            "same whole answer": lambda one: with_interval(one.answer.agreement),
            "of the model's errors it makes too": lambda one: _share(one.answer.also_wrong),
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
            "all heads together": lambda one: with_interval(one.joint),
            "head by head": lambda one: with_interval(one.heads) if one.heads is not None else "",
        },
        "What the heads add, taken from other questions with the same key, together or each from "
        "its own.",
    )


def repair_parts(found: RepairFinding) -> list[Part]:
    """The statement, the rounds, and failures by look-ahead before and after."""
    return [Text(found.statement, lead=True), _rounds(found), _depths(found)]


def _rounds(found: RepairFinding) -> Table:
    return Table.of(
        "repair-rounds",
        "Round by round",
        list(enumerate(found.rounds)),
        {
            "round": lambda one: str(one[0]) if one[0] else "before",
            "heads": lambda one: str(one[1].heads),
            "steps": lambda one: f"{one[1].steps:,}" if one[1].steps else "",
            "columns no head reads": lambda one: _blind(one[1]),
            "wrong answers": lambda one: with_interval(one[1].wrong),
        },
        "For each answer digit, the columns that can decide it and that no head reads at its row.",
        text=["columns no head reads"],
    )


def _blind(one: Round) -> str:
    return ", ".join(f"{b.digit}: {' '.join(map(str, b.columns))}" for b in one.blind) or "none"


def _depths(found: RepairFinding) -> Table:
    before, after = found.rounds[0].depths, found.rounds[-1].depths
    words = OPERATIONS.get(found.operation, ADD).words
    return Table.of(
        "repair-depths",
        "Wrong answer digits, before and after",
        list(zip(before, after, strict=True)),
        {
            "below": lambda pair: look_ahead(pair[0], words),
            "before": lambda pair: with_interval(pair[0].wrong),
            "after": lambda pair: with_interval(pair[1].wrong),
        },
    )
