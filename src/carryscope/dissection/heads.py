"""Each head taken away at every row at once, on questions of each class.

In: an engine and questions. Out: `HeadsFinding`: loss and accuracy by class and answer digit,
and which head, if one does, carries base addition. Teacher-forced, as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from carryscope.core.evidence import Mean, Share
from carryscope.dissection.attention import HeadRole
from carryscope.dissection.engine import UNCHANGED, Engine, Outcomes
from carryscope.dissection.interventions import Ablate, How
from carryscope.dissection.rows import PAPER_THRESHOLD
from carryscope.dissection.samples import Samples
from carryscope.task.columns import QuestionClass


class HeadEffect(msgspec.Struct, frozen=True, kw_only=True):
    """Questions of one class without one head; with no head named, the whole model."""

    layer: int | None
    head: int | None
    how: str | None
    question_class: str
    loss: Mean
    """Mean over all answer tokens."""
    correct: Share
    """Whole answers right."""
    digit_loss: dict[str, float]
    digit_right: dict[str, Share]


class HeadsFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Heads by question class."""

    seed: int
    questions: int
    threshold: float
    effects: list[HeadEffect]
    base_add_head: tuple[int, int] | None
    """Layer and head without which BA questions lose most, if it beats the next one clearly."""
    base_add_role: str | None
    """What that head attends to."""
    statement: str


def study_heads(
    engine: Engine,
    samples: Samples,
    roles: list[HeadRole],
    on_progress: Callable[[int], object] = lambda _: None,
) -> HeadsFinding:
    """Ablate each head at all rows, to zero and to its mean."""
    ways: list[How] = ["mean", "zero"]
    rows = tuple(range(engine.config.context))
    heads = [(a, b) for a in range(engine.config.layers) for b in range(engine.config.heads)]
    wanted = [(layer, head, how) for how in ways for layer, head in heads]
    changes = [
        Ablate(f"blocks.{layer}.attn.hook_z", rows, (head,), how) for layer, head, how in wanted
    ]
    effects = []
    for kind, questions in samples.by_class.items():
        outcomes = engine.answers(questions, [UNCHANGED, *changes], on_progress=on_progress)
        effects.append(_effect(outcomes, 0, kind, engine.layout.answer_names))
        for i, (layer, head, how) in enumerate(wanted, start=1):
            effect = _effect(outcomes, i, kind, engine.layout.answer_names)
            effects.append(msgspec.structs.replace(effect, layer=layer, head=head, how=how))
    carrier = _base_add_head(effects)
    role = {(r.layer, r.head): r.role for r in roles}.get(carrier) if carrier else None
    return HeadsFinding(
        seed=samples.seed,
        questions=sum(map(len, samples.by_class.values())),
        threshold=PAPER_THRESHOLD,
        effects=effects,
        base_add_head=carrier,
        base_add_role=role,
        statement=_statement(effects, carrier, role),
    )


def _effect(outcomes: Outcomes, i: int, kind: QuestionClass, names: list[str]) -> HeadEffect:
    loss, right = outcomes.loss[i], outcomes.right[i]
    return HeadEffect(
        layer=None,
        head=None,
        how=None,
        question_class=kind.label,
        loss=Mean.measured(loss.mean(1).tolist()),
        correct=Share.measured(int(outcomes.correct[i].sum()), len(right)),
        digit_loss={n: round(float(x), 6) for n, x in zip(names, loss.mean(0), strict=True)},
        digit_right={
            n: Share.measured(int(x), len(right)) for n, x in zip(names, right.sum(0), strict=True)
        },
    )


def _ranked(effects: list[HeadEffect]) -> list[HeadEffect]:
    """The heads by their mean-ablated loss on BA questions, largest first."""
    chosen = [e for e in effects if e.how == "mean" and e.question_class == QuestionClass.BA.label]
    return sorted(chosen, key=lambda effect: -effect.loss.estimate)


def _base_add_head(effects: list[HeadEffect]) -> tuple[int, int] | None:
    """The head whose loss is above the whole model's and the next head's, intervals apart."""
    first, *others = _ranked(effects)
    whole = next(e for e in effects if e.how is None)
    rivals = [whole, *others[:1]]
    if any(first.loss.low <= rival.loss.high for rival in rivals):
        return None
    if first.loss.estimate - whole.loss.estimate <= PAPER_THRESHOLD:
        return None
    assert first.layer is not None
    assert first.head is not None
    return first.layer, first.head


def _statement(effects: list[HeadEffect], carrier: tuple[int, int] | None, role: str | None) -> str:
    ranked = _ranked(effects)
    losses = ", ".join(f"L{e.layer}H{e.head} {e.loss.estimate:.3f}" for e in ranked)
    whole = next(e for e in effects if e.how is None).loss.estimate
    told = f"BA questions have a loss of {whole:.3f}; without each head (mean): {losses}."
    if carrier is None:
        return f"No head stands out as the one that BA questions need. {told}"
    column = "its own column" if role == "own column" else f"the column {role}"
    reads = f", which reads {column}," if role else ""
    return f"BA questions suffer most without L{carrier[0]}H{carrier[1]}{reads} by far. {told}"
