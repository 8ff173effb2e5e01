"""A sweep for a reader: sweep.html, one page of small multiples, and sweep.md, its tables.

In: a `Sweep`. Out: the two files, made of the parts of the report.
"""

from __future__ import annotations

from functools import partial
from importlib import resources
from pathlib import Path

from carryscope.core.evidence import Share
from carryscope.core.storage import write_bytes
from carryscope.core.words import between, percent, with_interval
from carryscope.report.markdown import as_text, markdown
from carryscope.report.page import page_of
from carryscope.report.parts import (
    Facts,
    KeyNumber,
    Note,
    Numbers,
    Part,
    Picture,
    Section,
    Table,
    Text,
)
from carryscope.sweeps import figures
from carryscope.sweeps.finding import Spread, Sweep, best_text, roles_text
from carryscope.sweeps.properties import LOSSES
from carryscope.sweeps.seeds import SeedFinding
from carryscope.training.presets import changes
from carryscope.verification.faithfulness import PREDICTS_ANSWERS, PREDICTS_ERRORS
from carryscope.verification.risk_verdict import SAFE, UNSAFE

PAGE_FILE, TABLES_FILE = Path("sweep.html"), Path("sweep.md")

THRESHOLDS = (
    f"A seed agrees with an algorithm if both give the same answer to {PREDICTS_ANSWERS:.0%} of "
    "all questions. An algorithm predicts the errors if, where it or the model is wrong, both give "
    f"the same answer in {PREDICTS_ERRORS:.0%} of cases. It agrees best if it matches more answers "
    "than the runner-up. It is compared with exact addition, with shorter and longer look-aheads, "
    "and with what the dissection found. A double staircase is present if two heads or more step "
    "through the columns at different distances. Digits are safe if they are wrong at most 1 time "
    f"in {1 / SAFE:,.0f}. Cascades fail if some digit is wrong in {UNSAFE:.0%} of cases or more. "
    "All of this holds for the whole 95 % interval, not for the estimate alone."
)
"""What the properties mean."""

RANGES = (
    "Ranges are those of the seeds' estimates. Few questions have four nines or more below a "
    "digit, so there the range is mostly chance."
)
"""How to read the numbers by look-ahead."""

SEED_HEAD = [
    "seed",
    "held-out loss",
    "last 100 steps",
    "wrong answers",
    "answers that match Algorithm 1",
    "errors that match",
    "agrees best with",
    "staircase",
    "heads read",
]


def write_pages(found: Sweep, directory: Path) -> None:
    """Write both files next to the runs."""
    write_bytes(directory / TABLES_FILE, sweep_tables(found).encode())
    write_bytes(directory / PAGE_FILE, sweep_page(found).encode())


def sweep_page(found: Sweep) -> str:
    """The page as text."""
    template = resources.files(__package__) / "browser" / "sweep.html"
    return page_of(template.read_text(encoding="utf-8"), sections(found), title=headline(found))


def sweep_tables(found: Sweep) -> str:
    """The summary and the tables, in Markdown."""
    made = f"Made with `{_command(found)}`{_changes(found)}, {_version(found)}."
    tables = [_held(found), _spreads(found), _seeds(found), _failed(found)]
    notes = [Text(text) for text in (THRESHOLDS, RANGES, made)]
    parts: list[Part] = [Text(found.statement), *(part for part in tables if part.rows), *notes]
    return f"# {as_text(headline(found))}\n\n{markdown(parts)}\n"


def headline(found: Sweep) -> str:
    """The title of the page."""
    name = found.recipe.preset or "a recipe of its own"
    count = len(found.results)
    return f"{count} seed{'s' * (count != 1)} of {name}: is the algorithm the same?"


def sections(found: Sweep) -> list[Section]:
    """The page from top to bottom; figures only if a seed was finished."""
    made = [Section("answer", "What the seeds have in common", "Answer", summary_parts(found))]
    if found.results:
        pictures = {
            "staircases": ("How they add", figures.staircases),
            "numbers": ("How well they add", figures.strips),
            "failures": ("Where they fail", figures.failures),
        }
        made += [
            Section(name, title, title, [Picture(name, partial(draw, found))])
            for name, (title, draw) in pictures.items()
        ]
        made.append(Section("seeds", "Seed by seed", "Seeds", [_seeds(found)]))
    return [*made, Section("method", "How this was made", "Method", [_method(found)])]


def summary_parts(found: Sweep) -> list[Part]:
    """What the sweep found, for the top of the page and for a terminal."""
    parts: list[Part] = [Text(found.statement, lead=True)]
    if found.results:
        numbers = [
            KeyNumber(_value(s.name, s.median), f"{s.name}, median", _ends(s.name, s.least, s.most))
            for s in found.numbers
        ]
        parts = [Numbers(numbers[:4]), *parts, _held(found)]
    notes = [f"Seed {one.seed} failed {one.tried} times: {one.reason}" for one in found.failures]
    return [*parts, *(Note(note, "Failed") for note in notes)]


def _held(found: Sweep) -> Table:
    """Properties, and the seeds that have them."""
    rows = [
        [one.name, _count(one.share), between(one.share)]
        for one in found.properties
        if one.share.of
    ]
    return Table("held", "What holds in how many seeds", ["holds", "seeds", "95 % interval"], rows)


def _spreads(found: Sweep) -> Table:
    """Numbers over the seeds, and wrong digits by look-ahead."""
    rows = [
        [s.name, _value(s.name, s.median), _of_median(s), _ends(s.name, s.least, s.most)]
        for s in found.numbers
    ]
    head = ["number", "median", "95 % interval of the median", "range over seeds"]
    return Table("spreads", "The numbers", head, rows)


def _failed(found: Sweep) -> Table:
    rows = [[str(one.seed), str(one.tried), one.reason] for one in found.failures]
    return Table("failed", "Failed seeds", ["failed seed", "tried", "why"], rows)


def _seeds(found: Sweep) -> Table:
    return Table(
        "seeds",
        "The seeds",
        SEED_HEAD,
        [_seed_row(seed) for seed in found.results],
        "Staircase, heads and sub-tasks from `carryscope dissect`, wrong answers over all "
        "questions from `carryscope risk`, agreement from `carryscope faithful`.",
        numeric=frozenset({1, 2, 3, 4, 5}),
        prose=frozenset({8}),
    )


def _seed_row(seed: SeedFinding) -> list[str]:
    fit = seed.algorithm
    return [
        str(seed.seed),
        f"{seed.held_out_loss.estimate:.4f}",
        f"{seed.last_steps_loss:.4f}",
        with_interval(seed.failure),
        percent(fit.agreement.estimate),
        percent(fit.errors_alike.estimate) if fit.errors_alike else "no errors",
        best_text(seed),
        seed.staircase,
        roles_text(seed),
    ]


def _method(found: Sweep) -> Facts:
    model, training = found.recipe.model, found.recipe.training
    assert training is not None
    return Facts(
        {
            "Recipe": f"{found.recipe.preset or 'its own'}{_changes(found)}; "
            f"{training.steps:,} steps",
            "Model": f"{model.digits} digits, {model.layers} layers, {model.heads} heads, d_model "
            f"{model.d_model}, {model.format} format",
            "Seeds": ", ".join(map(str, found.seeds)),
            "Command": _command(found),
            "Version": _version(found),
            "Intervals": "95 %. Those of a seed are over questions. Those of a share of seeds "
            "(Wilson) and of a median (by order) are over seeds.",
            "Thresholds": THRESHOLDS,
        }
    )


def _changes(found: Sweep) -> str:
    """How the recipe differs from its preset."""
    changed = changes(found.recipe)
    return f" ({'; '.join(changed)})" if changed else ""


def _version(found: Sweep) -> str:
    where = f", on {found.machine}" if found.machine else ""
    return f"carryscope {found.package_version}{where}"


def _command(found: Sweep) -> str:
    """The command that makes such a sweep, with the settings of its preset."""
    seeds = found.seeds
    in_a_row = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    named = f"{seeds[0]}..{seeds[-1]}" if in_a_row else ",".join(map(str, seeds))
    return f"carryscope sweep --preset {found.recipe.preset} --seeds {named} --out DIR"


def _value(name: str, value: float) -> str:
    if name in LOSSES:
        return f"{value:.4f}"
    return f"{100 * value:.3g}%" if value else "none"


def _ends(name: str, low: float, high: float) -> str:
    return f"{_value(name, low)} to {_value(name, high)}"


def _of_median(spread: Spread) -> str:
    if spread.low is None or spread.high is None:
        return "too few seeds"
    return _ends(spread.name, spread.low, spread.high)


def _count(share: Share) -> str:
    return f"{share.count} of {share.of}"
