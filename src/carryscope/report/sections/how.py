"""How the model adds: the main figure, and a few sentences.

In: findings. Out: the section that opens the report's story, and a dissection as parts. The
sentences are the statements of the findings: what the heads read, what they carry, what later
layers fetch, what the MLP makes of it; then where it fails. What was not searched for is left out.
"""

from __future__ import annotations

import shlex
from functools import partial

from carryscope.core.words import listed, percent
from carryscope.dissection.dissect import Dissection
from carryscope.dissection.subtasks import in_short
from carryscope.report.figures.circuit import circuit, reads
from carryscope.report.parts import Absent, Folded, Part, Picture, Section, Sentences
from carryscope.report.sections.dissection import dissection_sections, node_table
from carryscope.report.sections.verdict import is_proved, proved
from carryscope.report.shelf import Shelf
from carryscope.report.words import above, nines
from carryscope.verification.risk import RiskFinding
from carryscope.verification.risk_verdict import UNSAFE

ALGORITHM = ("attention", "subtasks", "paths", "mlp")
"""The experiments that say how it adds."""


def how_section(shelf: Shelf) -> Section:
    """How it adds."""
    found = shelf.dissection
    sentences = algorithm_sentences(found, None if is_proved(shelf) else shelf.risk)
    sentences += [proved(shelf)] if is_proved(shelf) else []
    title = f"How it {shelf.config.model.layout.operation.words.verb}"
    parts: list[Part] = []
    if found is not None and found.attention is not None:
        parts += _circuit(found)
    else:
        command = f"carryscope dissect {shlex.quote(shelf.where)}"
        unknown = Absent("What each head reads and carries", command)
        parts.append(shelf.absent.get("dissection", unknown))
    parts += [Sentences(algorithm_title(found), sentences)] if sentences else []
    return Section("how", title, title, parts)


def dissection_parts(found: Dissection) -> list[Part]:
    """How the model adds, what each node carries, then each experiment."""
    sentences = algorithm_sentences(found)
    claim = (
        Sentences(algorithm_title(found), sentences)
        if sentences
        else Sentences("What was found", list(found.statements().values()))
    )
    main: list[Part] = []
    if found.attention is not None:
        main = _circuit(found)[1:]
    elif found.nodes is not None:
        main = [node_table(found)]
    folded = [Folded(section.title, section.parts) for section in dissection_sections(found)]
    return [claim, *main, *folded]


def _circuit(found: Dissection) -> list[Part]:
    instead = node_table(found) if found.nodes is not None else None
    return [
        Picture("reads", partial(reads, found)),
        Picture("circuit", partial(circuit, found), instead=instead),
    ]


def algorithm_title(dissection: Dissection | None) -> str:
    """What to call the sentences: an algorithm takes heads that step, and work that they do."""
    if dissection is None or dissection.attention is None or dissection.subtasks is None:
        return "What is known so far"
    stepping = dissection.attention.staircase == "present"
    found = stepping and bool(dissection.subtasks.purposes)
    return "The algorithm" if found else "No algorithm was found"


def algorithm_sentences(found: Dissection | None, risk: RiskFinding | None = None) -> list[str]:
    """What the findings say about it, as many sentences as there are findings for."""
    said = found.statements() if found is not None else {}
    if found is not None and not found.model.d_mlp:
        said["mlp"] = "There is no MLP: the answer is read off the sum of what the heads write."
    if found is not None and found.subtasks is not None:
        said["subtasks"] = in_short(found.subtasks, found.model)
    sentences = [said[name] for name in ALGORITHM if name in said]
    return sentences + ([where_it_fails(risk)] if risk else [])


def where_it_fails(finding: RiskFinding) -> str:
    """The look-ahead from which on digits are wrong."""
    words = finding.words
    unsafe = [case for case in finding.cases if case.wrong.low >= UNSAFE]
    if not unsafe:
        worst = max(finding.cases, key=lambda case: case.wrong.high)
        return (
            f"No look-ahead was found unsafe: the worst digit, {above(worst, words)}, is wrong in "
            f"at most {percent(worst.wrong.high)}."
        )
    worst = max(unsafe, key=lambda case: case.wrong.estimate)
    said = f"{above(worst, words)}, is wrong in {percent(worst.wrong.estimate)} of such questions"
    least: dict[str, int] = {}
    for case in unsafe:
        least[case.digit] = min(case.depth, least.get(case.digit, case.depth))
    if not min(least.values()):
        none = f"digits are wrong even with no {words.passing} below"
        return f"It does not {words.base_verb}: {none}. The worst, {said}."
    once = []
    for depth in sorted(set(least.values())):
        digits = listed([digit for digit in least if least[digit] == depth])
        once.append(f"{digits} once {nines(depth, words)} {'lies' if depth == 1 else 'lie'} below")
    return f"It fails at {', at '.join(once)}. The worst, {said}."
