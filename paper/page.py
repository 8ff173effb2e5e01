"""The page of the reproduction, `paper/README.md`: everything on it follows from the records.

In: the records of draws. Out: the page, a strip of dots for each claim, and the sentence that the
project's README quotes. The page of a smoke test says so first and has no verdicts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from carryscope.core.storage import write_bytes
from carryscope.core.words import listed
from carryscope.training.presets import preset
from paper.claims import DrawRecord, Judged, Verdict, authors_seed, frozen, judge, planned
from paper.printed import NUMBERS, placed, table_2
from paper.strips import strip
from paper.study import page

PAGE = "README.md"

MARK = "<!-- claims -->\n> "
"""What stands before the sentence in the project's README."""


def pages(records: Sequence[DrawRecord]) -> dict[str, str]:
    """Judge the records; the page and its strips."""
    judged = judge(records)
    text = page(
        PAGE,
        quick=any(draw.steps < preset(draw.recipe).training.steps for draw in records),
        sentence=sentence(judged),
        judged=judged,
        planned=planned,
        open=Verdict.OPEN,
        recipes=list(recipes(records)),
        numbers=list(placed(NUMBERS, records)),
        readings=[list(placed(table_2(token_order=order), records)) for order in (False, True)],
    )
    drawn = [one for one in judged if one.fresh or one.authors]
    return {PAGE: text, **{f"strips/{one.claim.id}.svg": strip(one).svg() for one in drawn}}


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


def quote(readme: Path, text: str) -> None:
    """Put the sentence into the project's README."""
    old = readme.read_text()
    new = re.sub(rf"(?<={re.escape(MARK)}).*", lambda _: text, old)
    if new != old:
        write_bytes(readme, new.encode())


class Recipe(NamedTuple):
    """A recipe and its draws."""

    name: str
    planned: int
    fresh: list[DrawRecord]
    circuits: list[tuple[str, int]]
    """What the heads of fresh draws read, and how many draws end so."""
    authors: DrawRecord | None


def recipes(records: Sequence[DrawRecord]) -> Iterator[Recipe]:
    """Each recipe, with the circuits that its draws ended with."""
    for recipe, seeds in frozen().seeds.items():
        own = {record.seed: record for record in records if record.recipe == recipe}
        fresh = [own[seed] for seed in seeds if seed in own]
        circuits = Counter(", ".join(record.heads) for record in fresh).most_common()
        yield Recipe(recipe, len(seeds), fresh, circuits, own.get(authors_seed(recipe)))
