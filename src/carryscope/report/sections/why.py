"""Why it breaks: one sum that the model gets wrong, drawn, with the sentence that explains it.

In: the answers of a model to a few sums. Out: a section.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from carryscope.dissection.asking import Answer
from carryscope.report.figures.sum import hardest, sum_figure
from carryscope.report.parts import Part, Picture, Section, Text
from carryscope.report.words import is_sum
from carryscope.verification.risk import RiskFinding

CLASSIC = "445+555"
"""The paper's own example of a sum that is not safe: a carry passes two nines."""


def sums_to_try(digits: int, risk: RiskFinding | None) -> list[str]:
    """Sums that may fail: the paper's example first, then the likeliest failures."""
    known = [str(stratum.simplest) for stratum in risk.failures] if risk is not None else []
    return [text for text in (CLASSIC, *known) if is_sum(text, digits)]


def telling(given: Iterable[Answer]) -> Answer | None:
    """The first wrong answer in which some column is needed and not read; else the first wrong."""
    wrong = [one for one in given if not one.correct]
    blind = [one for one in wrong if (why := hardest(one).explanation) and why.blind]
    return next(iter([*blind, *wrong]), None)


def why_section(example: Answer | None) -> Section | None:
    """The sum, and why its first wrong digit is wrong."""
    if example is None:
        return None
    explained = hardest(example).explanation
    parts: list[Part] = [Text(explained.sentence, lead=True)] if explained else []
    parts.append(Picture("why", partial(sum_figure, example)))
    return Section("why", f"Why it breaks: {example.question}", "Why it breaks", parts)
