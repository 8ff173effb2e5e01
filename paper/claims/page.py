"""The page of claims: a summary, a table of all claims, then each with its evidence.

In: judged claims. Out: `claims.json`, read back by type, and `claims.md`, whose every number
comes from that record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from carryscope.report.markdown import Markdown, as_text, link, table
from carryscope.report.paper import paper_values
from carryscope.version import __version__
from paper.claims.claims import Check, Judged, Number, RunBehind, Verdict

CLAIMS_RESULT, CLAIMS_PAGE = "claims.json", "claims.md"

NUMBERS_IN_TABLE = 3
"""Numbers of a claim that the table of all claims shows; the rest is with the claim."""

RULES = (
    "A claim is broken into checks. It holds if all of them pass, in part if some do, and not if "
    "none does or its core fails. A claim whose premise fails does not apply. One that an "
    "untrained model passes as well holds for any one-layer model. Intervals are 95 %. Losses, "
    "wrong digits, ablations and swaps are teacher-forced; whole answers are right or wrong alike "
    "teacher-forced and free-running. Each tolerance has its reason. Some rules were changed after "
    "a result had been seen: [changed-rules.md](../changed-rules.md) lists them. A question "
    "that the paper leaves open is judged too but not counted: the last one."
)
"""How claims are judged."""


class ClaimsResult(msgspec.Struct, frozen=True, kw_only=True):
    """All claims, judged."""

    package_version: str
    machine: str = ""
    """Where the runs were made."""
    quick: bool = False
    """Whether the trainings were cut short."""
    summary: dict[str, int]
    """How many claims got each verdict, without questions that the paper leaves open."""
    claims: list[Judged]

    @property
    def sentence(self) -> str:
        """The summary in a sentence."""
        counts = [f"{count} {_verb(verdict, count)}" for verdict, count in self.summary.items()]
        return f"Of {sum(self.summary.values())} claims of the paper, {', '.join(counts)}."


def _verb(verdict: str, count: int) -> str:
    """A verdict as a verb that fits the number of claims."""
    if verdict == Verdict.UNMEASURED:
        return "was not measured" if count == 1 else "were not measured"
    return verdict if count == 1 else verdict.replace("does", "do").replace("holds", "hold")


def claims_result(
    judged: Sequence[Judged], *, machine: str = "", quick: bool = False
) -> ClaimsResult:
    """The record that is kept."""
    counts = Counter(one.verdict for one in judged if not one.claim.leaves_open)
    return ClaimsResult(
        package_version=__version__,
        machine=machine,
        quick=quick,
        summary={verdict.value: counts[verdict] for verdict in Verdict if counts[verdict]},
        claims=list(judged),
    )


def claims_markdown(result: ClaimsResult) -> str:
    """The page."""
    parts = [
        "# The paper's claims, measured again",
        f"**{result.sentence}**",
        *_not_the_recipe(result.claims),
        f"Written by carryscope {result.package_version} from `{CLAIMS_RESULT}`, which has all "
        f"numbers in full. {RULES}",
        "## All claims",
        _overview(result.claims),
        "## The runs",
        _runs(result.claims),
        "## Claim by claim",
        *(_details(one) for one in result.claims),
    ]
    return "\n\n".join(parts) + "\n"


def _not_the_recipe(claims: Sequence[Judged]) -> list[str]:
    """A warning if some run was not trained by the recipe of its name, such as a quick one."""
    runs = [run for one in claims for run in one.runs]
    other = {run.name for run in runs if run.changes or run.preset != run.name}
    if not other:
        return []
    named = ", ".join(sorted(other))
    return [f"**This reproduces nothing**: not trained by the paper's recipe: {as_text(named)}."]


def _overview(claims: Sequence[Judged]) -> str:
    head = ["claim", "where", "paper", "measured", "verdict"]
    rows = [
        [_link(one), one.claim.where, _paper(one), _measured(one), one.verdict.value]
        for one in claims
    ]
    return table(head, rows)


def _link(one: Judged) -> Markdown:
    return link(one.claim.title, f"#{one.claim.id}")


def _paper(one: Judged) -> str:
    """The paper's values; for a claim without values, its statement."""
    printed = {f"{n.what} {n.paper_text}": n.paper_text for n in _shown(one) if n.paper}
    if len(set(printed.values())) == 1:
        return next(iter(printed.values()))
    values = list(printed) or [
        f"{value.what}: {value.text}" for name in one.claim.paper if (value := paper_values()[name])
    ]
    return "; ".join(values[:NUMBERS_IN_TABLE]) or one.claim.statement


def _measured(one: Judged) -> str:
    return "; ".join(f"{_of_run(one, number)} {number.text}" for number in _shown(one))


def _of_run(one: Judged, number: Number) -> str:
    """What a number is, and of which run if the claim has several."""
    clear = number.run is None or len(one.claim.runs) < 2 or number.run in number.what
    return number.what if clear else f"{number.what} of {number.run}"


def _shown(one: Judged) -> list[Number]:
    """A few numbers: those the paper has too, else those of the first check that fails."""
    printed = [number for number in one.numbers if number.paper]
    failing = [check.numbers for check in one.checks if not check.holds]
    chosen = printed or next(iter(failing), one.numbers)
    return list(dict.fromkeys(chosen))[:NUMBERS_IN_TABLE]


def _runs(claims: Sequence[Judged]) -> str:
    runs: dict[str, RunBehind] = {run.name: run for one in claims for run in one.runs}
    if not runs:
        return "There are none yet."
    rows = [
        [
            run.name,
            run.preset or "none",
            "; ".join(run.changes) or "none",
            "" if run.seed is None else f"{run.seed}",
            "" if run.steps is None else f"{run.steps:,}",
            run.weights_sha256[:12],
        ]
        for run in runs.values()
    ]
    return table(["run", "recipe", "changes to it", "seed", "steps", "weights (sha-256)"], rows)


def _details(one: Judged) -> str:
    claim = one.claim
    values = [paper_values()[name] for name in claim.paper]
    figures = "; ".join(f"{value.what}: {value.text}" for value in values)
    lines = [
        f"- **The paper** ({as_text(claim.where)}, `{claim.label}`): {as_text(claim.statement)}",
        f"- **Its figures**: {as_text(figures)}" if figures else "",
        f"- **Measured here**: {as_text(claim.how)}",
        f"- **Runs**: {', '.join(_run(one, name) for name in claim.runs)}" if claim.runs else "",
        f"- **Tolerance**: {as_text(claim.tolerance)} {as_text(claim.because)}",
        f"- **Verdict: {one.verdict.value}.** {as_text(one.reason)}",
        f"- **To measure it**: `{one.command}`" if one.command else "",
    ]
    parts = [f'### <a id="{claim.id}"></a>{as_text(claim.title)}']
    parts.append("\n".join(line for line in lines if line))
    if one.checks:
        parts.append(table(["check", "holds", "measured", "behind it"], map(_row, one.checks)))
    return "\n\n".join(parts)


def _run(one: Judged, name: str) -> str:
    """A run by name, and that it is missing or not the recipe of its name."""
    found = next((run for run in one.runs if run.name == name), None)
    if found is None:
        return f"{as_text(name)} (missing)"
    other = [f"recipe {found.preset}"] if found.preset != name else []
    return as_text(" ".join([name, *(f"({what})" for what in [*other, *found.changes])]))


def _row(check: Check) -> list[str]:
    holds = "yes" if check.holds else "no"
    if check.control is not None:
        holds += f" (untrained: {'yes' if check.control else 'no'})"
    measured = "; ".join(f"{number.what} {number.text}" for number in check.numbers)
    behind = [f"{n.of:,} {n.of_what}" for n in check.numbers if n.of is not None]
    role = "" if check.role == "part" else f" ({check.role})"
    return [check.what + role, holds, measured, "; ".join(dict.fromkeys(behind))]
