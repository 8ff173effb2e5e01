"""Why it breaks: one sum that the model gets wrong, drawn, next to a model that gets it right.

In: models with their shelves. Out: a section. A model without failures gets one as well: it shows
that every column is read, and what is proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from carryscope.core.words import counted
from carryscope.dissection.asking import Answer, answers_without
from carryscope.dissection.explaining import column_words
from carryscope.report.explorer import Live
from carryscope.report.figures.sum import columns_read, hardest, sum_figure
from carryscope.report.parts import Facts, Part, Picture, Section, Text
from carryscope.report.sections.verdict import is_proved, proved
from carryscope.report.shelf import Shelf
from carryscope.report.words import is_sum
from carryscope.task.tokens import Format
from carryscope.verification.risk import RiskFinding

CLASSIC = ("445+555", "1000-1")
"""The paper's own example of a sum that is not safe: a carry passes two nines; and a difference in
which a borrow passes two pairs of equal digits."""

SHORT = ("1+9", "1-9")
"""For models of one or two digits."""


BREAKS = "Why it breaks: "


def shown_sum(why: Section | None) -> str:
    """The sum that the section is about, for the explorer to open on; empty if none breaks it."""
    return why.title.removeprefix(BREAKS) if why is not None and BREAKS in why.title else ""


def sums_to_try(layout: Format, risk: RiskFinding | None) -> list[str]:
    """Questions that may fail: the examples first, then the likeliest failures."""
    known = [str(stratum.simplest) for stratum in risk.failures] if risk is not None else []
    return [text for text in (*CLASSIC, *known, *SHORT) if is_sum(text, layout)]


def telling(given: Iterable[Answer]) -> Answer | None:
    """The first wrong answer in which some column is needed and not read; else the first wrong."""
    wrong = [one for one in given if not one.correct]
    blind = [one for one in wrong if (why := hardest(one).explanation) and why.blind]
    return next(iter([*blind, *wrong]), None)


def why_section(live: Sequence[Live]) -> Section | None:
    """The sum that the first model fails on, and the same sum in the others."""
    if not live:
        return None
    (shelf, model), *others = live
    given = answers_without(model, sums_to_try(shelf.config.model.layout, shelf.risk), ())
    example = telling(given)
    if example is None:
        return _sound(shelf, given[0])
    digit = hardest(example)
    parts: list[Part] = [Text(digit.explanation.sentence, lead=True)] if digit.explanation else []
    parts.append(Picture("why", partial(sum_figure, example, whose=shelf.name)))
    for other, exact in others:
        (right,) = answers_without(exact, [example.question], ())
        has = f"`{other.name}` has {counted(exact.config.heads, 'head')}."
        parts.append(Text(f"{has} {_read(right, digit.name)} {proved(other)}"))
        drawn = partial(sum_figure, right, digit.name, other.name)
        parts.append(Picture(f"why-{other.name}", drawn))
    if shelf.faithfulness is not None and shelf.faithfulness.sight is not None:
        parts.append(Facts({"Measured, in general": shelf.faithfulness.sight.statement}))
    return Section("why", f"{BREAKS}{example.question}", "Why it breaks", parts)


def _sound(shelf: Shelf, given: Answer) -> Section:
    """For a model that gets every sum right that was tried."""
    if is_proved(shelf):
        title = "Why it does not break: a sum that fails does not exist"
    else:
        title = "No sum is known that breaks it"
    digit = hardest(given).name
    claim = Text(f"{_read(given, digit)} {proved(shelf)}".strip(), lead=True)
    parts: list[Part] = [claim, Picture("why", partial(sum_figure, given, whose=shelf.name))]
    return Section("why", title, "Why it holds", parts)


def _read(given: Answer, name: str) -> str:
    """What is read to write a digit, in a sentence."""
    digit = next(one for one in given.digits if one.name == name)
    read = column_words(sorted(columns_read(digit), reverse=True))
    verdict = "right" if digit.predicted == digit.truth else f"{digit.predicted}, which is wrong"
    return f"To write {name} of {given.question}, they read {read}, and {name} is {verdict}."
