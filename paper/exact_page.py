"""The study of the seeds as a page. In: its records. Out: docs/exact-adders.md."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from carryscope.core.words import counted_share, listed, spent
from carryscope.report.markdown import markdown
from carryscope.report.tables import Table
from carryscope.training.presets import preset
from carryscope.verification.before_after import blind_words
from paper.exact import EACH, MINUTES, PRESET, ExactRecord
from paper.study import page

PAGE = "exact-adders.md"


def exact_page(seeds: Sequence[ExactRecord]) -> str:
    """The page: what is proved, the commands, the seeds, and what to keep in mind."""
    chosen = preset(PRESET)
    return page(
        PAGE,
        model=chosen.model,
        recipe=chosen.training,
        questions=int(seeds[0].questions),
        commands=markdown([_commands(seeds)]),
        claim=_claim(seeds),
        table=markdown([_table(seeds)]),
        machine=seeds[0].machine,
        minutes=MINUTES,
    )


def _commands(seeds: Sequence[ExactRecord]) -> Table:
    """What to type, and what it took, in the median over the seeds that are proved."""
    proved = [one for one in seeds if one.exact] or seeds

    def middle(name: str) -> float:
        return float(median(getattr(one, name) for one in proved))

    rows = [
        (
            "train it again",
            "`carryscope train --preset exact-5 --out runs/exact`",
            spent(middle("training_seconds")),
        ),
        (
            "prove it",
            "`carryscope certify runs/exact --until 1`",
            f"{middle('boxes'):,.0f} boxes, {spent(middle('proof_seconds'))}",
        ),
        (
            "check the proof",
            "`carryscope certify runs/exact --check`",
            spent(middle("check_seconds")),
        ),
    ]
    return Table("exact-commands", "", ["what", "command", "median, one thread"], rows)


def _claim(seeds: Sequence[ExactRecord]) -> str:
    left = [str(one.seed) for one in seeds if not one.exact]
    wrong = [str(one.seed) for one in seeds if one.wrong]
    said = [
        f"**{len(seeds) - len(left)} of {len(seeds)} seeds are proved right on every question.** "
        f"All seeds have the same recipe. Each was tested on {EACH} questions of every pattern "
        f"of columns, {seeds[0].tested:,} in all."
    ]
    if left:
        said.append(f"Not proved: seed {listed(left)}.")
    said.append(f"Seed {listed(wrong)} gets tested questions wrong." if wrong else "None is wrong.")
    return " ".join(said)


def _table(seeds: Sequence[ExactRecord]) -> Table:
    return Table.of(
        "exact-seeds",
        "",
        seeds,
        {
            "seed": lambda one: str(one.seed),
            "wrong answer digits": _wrong,
            "smallest lead, logits": lambda one: f"{one.smallest_lead:.1f}",
            "proved right": lambda one: counted_share(int(one.proved_right), int(one.questions)),
            "boxes": lambda one: f"{one.boxes:,}",
            "training, s": lambda one: f"{one.training_seconds:.0f}",
            "proof, s": lambda one: f"{one.proof_seconds:.0f}",
            "check, s": lambda one: f"{one.check_seconds:.0f}",
            "columns that no head reads": lambda one: blind_words(one.blind) or "none",
        },
    )


def _wrong(one: ExactRecord) -> str:
    return ", ".join(f"{count:,} in {digit}" for digit, count in one.wrong.items()) or "0"
