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
from paper.records import RESULTS, DrawRecord, read_records
from paper.strips import strip

PAGE = "README.md"
STRIPS = "strips"

MARK = "<!-- claims -->\n> "
"""What stands before the sentence in the project's README."""

QUICK = (
    "> **A smoke test. Nothing is reproduced here.** Trainings were cut short, so no claim is "
    "judged."
)

INTRO = """\
*Understanding Addition in Transformers* (Quirke and Barez, ICLR 2024) describes one model. \
Other seeds of its recipe end with other circuits. So each claim here is about **draws**: in how \
many trainings of the recipe does it hold?

[claims.json](claims.json) has the claims, each with one estimand and one rule. It was committed \
before any of the fresh seeds was trained. The authors' own draw (their initial weights and \
batches) is shown beside them and does not count. On their machine it was rounded differently.

**Replicated**: it holds in surely more than half of the draws. **Contradicted**: in surely less. \
**Mixed**: neither. These are one-sided exact tests at 5 %, adjusted for the number of claims \
(Holm). **Vacuous**: untrained models show it too. **Not decidable here**: too few draws so far."""

STRIPS_NOTE = """\
In the strips a dot is a draw: green if its heads read three columns, blue if two, black if fewer; \
a diamond is the authors'. The grey line is the limit. A draw without a value does not satisfy the \
rule. All losses are teacher-forced."""

ERRATA = """\
- **Algorithm 1 lacks its top digit.** It writes n digits, so every sum with n + 1 comes out \
wrong. We add the carry out of the highest column.
- **Table 2 is in token order.** The notebook prints A5 first, as "digit 0". The paper's table \
counts from the units.
- **1.5 or 1.8 million questions.** 5,000 steps of 64 questions are 320,000; times 5 digits, 1.6 \
million.
- **Table 6 against the text.** Without the base-add head 4.712 and 3.7; without another 0.016 or \
0.062, and 0.08.
- **Mean or zero.** Appendix H sets rows to zero for Table 4. The notebook takes their mean there, \
and zero for Table 5.
- **Tables 4 and 5** show what any one-layer model shows: after the block a row reaches only its \
own logits. We do not compare their numbers."""

HOW = """\
`make reproduce` prints its plan with minutes, trains what is missing, and continues after a stop. \
`python -m paper --pages` judges the records in `results/draws` again and writes this page. The \
paper's open question about the MLP has [its own page](results/mlp-study.md)."""


def write_page(results: Path) -> Path:
    """Judge the records, draw the strips, and write the page; also the project's README."""
    records = read_records(results)
    judged = judge(records)
    for one in judged:
        if one.fresh or one.authors:
            strip(one).save(results / STRIPS / f"{one.claim.id}.svg")
    committed = results.resolve() == RESULTS.resolve()
    page = (results.parent if committed else results) / PAGE
    folder = f"{results.name}/{STRIPS}" if committed else STRIPS
    write_bytes(page, page_text(records, judged, strips=folder).encode())
    if committed:
        _quote(RESULTS.parents[1] / "README.md", sentence(judged))
    return page


def is_quick(records: Sequence[DrawRecord]) -> bool:
    """Whether any draw was trained for fewer steps than its recipe has."""
    return any(record.steps < preset(record.recipe).training.steps for record in records)


def page_text(records: Sequence[DrawRecord], judged: Sequence[Judged], *, strips: str) -> str:
    """The whole page; the strips are in a folder beside it."""
    quick = is_quick(records)
    parts = [
        "# The paper, judged over draws",
        *([QUICK] if quick else []),
        INTRO,
        sentence(judged),
        _summary(judged, quick=quick),
        "## The draws",
        _draws(records),
        "## The claims",
        STRIPS_NOTE,
        *(_claim(one, strips, quick=quick) for one in judged),
        "## Numbers the paper prints",
        _numbers(records),
        "## Errata",
        ERRATA,
        "## How this page is made",
        HOW,
    ]
    return "\n\n".join(parts) + "\n"


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


def _summary(judged: Sequence[Judged], *, quick: bool) -> str:
    """One row for each claim."""
    rows = [
        [
            link(one.claim.title, f"#{one.claim.id}"),
            _verdict(one, quick=quick),
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


def _verdict(one: Judged, *, quick: bool) -> str:
    return Markdown(f"**{'not judged' if quick else one.verdict}**")


def _held(one: Judged) -> str:
    """In how many draws it holds, with the interval of the share."""
    share, what = one.share, "pairs " if one.claim.against == "the next seed" else ""
    if not share.of:
        return f"none of {planned(one.claim)} {what}yet"
    return f"{share.count} of {share.of} {what}({between(share)})"


def _claim(one: Judged, strips: str, *, quick: bool) -> str:
    """A paragraph and a strip."""
    claim = one.claim
    values = [value.value for value in one.fresh if value.value is not None]
    said = f"Holds if {claim.rule} {claim.limit:g}."
    if values:
        said += f" {_of(one.fresh)}, from {_short(min(values))} to {_short(max(values))}."
    said += f" Authors' draw {_authors(one.authors)}." if one.authors else ""
    if one.claim.any_one_layer:
        said += f" Untrained models: {one.untrained.count} of {one.untrained.of}."
    heading = f'<a id="{claim.id}"></a>\n### {claim.title}'
    text = f"{_verdict(one, quick=quick)} · “{claim.sentence}” ({claim.where}). {claim.measures}"
    parts = [heading, f"{text} {said}"]
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
