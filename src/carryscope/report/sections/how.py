"""How the model adds: the main figure, and five sentences that change with the findings.

In: findings. Out: the section that opens the report's story, and a dissection as parts. The
sentences say what the heads read, what they carry, what the MLP makes of it, how far a carry is
followed, where it fails. A search that found nothing is reported as such; what was not searched for
is left out.
"""

from __future__ import annotations

import shlex
from functools import partial

from carryscope.core.evidence import Share
from carryscope.core.words import listed, percent, place_of, spanned
from carryscope.dissection.attention import AttentionFinding, role_name
from carryscope.dissection.dissect import Dissection
from carryscope.dissection.first_digits import FirstDigitsFinding
from carryscope.dissection.interventions import head_name
from carryscope.dissection.purposes import Purpose, SubtasksFinding
from carryscope.model.config import ModelConfig
from carryscope.report.figures.circuit import circuit, reads
from carryscope.report.parts import Absent, Folded, Part, Picture, Section, Sentences
from carryscope.report.sections.dissection import dissection_sections, node_table
from carryscope.report.sections.verdict import is_proved, proved
from carryscope.report.shelf import Shelf
from carryscope.report.words import above, carried, nines
from carryscope.task.operation import State
from carryscope.verification.risk import RiskFinding
from carryscope.verification.risk_verdict import UNSAFE


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
    """The five sentences, or as many as there are findings for."""
    sentences: list[str] = []
    if found is not None:
        layers = found.model.layers
        sentences += [_reads(found.attention, layers)] if found.attention else []
        sentences += [_carries(found.subtasks, found.model)] if found.subtasks else []
        sentences += [_combines(found)] if found.mlp or not found.model.d_mlp else []
        sentences += [_follows(found.first_digits, found.model)] if found.first_digits else []
    return sentences + ([where_it_fails(risk)] if risk else [])


def _reads(finding: AttentionFinding, layers: int) -> str:
    stepping = [head for head in finding.heads if head.role is not None]
    if not stepping:
        return (
            'There is no staircase: from "=" on, no head reads one digit pair after the other. '
            "Where the heads look does not explain the answers."
        )
    said = [f"{head_name(h.layer, h.head, layers)} reads {_column(h.offset)}" for h in stepping]
    rest = [head_name(h.layer, h.head, layers) for h in finding.heads if h.role is None]
    without = f" No single column gets the attention of {listed(rest)}." if rest else ""
    return (
        f'From "=" on, every row writes one digit. To write it, {listed(said)}. From row to row '
        f"they step one column to the right.{without}"
    )


def _column(below: int) -> str:
    return "the digit's own column" if below == 0 else f"the column {role_name(below)}"


def _carries(finding: SubtasksFinding, model: ModelConfig) -> str:
    operation = model.layout.operation
    known = carried(operation)
    jobs: dict[str, dict[str, list[str]]] = {}
    for p in finding.purposes:
        if p.heads:
            heads = "+".join(head_name(p.layer, head, model.layers) for head in p.heads)
            work = known.get(p.kind, p.kind).replace("{column}", _place(p, model))
            jobs.setdefault(heads, {}).setdefault(work, []).append(p.digit)
    if not jobs:
        return f"No head was found to carry any sub-task of {operation.name}."
    said = []
    for heads, works in sorted(jobs.items()):
        work, digits = max(works.items(), key=lambda item: len(item[1]))
        mostly = "mostly " if len(works) > 1 else ""
        said.append(f"{heads} {mostly}carries {work}, for {spanned(digits)}")
    return f"Exchanging heads between questions shows what they carry: {'; '.join(said)}."


def _place(purpose: Purpose, model: ModelConfig) -> str:
    """Where a column is, seen from its digit; the sign is above the highest column, as A_n is."""
    digit = place_of(purpose.digit)
    if digit is None:
        return f"column {purpose.column}"
    return _column(min(digit, model.digits) - purpose.column)


def _combines(found: Dissection) -> str:
    if found.mlp is None:
        return "There is no MLP: the answer is read off the sum of what the heads write."
    swaps = [test.follows for test in found.mlp.digits]
    follows = Share.measured(sum(one.count for one in swaps), sum(one.of for one in swaps))
    if follows.low <= 0.5:
        return (
            "The MLP does not look its answer up by the paper's keys: given the attention output "
            "of a question with another key, the digit follows in only "
            f"{percent(follows.estimate)} of swaps."
        )
    return (
        "The MLP makes the digit as if by a table. Its key is the base sum and the states of the "
        "columns below that are read. Given the attention output of a question with another key, "
        f"the digit becomes that key's digit in {percent(follows.estimate)} of swaps."
    )


def _follows(finding: FirstDigitsFinding, model: ModelConfig) -> str:
    words = model.layout.operation.words
    passes = words.column[State.PROPAGATE]
    reaching = [rule for rule in finding.rules if rule.reach]
    if not reaching:
        names = listed([rule.digit for rule in finding.rules])
        return f"No {words.carry} is followed: {names} do not change with the columns below them."
    depths: dict[int, list[str]] = {}
    for rule in reaching:
        depths.setdefault(rule.reach - 1, []).append(rule.digit)
    said = [f"through {nines(n, words)} by {listed(by)}" for n, by in depths.items()]
    token = [
        f" Where its own column {passes}, {rule.digit} uses the digit just written."
        for rule in finding.rules
        if rule.reads_token
    ]
    return f"A {words.carry} is reliably followed {listed(said)}.{''.join(token)}"


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
    least, worst = min(c.depth for c in unsafe), max(unsafe, key=lambda c: c.wrong.estimate)
    said = f"{above(worst, words)}, is wrong in {percent(worst.wrong.estimate)} of such questions"
    if least == 0:
        none = f"digits are wrong even with no {words.passing} below"
        return f"It does not {words.base_verb}: {none}. The worst, {said}."
    lie = "lies" if least == 1 else "lie"
    return f"It fails once {nines(least, words)} {lie} below: the worst digit, {said}."
