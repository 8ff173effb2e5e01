"""The study of the seeds as a page. In: an `ExactStudy`. Out: docs/exact-adders.md."""

from __future__ import annotations

from statistics import median

from carryscope.core.words import NUMBERS, counted_share, spent
from carryscope.report.markdown import markdown
from carryscope.report.tables import Table
from carryscope.verification.before_after import blind_words
from paper.exact.study import EACH, MINUTES, ExactSeed, ExactStudy


def exact_page(found: ExactStudy) -> str:
    """The page: what is proved, the commands, the seeds, and what to keep in mind."""
    model, training = found.recipe.model, found.recipe.training
    assert training is not None
    lines = [
        "# Exact adders",
        "",
        f"`exact-5` has one layer, {NUMBERS[model.heads]} heads, a width of {model.d_model} and "
        f"{model.d_mlp} neurons. The certificate proves that it answers all "
        f"{10 ** (2 * model.digits):,} questions right.",
        "",
        "It differs from the paper's model in two ways. It has one head per column. And it is "
        "trained on cascades: each question draws its share of nines (columns that sum to 9) "
        "between none and all, and a share of columns that miss a nine by one. The heads start "
        f"to learn {training.head_delay} steps apart. Each finds the highest column that no "
        "head reads yet.",
        "",
        markdown([_commands(found)]),
        "",
        "Times are remarks: the machine was shared. The proof is about exact arithmetic with a "
        "demanded lead. What float32 does is measured, not proved "
        "([the certificate](certificate.md)).",
        "",
        f"## {NUMBERS[len(found.seeds)].capitalize()} seeds",
        "",
        _claim(found),
        "",
        markdown([_table(found.seeds)]),
        "",
        *_failing(found.seeds),
        "The recipe was fixed on other seeds (100 and up). Another processor rounds differently, "
        "so the same seed can end with other weights there.",
        "",
        "`python -m paper.exact` trains, tests and proves the seeds, and writes this page from "
        f"`paper/results/exact.json`. Each proof had {MINUTES:.0f} minutes. "
        f"Machine: {found.machine}.",
        "",
    ]
    return "\n".join(lines)


def _commands(found: ExactStudy) -> Table:
    """What to type, and what it took, in the median over the seeds that are proved."""
    proved = [one for one in found.seeds if one.exact] or found.seeds

    def middle(name: str) -> float:
        return median(getattr(one, name) for one in proved)

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


def _claim(found: ExactStudy) -> str:
    exact = sum(one.exact for one in found.seeds)
    return (
        f"**{exact} of {len(found.seeds)} seeds are proved right on every question.** All seeds "
        f"have the same recipe. Each was tested on {EACH} questions of every pattern of columns, "
        f"{found.seeds[0].tested:,} in all."
    )


def _table(seeds: list[ExactSeed]) -> Table:
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


def _wrong(one: ExactSeed) -> str:
    return ", ".join(f"{count:,} in {digit}" for digit, count in one.wrong.items()) or "0"


def _failing(seeds: list[ExactSeed]) -> list[str]:
    """What is said about seeds that are not proved, if there are any."""
    left = [one for one in seeds if not one.exact]
    if not left:
        return []
    wrong = [one for one in left if one.wrong]
    return [
        f"Not proved: seed {', '.join(str(one.seed) for one in left)}. "
        f"{len(wrong)} of these {len(left)} answer a tested question wrong.",
        "",
    ]
