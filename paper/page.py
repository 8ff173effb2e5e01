"""The page of the reproduction, `paper/README.md`: everything on it follows from the records.

In: the directory of the results. Out: the page, a strip of dots for each claim, and the sentence
that the project's README quotes. The page of a smoke test says so first and has no verdicts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from carryscope.core.storage import write_bytes
from carryscope.core.words import between, listed
from carryscope.report.markdown import Markdown, link, table
from carryscope.training.presets import preset
from paper.claims import Judged, Value, Verdict, authors_seed, frozen, judge, planned
from paper.printed import NUMBERS, Placed, placed, table_2
from paper.records import DrawRecord, read_draws
from paper.strips import strip
from paper.study import RESULTS, page

PAGE = "README.md"
STRIPS = "strips"

MARK = "<!-- claims -->\n> "
"""What stands before the sentence in the project's README."""

QUICK = (
    "**A smoke test. Nothing is reproduced here.** Trainings were cut short: no claim is judged."
)


def write_page(results: Path) -> Path:
    """Judge the records, draw the strips, and write the page; also the project's README."""
    records = read_draws(results)
    judged = judge(records)
    for one in judged:
        if one.fresh or one.authors:
            strip(one).save(results / STRIPS / f"{one.claim.id}.svg")
    committed = results.resolve() == RESULTS.resolve()
    file = (results.parent if committed else results) / PAGE
    folder = f"{results.name}/{STRIPS}" if committed else STRIPS
    write_bytes(file, page_text(records, judged, strips=folder).encode())
    if committed:
        _quote(RESULTS.parents[1] / "README.md", sentence(judged))
    return file


def is_quick(records: Sequence[DrawRecord]) -> bool:
    """Whether any draw was trained for fewer steps than its recipe has."""
    return any(record.steps < preset(record.recipe).training.steps for record in records)


def page_text(records: Sequence[DrawRecord], judged: Sequence[Judged], *, strips: str) -> str:
    """The whole page; the strips are in a folder beside it. A smoke test has its draws alone."""
    if is_quick(records):
        return f"{QUICK}\n\n{_draws(records)}\n"
    return page(
        PAGE,
        sentence=sentence(judged),
        summary=_summary(judged),
        draws=_draws(records),
        claims="\n\n".join(_claim(one, strips) for one in judged),
        numbers=_numbers(records),
    )


def sentence(judged: Sequence[Judged]) -> str:
    """The result in a sentence."""
    counts = Counter(one.verdict for one in judged)
    found = [f"{counts[v]} {'is' if counts[v] == 1 else 'are'} {v}" for v in Verdict if counts[v]]
    fresh = {(v.recipe, v.seed) for one in judged for v in one.fresh}
    total = sum(map(len, frozen().seeds.values()))
    return (
        f"Of {len(judged)} claims of the paper, {listed(found)}, on {len(fresh)} of {total} "
        "planned draws."
    )


def _summary(judged: Sequence[Judged]) -> str:
    """One row for each claim."""
    rows = [
        [
            link(one.claim.title, f"#{one.claim.id}"),
            _verdict(one),
            _held(one),
            _of([value for value in one.fresh if value.columns == 3]),
            _of([value for value in one.fresh if value.columns < 3]),
            ", ".join("yes" if value.holds else "no" for value in one.authors),
        ]
        for one in judged
    ]
    head = ["claim", "verdict", "holds in", "three columns", "fewer", "authors' draw"]
    return table(head, rows)


def _of(values: Sequence[Value]) -> str:
    """In how many of some draws it holds."""
    return f"{sum(value.holds for value in values)} of {len(values)}" if values else ""


def _verdict(one: Judged) -> str:
    final = one.complete or one.verdict in (Verdict.OPEN, Verdict.VACUOUS)
    return Markdown(f"**{one.verdict}{'' if final else ' so far'}**")


def _held(one: Judged) -> str:
    """In how many draws it holds, with the interval of the share."""
    share, what = one.share, "pairs " if one.claim.against == "the next seed" else ""
    if not share.of:
        return f"none of {planned(one.claim)} {what}yet"
    return f"{share.count} of {share.of} {what}({between(share)})"


def _claim(one: Judged, strips: str) -> str:
    """A paragraph and a strip."""
    claim = one.claim
    said = [f"Holds if {claim.rule} {claim.limit:g}"]
    said += [f"fresh draws {_of(one.fresh)}"] if one.fresh else []
    said += [f"authors' draw {_authors(one.authors)}"] if one.authors else []
    if claim.any_one_layer:
        said.append(f"untrained models {one.untrained.count} of {one.untrained.of}")
    decided = one.verdict is not Verdict.OPEN
    verdict = f"{_verdict(one)} " if decided else ""
    heading = f'<a id="{claim.id}"></a>\n### {claim.title}'
    text = f"{verdict}“{claim.sentence}” ({claim.where}). {claim.measures}"
    parts = [heading, f"{text} {'; '.join(said)}."]
    if one.fresh or one.authors:
        parts.append(f"![one dot per draw]({strips}/{claim.id}.svg)")
    return "\n\n".join(parts)


def _authors(values: Sequence[Value]) -> str:
    return ", ".join("none" if v.value is None else _short(v.value) for v in values)


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _draws(records: Sequence[DrawRecord]) -> str:
    """For each recipe how many draws there are, and which circuits they ended with."""
    rows = []
    for recipe, seeds in frozen().seeds.items():
        own = {record.seed: record for record in records if record.recipe == recipe}
        fresh = [own[seed] for seed in seeds if seed in own]
        circuits = Counter(", ".join(record.heads) for record in fresh).most_common()
        authors = own.get(authors_seed(recipe))
        losses = sorted(record.held_out_loss for record in fresh)
        rows.append(
            [
                f"`{recipe}`",
                f"{len(fresh)} of {len(seeds)}",
                "; ".join(f"{heads} ({count})" for heads, count in circuits),
                f"{losses[0]:.3f} to {losses[-1]:.3f}" if losses else "",
                f"{', '.join(authors.heads)}; {authors.held_out_loss:.3f}"
                if authors
                else "none yet",
            ]
        )
    head = ["recipe", "fresh draws", "what heads read (draws)", "held-out loss", "authors' draw"]
    return table(head, rows)


def _numbers(records: Sequence[DrawRecord]) -> str:
    """The printed numbers and their percentiles; table 2 in both readings."""
    rows = [_row(one) for one in placed(NUMBERS, records)]
    if not rows:
        return "There are no draws yet."
    head = ["where", "number", "paper", "median here", "percentile"]
    readings = [list(placed(table_2(token_order=order), records)) for order in (False, True)]
    both = [
        [a.printed.what, a.printed.text, _percentile(a), b.printed.text, _percentile(b)]
        for a, b in zip(*readings, strict=True)
    ]
    printed, ordered = (sum(one.usual for one in reading) for reading in readings)
    return "\n\n".join(
        [
            "The notebook prints the losses of its last batch. So a printed loss is placed among "
            "the last 100 batches of every draw, fresh ones and the authors'. Other numbers have "
            "one value per draw.",
            table(head, rows),
            "Table 2 in both readings:",
            table(["number", "as printed", "percentile", "token order", "percentile"], both),
            f"As printed, {printed} of 6 numbers lie between the 5th and the 95th percentile; in "
            f"token order, {ordered} of 6.",
        ]
    )


def _row(one: Placed) -> list[str]:
    printed = one.printed
    values = "1 value" if one.of == 1 else f"{one.of:,} values"
    place = f"{_percentile(one)} of {values}"
    return [printed.where, printed.what, printed.text, _short(one.median), place]


def _percentile(one: Placed) -> str:
    """Where a number lies; a range if many values round to it."""
    low, high = (f"{100 * share:.0f}" for share in one.percentile)
    return low if low == high else f"{low} to {high}"


def _quote(readme: Path, text: str) -> None:
    """Put the sentence into the project's README."""
    old = readme.read_text()
    new = re.sub(rf"(?<={re.escape(MARK)}).*", lambda _: text, old)
    if new != old:
        write_bytes(readme, new.encode())
