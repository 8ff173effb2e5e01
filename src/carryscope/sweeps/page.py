"""A sweep for a reader: sweep.html, one page of small multiples, and sweep.md, its tables.

In: a `Sweep`. Out: the two files, made of the same parts.
"""

from __future__ import annotations

from functools import partial
from importlib import resources
from pathlib import Path

from carryscope.core.storage import write_bytes
from carryscope.core.words import between, brief, percent, with_interval
from carryscope.report.markdown import as_text, markdown
from carryscope.report.page import page_of
from carryscope.report.parts import Facts, KeyNumber, Note, Numbers, Part, Picture, Section, Text
from carryscope.report.tables import Table
from carryscope.sweeps import figures
from carryscope.sweeps.finding import Spread, Sweep
from carryscope.sweeps.seeds import LOSSES
from carryscope.training.presets import changes
from carryscope.verification.faithfulness import PREDICTS_ANSWERS, PREDICTS_ERRORS
from carryscope.verification.risk_verdict import SAFE, UNSAFE

PAGE_FILE, TABLES_FILE = Path("sweep.html"), Path("sweep.md")

THRESHOLDS = (
    f"A seed agrees with an algorithm if both give the same answer to {brief(PREDICTS_ANSWERS)} of "
    "all questions. An algorithm predicts the errors if, where it or the model is wrong, both give "
    f"the same answer in {brief(PREDICTS_ERRORS)} of cases. It agrees best if it matches more "
    "answers than the runner-up. It is compared with exact addition, with shorter and longer "
    "look-aheads, and with what the dissection found. A double staircase is present if two heads "
    "or more step through the columns at different distances. Digits are safe if they are wrong at "
    f"most 1 time in {1 / SAFE:,.0f}. Cascades fail if some digit is wrong in {brief(UNSAFE)} of "
    "cases or more. All of this holds for the whole 95 % interval, not for the estimate alone."
)
"""What the properties mean."""


def write_pages(found: Sweep, directory: Path) -> None:
    """Write both files next to the runs."""
    write_bytes(directory / TABLES_FILE, sweep_tables(found).encode())
    write_bytes(directory / PAGE_FILE, sweep_page(found).encode())


def sweep_page(found: Sweep) -> str:
    """The page as text."""
    template = resources.files(__package__) / "browser" / "sweep.html"
    return page_of(template.read_text(encoding="utf-8"), sections(found), title=headline(found))


def sweep_tables(found: Sweep) -> str:
    """The page without its pictures, in Markdown."""
    return f"# {as_text(headline(found))}\n\n{markdown(sections(found))}\n"


def headline(found: Sweep) -> str:
    """The title of the page."""
    name = found.recipe.preset or "a recipe of its own"
    count = len(found.results)
    return f"{count} seed{'s' * (count != 1)} of {name}: is the algorithm the same?"


def sections(found: Sweep) -> list[Section]:
    """The page from top to bottom; figures only if a seed was finished."""
    method = Section("method", "How this was made", "Method", [_method(found)])
    answer = Section("answer", "What the seeds have in common", "Answer", summary_parts(found))
    if not found.results:
        return [answer, method]
    bodies: dict[str, tuple[str, list[Part]]] = {
        "staircases": ("How they add", [_picture("staircases", found)]),
        "failures": ("Where they fail", [_picture("failures", found)]),
        "numbers": ("How well they add", [_spreads(found)]),
        "seeds": ("Seed by seed", [_seeds(found)]),
    }
    made = [Section(name, title, title, parts) for name, (title, parts) in bodies.items()]
    return [answer, *made, method]


def _picture(name: str, found: Sweep) -> Picture:
    return Picture(name, partial(getattr(figures, name), found))


def summary_parts(found: Sweep) -> list[Part]:
    """What the sweep found, for the top of the page and for a terminal."""
    parts: list[Part] = [Text(found.statement, lead=True)]
    if found.results:
        numbers = [
            KeyNumber(_value(s.name, s.median), f"{s.name}, median", _ends(s.name, s.least, s.most))
            for s in found.numbers[:4]
        ]
        parts = [Numbers(numbers), *parts, _held(found)]
    notes = [f"Seed {one.seed} failed {one.tried} times: {one.reason}" for one in found.failures]
    return [*parts, *(Note(note, "Failed") for note in notes)]


def _held(found: Sweep) -> Table:
    """Properties, and the seeds that have them."""
    return Table.of(
        "held",
        "What holds in how many seeds",
        [one for one in found.properties if one.share.of],
        {
            "holds": lambda one: one.name,
            "seeds": lambda one: f"{one.share.count} of {one.share.of}",
            "95 % interval": lambda one: between(one.share),
        },
    )


def _spreads(found: Sweep) -> Table:
    """Numbers over the seeds, and wrong digits by look-ahead."""
    return Table.of(
        "spreads",
        "The numbers",
        found.numbers,
        {
            "number": lambda one: one.name,
            "median": lambda one: _value(one.name, one.median),
            "95 % interval of the median": _of_median,
            "range over seeds": lambda one: _ends(one.name, one.least, one.most),
        },
        "Ranges are those of the seeds' estimates. Few questions have four nines or more below a "
        "digit, so there the range is mostly chance.",
    )


def _seeds(found: Sweep) -> Table:
    return Table.of(
        "seeds",
        "The seeds",
        found.results,
        {
            "seed": lambda one: str(one.seed),
            "held-out loss": lambda one: _value(LOSSES[0], one.held_out_loss.estimate),
            "last 100 steps": lambda one: _value(LOSSES[1], one.last_steps_loss),
            "wrong answers": lambda one: with_interval(one.failure),
            "answers that match Algorithm 1": lambda one: percent(one.algorithm.agreement.estimate),
            "errors that match": lambda one: (
                percent(one.algorithm.errors_alike.estimate)
                if one.algorithm.errors_alike
                else "no errors"
            ),
            "agrees best with": lambda one: one.best_algorithm,
            "staircase": lambda one: one.staircase,
            "heads read": lambda one: one.roles,
        },
        "Staircase, heads and sub-tasks from `carryscope dissect`, wrong answers over all "
        "questions from `carryscope risk`, agreement from `carryscope faithful`.",
        text=["agrees best with", "staircase"],
        prose=["heads read"],
    )


def _method(found: Sweep) -> Facts:
    model, training = found.recipe.model, found.recipe.training
    assert training is not None
    name = found.recipe.preset or "its own"
    changed = f" ({'; '.join(differing)})" if (differing := changes(found.recipe)) else ""
    where = f", on {found.machine}" if found.machine else ""
    return Facts(
        {
            "Recipe": f"{name}{changed}; {training.steps:,} steps",
            "Model": f"{model.digits} digits, {model.layers} layers, {model.heads} heads, d_model "
            f"{model.d_model}, {model.format} format",
            "Seeds": ", ".join(map(str, found.seeds)),
            "Command": f"carryscope sweep --preset {found.recipe.preset} --seeds "
            f"{_named(found.seeds)} --out DIR",
            "Version": f"carryscope {found.package_version}{where}",
            "Intervals": "95 %. Those of a seed are over questions. Those of a share of seeds "
            "(Wilson) and of a median (by order) are over seeds.",
            "Thresholds": THRESHOLDS,
        }
    )


def _named(seeds: list[int]) -> str:
    """Seeds as the command takes them."""
    in_a_row = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]}..{seeds[-1]}" if in_a_row else ",".join(map(str, seeds))


def _value(name: str, value: float) -> str:
    return f"{value:.4f}" if name in LOSSES else percent(value)


def _ends(name: str, low: float, high: float) -> str:
    return f"{_value(name, low)} to {_value(name, high)}"


def _of_median(spread: Spread) -> str:
    if spread.low is None or spread.high is None:
        return "too few seeds"
    return _ends(spread.name, spread.low, spread.high)
