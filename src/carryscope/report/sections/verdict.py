"""What a reader sees first: how often it is right, on what it fails, what to do about it.

In: the shelf of a run. Out: a section.
"""

from __future__ import annotations

import shlex

from carryscope.core.words import counted, counted_share, percent, with_interval
from carryscope.report.parts import Facts, Part, Section, Text
from carryscope.report.shelf import Shelf
from carryscope.report.words import is_sum
from carryscope.task.operation import State
from carryscope.task.tokens import Format
from carryscope.verification.risk import RiskFinding
from carryscope.verification.risk_verdict import SAFE, UNSAFE, guard, how_often, on_what

PROVED = "A proof samples nothing: bounds on the model's arithmetic cover every question."

UNMEASURED = "How often it fails has not been measured. Do not rely on it before that is known."


def verdict_section(shelf: Shelf, exact: Shelf | None = None) -> Section:
    """The verdict; it is also how a run shows itself, and how a study ends.

    `exact` is a model that is proved right, to use instead.
    """
    parts: list[Part] = [
        *_judgement(shelf, exact),
        Text(trained(shelf)),
        *([shelf.absent["risk"]] if "risk" in shelf.absent else []),
    ]
    return Section("verdict", headline(shelf), "Verdict", parts)


def headline(shelf: Shelf) -> str:
    """The verdict in a line."""
    found = shelf.certificate
    if found is not None and is_proved(shelf):
        return f"Proved right in all {int(found.questions):,} questions"
    if shelf.risk is not None:
        return _from_risk(shelf.risk)
    if found is not None and int(found.proved_right):
        least = counted_share(int(found.proved_right), int(found.questions))
        return f"Proved right in {least} of all questions or more"
    if shelf.training is not None:
        right = shelf.training.uniform_correct
        tested = f"{right.count:,} of {right.of:,} uniform questions"
        return f"Right in {tested}; where it fails is not known"
    return "How often it is right has not been measured"


def _from_risk(risk: RiskFinding) -> str:
    unsafe = [case.depth for case in risk.cases if case.wrong.low >= UNSAFE]
    right = f"Right in {percent(1 - risk.teacher_forced.estimate)} of all questions"
    if unsafe and not min(unsafe):
        return f"{right}: not fit for use"
    if unsafe:
        columns, pass_on = counted(min(unsafe), "column"), risk.words.columns[State.PROPAGATE]
        return f"{right}; not safe where {columns} or more in a row {pass_on}"
    if all(case.wrong.high <= SAFE for case in risk.cases):
        return f"{right}, and safe at every look-ahead that was tried"
    return f"{right}; no look-ahead was found unsafe"


def _judgement(shelf: Shelf, exact: Shelf | None) -> list[Part]:
    """How often it fails, on what, what is proved, and what to do about it."""
    risk, often, kind = shelf.risk, "", ""
    if risk is not None:
        often = how_often(risk.teacher_forced, int(risk.questions), risk.evaluated)
        kind = _kind(risk, shelf.config.model.layout)
    said = proved(shelf)
    facts = {
        "Measured: how often": often,
        "Measured: on what": kind,
        "Proved": said and f"{said} {PROVED}",
        **({} if is_proved(shelf) else _advice(shelf, exact)),
    }
    known: list[Part] = [Facts({name: text for name, text in facts.items() if text})]
    return known if risk is not None else [Text(UNMEASURED, lead=True), *known]


def is_proved(shelf: Shelf) -> bool:
    """Whether every question is proved right."""
    found = shelf.certificate
    return found is not None and found.proved_right == found.questions


def proved(shelf: Shelf) -> str:
    """What is proved, in a sentence; empty if nothing was tried."""
    said = shelf.certificate.statement.partition(". ")[0] if shelf.certificate is not None else ""
    return said and f"{said.rstrip('.')}."


def _kind(risk: RiskFinding, layout: Format) -> str:
    """The kind of question that it fails on."""
    first, words = next(iter(risk.failures), None), risk.words
    if first is None or not is_sum(first.simplest, layout):
        return ""
    nine = f"A{'n' * risk.asked.signed} {words.passing} is a column that"
    return f"{on_what(risk, layout)} {nine} {words.column[State.PROPAGATE]}."


def _advice(shelf: Shelf, exact: Shelf | None) -> dict[str, str]:
    """What a user can do: refuse what fails, take another model, or repair this one."""
    risk, model = shelf.risk, shelf.config.model
    if risk is None or all(case.wrong.low < UNSAFE for case in risk.cases):
        return {}
    words, found = risk.words, guard(risk)
    said = {"What to do": f"Do not use it: it does not {words.base_verb}."}
    if found is not None:
        said["What to do"] = (
            f"Refuse a {words.question} if {found.said(words)}: that is {percent(found.refused)} "
            f"of all {words.question}s. Of the others, {with_interval(found.wrong)} get a wrong "
            "answer."
        )
    if exact is not None and is_proved(exact):
        heads = counted(exact.config.model.heads, "head")
        said["Or another model"] = (
            f"`{exact.name}`, shown below, comes with carryscope. It has {heads}, and it is proved "
            "right."
        )
    if model.layers == 1:
        repair = f"carryscope repair {shlex.quote(shelf.where)} --out NEW"
        said["Or a repair"] = f"Train a copy with the heads that it lacks: `{repair}`."
    return said


def trained(shelf: Shelf) -> str:
    """What was trained, in a sentence."""
    config, model = shelf.config, shelf.config.model
    verb = model.layout.operation.words.verb
    shape = (
        f"A transformer with {counted(model.layers, 'layer')} and {counted(model.heads, 'head')} "
        f"(d_model {model.d_model}, d_mlp {model.d_mlp}) that {verb} two {model.digits}-digit "
        "numbers"
    )
    if config.training is None:
        return f"{shape}, imported{f' from `{config.source}`' if config.source else ''}."
    by = f"the recipe `{config.preset}`" if config.preset else "a recipe of its own"
    done = shelf.training
    work = f": {done.steps:,} steps, {done.questions_seen:,} questions" if done else ""
    return f"{shape}, trained by {by}, seed {config.training.seed}{work}."
