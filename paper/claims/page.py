"""The page of claims: a summary, a table of all claims, then each with its evidence.

In: judged claims. Out: `claims.json`, read back by type, and `claims.md`, whose every number
comes from that record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from carryscope.core.storage import read_json, write_bytes, write_json
from carryscope.report.markdown import Markdown, as_text, link, table
from carryscope.report.paper import paper_values
from carryscope.version import __version__
from paper.claims.claims import Check, Judged, Number, RunBehind, Verdict

CLAIMS_RESULT, CLAIMS_PAGE = "claims.json", "claims.md"

EARLIER = "earlier"
"""Where the results of an earlier reproduction stand among those of this one, if they are kept."""

NUMBERS_IN_TABLE = 3
"""Numbers of a claim that the table of all claims shows; the rest stands with the claim."""


class ClaimsResult(msgspec.Struct, frozen=True, kw_only=True):
    """All claims, judged."""

    package_version: str
    summary: dict[str, int]
    """How many claims got each verdict; questions that the paper leaves open do not count."""
    claims: list[Judged]

    @property
    def sentence(self) -> str:
        """The summary in a sentence."""
        told = [f"{count} {_verb(verdict, count)}" for verdict, count in self.summary.items()]
        return f"Of {sum(self.summary.values())} claims of the paper, {', '.join(told)}."


def _verb(verdict: str, count: int) -> str:
    """A verdict as a verb that fits the number of claims."""
    if verdict == Verdict.UNMEASURED:
        return "was not measured" if count == 1 else "were not measured"
    if count == 1:
        return verdict
    return verdict.replace("does not hold", "do not hold").replace("holds", "hold")


def claims_result(judged: Sequence[Judged]) -> ClaimsResult:
    """The record that is kept."""
    counts = Counter(one.verdict for one in judged if not one.claim.leaves_open)
    return ClaimsResult(
        package_version=__version__,
        summary={verdict.value: counts[verdict] for verdict in Verdict if counts[verdict]},
        claims=list(judged),
    )


def write_claims(judged: Sequence[Judged], directory: Path) -> list[Path]:
    """Write the record and the page; the paths of both."""
    record, page = directory / CLAIMS_RESULT, directory / CLAIMS_PAGE
    result = claims_result(judged)
    write_json(record, result)
    write_bytes(page, claims_markdown(result).encode())
    return [record, page]


def read_claims(directory: Path) -> ClaimsResult:
    """The record that was kept."""
    return read_json(directory / CLAIMS_RESULT, ClaimsResult)


def claims_markdown(result: ClaimsResult) -> str:
    """The page."""
    parts = [
        "# The paper's claims, measured again",
        f"**{result.sentence}**",
        *_not_the_recipe(result.claims),
        *_earlier(result.claims),
        f"Written by carryscope {result.package_version} from `{CLAIMS_RESULT}`, which has all "
        "numbers in full. A claim is broken into checks: it holds if all of them do, in part if "
        "some do, not if none does, or if its core fails; one whose premise fails cannot be asked; "
        "and what an untrained model fulfils as well holds for any one-layer model. Intervals are "
        "95 %. Losses, wrong digits, ablations and swaps are teacher-forced; a whole answer is "
        "right or wrong alike in either way, free-running or not. Tolerances were written down "
        "with their reasons, which never are that they fit. "
        f"{_changed(result.claims)}",
        "## All claims",
        _overview(result.claims),
        "## The runs",
        _runs(result.claims),
        "## Claim by claim",
        *(_details(one) for one in result.claims),
    ]
    return "\n\n".join(parts) + "\n"


def _not_the_recipe(claims: Sequence[Judged]) -> list[str]:
    """A warning, if some run is not what its name promises: a quick one has fewer steps."""
    runs = [run for one in claims for run in one.runs]
    other = {run.name for run in runs if run.changes or run.preset != run.name}
    if not other:
        return []
    named = ", ".join(sorted(other))
    return [f"**This reproduces nothing**: not trained by the paper's recipe: {as_text(named)}."]


def _earlier(claims: Sequence[Judged]) -> list[str]:
    """How a reproduction that was made before came out, by the rules of this page."""
    measured = [one for one in claims if one.verdict is not Verdict.UNMEASURED]
    both = [one for one in measured if one.earlier not in (None, Verdict.UNMEASURED)]
    other = [one for one in both if one.earlier != one.verdict]
    if not both:
        return []
    told = "; ".join(f"{_link(one)} ({one.verdict}, earlier: {one.earlier})" for one in other)
    where = link("made before", f"{EARLIER}/README.md")
    return [
        f"**Once more**: of a reproduction {where}, by the same recipes and seeds, {len(both)} of "
        f"these claims can be judged by the same rules, and {len(other)} come out "
        f"differently{f': {told}' if other else ''}. Where sums are rounded otherwise a training "
        "is another draw of the same recipe: what differs is not settled by either."
    ]


def _changed(claims: Sequence[Judged]) -> str:
    """Which rules are not those that were written down first."""
    links = [_link(one) for one in claims if one.claim.changed]
    return (
        f"Rules that were changed after a result had been seen: {'; '.join(links)}. Claims about "
        "how the model adds were first to be asked of `paper-5`; when three seeds of it had ended "
        "without a head two columns below, they were moved to "
        f"`paper-5-long`, the same training gone on with. {_otherwise(claims)}Earlier, when a "
        "first `paper-5` and `paper-10` had been judged, a second reader had measures changed that "
        "could not fail or compared something else (rows at their mean, base addition by the rise, "
        "noise of US9, pairs of curves), and added two claims. A question that the paper leaves "
        "open is judged with them and not counted: the last one."
    )


def _otherwise(claims: Sequence[Judged]) -> str:
    """Which claims come out differently on the model they were first to be asked of."""
    measured = [one for one in claims if one.verdict is not Verdict.UNMEASURED]
    moved = [one for one in measured if one.at_first is not None]
    other = [one for one in moved if one.at_first != one.verdict]
    if not moved:
        return ""
    told = "; ".join(f"{_link(one)} ({one.at_first})" for one in other)
    return (
        f"Asked of `paper-5` as at first, {len(other)} of these {len(moved)} come out "
        f"differently{f': {told}' if other else ''}. "
    )


def _overview(claims: Sequence[Judged]) -> str:
    head = ["claim", "where", "paper", "measured", "verdict"]
    rows = [
        [_link(one), one.claim.where, _paper(one), _measured(one), one.verdict.value]
        for one in claims
    ]
    if any(one.earlier for one in claims):
        head.append("earlier")
        rows = [[*row, one.earlier or ""] for row, one in zip(rows, claims, strict=True)]
    return table(head, rows)


def _link(one: Judged) -> Markdown:
    return link(one.claim.title, f"#{one.claim.id}")


def _paper(one: Judged) -> str:
    """The paper's values; of a claim that has none, what it says."""
    beside = {f"{n.what} {n.paper_text}": n.paper_text for n in _shown(one) if n.paper}
    if len(set(beside.values())) == 1:
        return next(iter(beside.values()))
    values = list(beside) or [
        f"{value.what}: {value.text}" for name in one.claim.paper if (value := paper_values()[name])
    ]
    return "; ".join(values[:NUMBERS_IN_TABLE]) or one.claim.statement


def _measured(one: Judged) -> str:
    return "; ".join(f"{_of_run(one, number)} {number.text}" for number in _shown(one))


def _of_run(one: Judged, number: Number) -> str:
    """What a number is, and of which run if the claim has several."""
    told = number.run is None or len(one.claim.runs) < 2 or number.run in number.what
    return number.what if told else f"{number.what} of {number.run}"


def _shown(one: Judged) -> list[Number]:
    """A few numbers that say most: those the paper has too, else those of a check that fails."""
    beside = [number for number in one.numbers if number.paper]
    failing = [check.numbers for check in one.checks if not check.holds]
    chosen = beside or next(iter(failing), one.numbers)
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
        f"- **Changed after a result was seen**: {as_text(claim.changed)}" if claim.changed else "",
        f"- **Verdict: {one.verdict.value}.** {as_text(one.reason)}",
        f"- **Asked of `paper-5`, as at first**: {one.at_first}." if one.at_first else "",
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
