"""What the model does, seen from outside: where it fails, and which algorithm it agrees with.

In: the shelf of a run. Out: sections from the findings of `risk` and `faithful`.
"""

from __future__ import annotations

from carryscope.core.words import percent, with_interval
from carryscope.report.catalogue import figure
from carryscope.report.page.parts import Facts, Folded, Note, Part, Picture, Section, Table, Text
from carryscope.report.page.words import paper_text
from carryscope.report.shelf import Shelf
from carryscope.verification.agreement import AlgorithmAgreement
from carryscope.verification.faithfulness import FaithfulnessFinding
from carryscope.verification.risk_finding import RiskFinding
from carryscope.verification.stratified import WeightedShare


def failures_section(shelf: Shelf) -> Section | None:
    """Failures by look-ahead depth, by digit and by pattern."""
    risk = shelf.risk
    if risk is None:
        return None
    depth = Picture("depth", {"": figure("depth", shelf)}, paper_text("us9", shelf.config.model))
    parts: list[Part] = [depth, _digits(risk)]
    parts += [_likeliest(risk)] if risk.failures else []
    parts += [_naive(risk)] if not risk.exhaustive and risk.teacher_forced.estimate else []
    parts += [_around(risk)] if risk.search.unpredicted else []
    return Section("failures", "Where it fails, and how often", "Failures", parts)


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
        "before it was; a whole answer is wrong in both ways or in neither.",
        frozenset({1, 2}),
    )


def _likeliest(risk: RiskFinding) -> Table:
    rows = [
        [f.stratum, percent(f.share_of_failures), percent(f.rate), f.question]
        for f in risk.failures
    ]
    return Table(
        "failures",
        "The likeliest failures",
        ["pattern", "share of all failures", "of the pattern fail", "simplest question"],
        rows,
        "One letter for each column, highest first: K kills a carry, P passes it on (the column "
        "sums to 9), G makes one.",
        frozenset({1, 2}),
    )


def _naive(risk: RiskFinding) -> Note:
    naive = risk.naive
    return Note(
        f"{naive.questions:,} uniform questions would say {naive.low:.3%} to {naive.high:.3%}. For "
        f"an interval as narrow as this one it would take {naive.for_our_width:,}; "
        f"{risk.evaluated:,} were asked, pattern by pattern.",
        "The usual test",
    )


def _around(risk: RiskFinding) -> Folded:
    rows = [[u.question, u.stratum, percent(u.stratum_rate)] for u in risk.search.unpredicted]
    tried = f"{risk.search.tried:,} questions one digit away from a failing one were tried, "
    told = f"{tried}and {risk.search.failed:,} fail too."
    pair = risk.search.common_pair
    hint = f" Commonest digit pair among such failures: {pair}." if pair else ""
    head = ["question", "pattern", "of the pattern fail"]
    table = Table("unpredicted", "Failures out of line", head, rows, told + hint, frozenset({2}))
    return Folded("Failures where its kind of question is otherwise safe", [table])


def algorithms_section(shelf: Shelf) -> Section | None:
    """Does a stated algorithm tell what the model does?"""
    finding = shelf.faithfulness
    if finding is None:
        return None
    opening, _, rest = finding.verdict.partition(". ")
    about = {algorithm.name: algorithm.about for algorithm in finding.agreement.algorithms}
    parts: list[Part] = [
        Text(f"{opening}." if rest else opening, lead=True),
        Text(rest),
        Picture("agreement", {"": figure("agreement", shelf)}, "agreement not measured"),
        _agreement(finding),
        Folded("What each algorithm does", [Facts(about)]),
        _inside(finding),
        *_parting(finding),
    ]
    title = "Does it run the paper's algorithm?"
    return Section("algorithms", title, "Algorithm 1", parts)


def _agreement(finding: FaithfulnessFinding) -> Table:
    rows = [
        [
            f"{algorithm.name} (control)" if algorithm.control else algorithm.name,
            with_interval(algorithm.answer.agreement),
            _share(algorithm.answer.also_wrong),
            _share(algorithm.answer.same_wrong),
            _share(algorithm.answer.left_wrong),
        ]
        for algorithm in finding.agreement.algorithms
    ]
    return Table(
        "agreement-table",
        "Agreement with stated algorithms",
        [
            "algorithm",
            "same whole answer",
            "of the model's errors it makes too",
            "with the same answer",
            "model wrong where it is right",
        ],
        rows,
        f"{finding.agreement.questions:,} questions from all {finding.agreement.strata:,} strata, "
        "weighed by their exact probabilities; teacher-forced, 95 % intervals.",
        frozenset({1, 2, 3, 4}),
    )


def _share(share: WeightedShare | None) -> str:
    return with_interval(share) if share is not None else "no such case"


def _inside(finding: FaithfulnessFinding) -> Table:
    rows = [
        [
            f"{one.name} (control)" if one.control else one.name,
            with_interval(one.tokens.overall),
            with_interval(one.joint.overall),
            with_interval(one.heads.overall) if one.heads is not None else "",
        ]
        for one in finding.inside
    ]
    return Table(
        "inside",
        "Inside: answers that stay when all that should not matter is exchanged",
        ["algorithm", "tokens", "all heads together", "head by head"],
        rows,
        "Tokens: columns the algorithm does not look at. Heads: what they add, taken from other "
        "questions with the same key, together or each from its own.",
        frozenset({1, 2, 3}),
    )


def _parting(finding: FaithfulnessFinding) -> list[Part]:
    """Where the model and the algorithm nearest to it part."""
    named = [finding.agreement.best_on_errors, finding.agreement.best]
    chosen: dict[str, AlgorithmAgreement] = {
        name: finding.agreement.of(name) for name in named if name is not None
    }
    tables: list[Part] = []
    for name, algorithm in chosen.items():
        rows = [
            [w.stratum, with_interval(w.agreement), w.example, w.truth, w.model, w.algorithm]
            for w in algorithm.worst
        ]
        head = ["pattern", "agree", "example", "truth", "model", "algorithm"]
        title = f"Where {name} and the model part most"
        if rows:
            table = Table(f"parting-{len(tables)}", title, head, rows, "", frozenset({1}))
            tables.append(Folded(title, [table]))
    return tables
