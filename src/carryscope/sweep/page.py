"""A sweep for a reader: sweep.html, one page of small multiples, and sweep.md, its tables.

In: a `Sweep`. Out: the two files. The page is made of the parts of the report, looks as it does,
and keeps its rule: whatever a name or finding holds is shown as text, and nothing is loaded.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from carryscope.core.evidence import Share
from carryscope.core.storage import write_bytes
from carryscope.core.words import percent, with_interval
from carryscope.report.markdown import table
from carryscope.report.page import page_of
from carryscope.report.parts import (
    Facts,
    Note,
    Number,
    Numbers,
    Part,
    Picture,
    Section,
    Table,
    Text,
)
from carryscope.sweep import figures
from carryscope.sweep.finding import (
    Spread,
    Sweep,
    best_text,
    carries_text,
    roles_text,
)
from carryscope.sweep.properties import LOSSES
from carryscope.sweep.seeds import SeedFinding
from carryscope.training.presets import changes
from carryscope.verification.faithfulness_verdict import TELLS_ANSWERS, TELLS_ERRORS
from carryscope.verification.risk_verdict import SAFE, UNSAFE

PAGE_FILE, TABLES_FILE = Path("sweep.html"), Path("sweep.md")

THRESHOLDS = (
    f"An algorithm tells the answers if it gives the same one in {TELLS_ANSWERS:.0%} of all "
    f"questions, and the errors if, where it or the model is wrong, both say the same in "
    f"{TELLS_ERRORS:.0%} of them (errors as Algorithm 1's). It agrees best if its answers do so "
    "more often than the runner-up's; it is nearest to the errors if no other that was compared "
    "is nearer: exact addition, shorter and longer look-aheads, and what the dissection found. A "
    "double staircase is there if two heads or more step through the columns, at different "
    "distances; whether all three columns are read is asked by itself. Digits are safe if they are "
    f"wrong at most 1 time in {1 / SAFE:,.0f}; cascades fail if some digit is wrong in "
    f"{UNSAFE:.0%} or more. Intervals included."
)
"""What the rows of the tables ask."""

UNCERTAIN = (
    "The range is that of the seeds' estimates. How many questions a seed was asked goes by how "
    "much they count over all questions, so above four nines and more it was asked few, and the "
    "range there is mostly chance."
)
"""How to read the numbers by look-ahead."""


def write_pages(found: Sweep, directory: Path) -> None:
    """Leave both files beside the runs."""
    write_bytes(directory / TABLES_FILE, sweep_tables(found).encode())
    write_bytes(directory / PAGE_FILE, sweep_page(found).encode())


def sweep_page(found: Sweep) -> str:
    """The page as text."""
    template = resources.files(__package__) / "browser" / "sweep.html"
    return page_of(template.read_text(encoding="utf-8"), sections(found), title=headline(found))


def headline(found: Sweep) -> str:
    """What the page is called."""
    name = found.recipe.preset or "a recipe of its own"
    count = len(found.results)
    return f"{count} seed{'s' * (count != 1)} of {name}: is the algorithm the same?"


def sections(found: Sweep) -> list[Section]:
    """The page from top to bottom; figures only if a seed was brought to its end."""
    made = [Section("answer", "What the seeds have in common", "Answer", _answer(found))]
    if found.results:
        pictures = {
            "staircases": ("How they add", figures.staircases),
            "numbers": ("How well they add", figures.strips),
            "failures": ("Where they fail", figures.failures),
        }
        made += [
            Section(name, title, title, [Picture(name, {"": draw(found)})])
            for name, (title, draw) in pictures.items()
        ]
        made.append(Section("seeds", "Seed by seed", "Seeds", [_seed_table(found), _heads(found)]))
    return [*made, Section("method", "How this was made", "Method", _method(found))]


def _answer(found: Sweep) -> list[Part]:
    parts: list[Part] = [Text(found.statement, lead=True)]
    if found.results:
        numbers = [
            Number(_value(s.name, s.median), f"{s.name}, median", _range(s)) for s in found.numbers
        ]
        parts = [Numbers(numbers[:4]), *parts]
        parts.append(Picture("properties", {"": figures.properties(found)}))
        parts.append(_group_table(found))
    parts += [
        Note(f"Seed {one.seed} failed {one.tried} times: {one.reason}", "Failed")
        for one in found.failures
    ]
    return parts


def _group_table(found: Sweep) -> Table:
    groups = [("heads read", g) for g in found.roles]
    groups += [("agrees best with", g) for g in found.algorithms]
    return Table(
        "groups",
        "Seeds that are alike",
        ["what", "in", "seeds", "95 % interval", "which"],
        [
            [what, g.name, _count(g.share), _between(g.share), _listed(g.seeds)]
            for what, g in groups
        ],
        numeric=frozenset({2}),
        prose=frozenset({1, 4}),
    )


def _seed_table(found: Sweep) -> Table:
    return Table(
        "seeds",
        "What each seed came to",
        SEED_HEAD,
        [_seed_row(seed) for seed in found.results],
        "Staircase, heads and sub-tasks by `carryscope dissect`, wrong answers by `carryscope "
        "risk` over all questions, agreement by `carryscope faithful`.",
        numeric=frozenset({1, 2, 3, 4, 5}),
        prose=frozenset({8}),
    )


SEED_HEAD = [
    "seed",
    "held-out loss",
    "last 100 steps",
    "wrong answers",
    "answers as Algorithm 1's",
    "errors as its",
    "agrees best with",
    "staircase",
    "heads read",
]


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


def _heads(found: Sweep) -> Table:
    return Table(
        "heads",
        "What each head reads and carries",
        ["seed", "head", "reads", "attention there", "carries by itself"],
        [
            [
                str(seed.seed),
                f"L{head.layer}H{head.head}",
                head.role or "no staircase",
                f"{head.sharpness:.0%}",
                carries_text(head),
            ]
            for seed in found.results
            for head in seed.heads
        ],
        "Sub-tasks as tested by interchange; `state` is MC1 and MS9 together.",
        numeric=frozenset({3}),
        prose=frozenset({4}),
    )


def _method(found: Sweep) -> list[Part]:
    model, training = found.recipe.model, found.recipe.training
    assert training is not None
    facts = {
        "Recipe": f"{found.recipe.preset or 'its own'}{_changes(found)}; {training.steps:,} steps",
        "Model": f"{model.digits} digits, {model.layers} layers, {model.heads} heads, d_model "
        f"{model.d_model}, {model.format} format",
        "Seeds": _listed(found.seeds),
        "Command": _command(found),
        "Version": f"carryscope {found.package_version}{_where(found)}",
        "Intervals": "95 %. Those of a seed are over questions; those of a share of seeds "
        "(Wilson) and of a median (by order) are over seeds.",
        "Thresholds": f"those of the verdicts on a single run. {THRESHOLDS}",
    }
    return [Facts(facts)]


def _changes(found: Sweep) -> str:
    """What is not as in the preset."""
    changed = changes(found.recipe)
    return f" ({'; '.join(changed)})" if changed else ""


def _where(found: Sweep) -> str:
    return f", on {found.machine}" if found.machine else ""


def _command(found: Sweep) -> str:
    """The command that makes such a sweep; other settings than the preset's are told beside it."""
    seeds = found.seeds
    in_a_row = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    listed = f"{seeds[0]}..{seeds[-1]}" if in_a_row else ",".join(map(str, seeds))
    return f"carryscope sweep --preset {found.recipe.preset} --seeds {listed} --out DIR"


def sweep_tables(found: Sweep) -> str:
    """The summary and the table of seeds, in Markdown."""
    held = [
        [one.name, _count(one.holds), _between(one.holds)]
        for one in found.properties
        if one.holds.of
    ]
    spreads = [*found.numbers, *(one.wrong for one in found.depths)]
    names = [s.name for s in found.numbers] + [f"wrong: {s.wrong.name}" for s in found.depths]
    numbers = [
        [name, _value(s.name, s.median), _of_median(s), _range(s)]
        for name, s in zip(names, spreads, strict=True)
    ]
    failed = [[str(f.seed), str(f.tried), f.reason] for f in found.failures]
    tables = [
        table(["holds", "seeds", "95 % interval"], held),
        table(["number", "median", "95 % interval of the median", "range over seeds"], numbers),
        table(SEED_HEAD, [_seed_row(seed) for seed in found.results]),
        table(["failed seed", "tried", "why"], failed),
    ]
    made = f"Made with `{_command(found)}`{_changes(found)}, carryscope {found.package_version}"
    told = [f"# {headline(found)}", found.statement, *filter(None, tables)]
    return "\n\n".join([*told, THRESHOLDS, UNCERTAIN, f"{made}{_where(found)}."]) + "\n"


def _value(name: str, value: float) -> str:
    if name in LOSSES:
        return f"{value:.4f}"
    return f"{100 * value:.3g}%" if value else "none met"


def _range(spread: Spread) -> str:
    return f"{_value(spread.name, spread.least)} to {_value(spread.name, spread.most)}"


def _of_median(spread: Spread) -> str:
    if spread.low is None or spread.high is None:
        return "too few seeds"
    return f"{_value(spread.name, spread.low)} to {_value(spread.name, spread.high)}"


def _count(share: Share) -> str:
    return f"{share.count} of {share.of}"


def _between(share: Share) -> str:
    return f"{share.low:.0%} to {share.high:.0%}"


def _listed(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds))
