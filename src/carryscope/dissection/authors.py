"""What nodes do, in the file format of the paper's authors, so that their tools can read it.

In: a model and its dissection. Out: `behaviors.json` and `features.json`, lists of nodes with tags:

    {"position": 13, "layer": 0, "is_head": true, "num": 2,
     "tags": ["Fail%:12", "Impact:A3", "Math.Add:S23", "Attn:P3=48", "Attn:P9=47"]}

Fail% is the share of questions that fail without the node, Impact the answer tokens hit, Attn the
positions attended to. Math.Add, Math.Sub and Math.Neg name the failing sums, differences and
negative differences by how far a carry or borrow travels: S0 none, S1 one column, S2 through one
nine; M0 to M4 and N1 to N4 likewise. Algo (in `features.json`) is a purpose, by the authors' names.
"""

from __future__ import annotations

import msgspec
import numpy as np
from jaxtyping import Bool

from carryscope.dissection.attention import LEAST_SHARE, TOP_TOKENS
from carryscope.dissection.dissect import Dissection
from carryscope.dissection.engine import UNCHANGED, Engine
from carryscope.dissection.hypotheses import OPERATOR, SIGN, STATE
from carryscope.dissection.interventions import Node, all_nodes
from carryscope.task.columns import Columns
from carryscope.task.operation import ADD, SUBTRACT, Array
from carryscope.task.questions import Questions

_ADDING = dict(zip(("base", "makes", "passes"), ("SA", "SC", "SS"), strict=True))
_ALGO = {
    **{getattr(ADD.subtasks, name): theirs for name, theirs in _ADDING.items()},
    **{getattr(SUBTRACT.subtasks, n): getattr(SUBTRACT.subtasks, n) for n in _ADDING},
    SIGN: "SGN",
    OPERATOR: "OPR",
}
"""Their names for the sub-tasks they have a name for; ours for subtraction are theirs."""

_TRISTATE = {ADD.name: "ST", SUBTRACT.name: "MT"}

_FARTHEST = {"Math.Add": 5, "Math.Sub": 4, "Math.Neg": 4}
"""Their highest complexity: a carry that passes four columns or more, a borrow three."""


class TaggedNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node as their files hold it."""

    position: int
    layer: int
    is_head: bool
    num: int
    """The head; 0 for an MLP."""
    tags: list[str]


def behaviors(engine: Engine, questions: Questions) -> list[TaggedNode]:
    """What fails without each node that any question needs, and where heads look."""
    nodes, names = all_nodes(engine.config), engine.layout.answer_names
    outcomes = engine.answers(questions, [UNCHANGED, *(node.ablated() for node in nodes)])
    correct, looks = outcomes.correct[0], _attention(engine, questions)
    kinds, levels = complexity(questions)
    tagged = []
    for node, still, right in zip(nodes, outcomes.correct[1:], outcomes.right[1:], strict=True):
        failing = correct & ~still
        if not failing.any():
            continue
        hit = [name[1:] for name, lost in zip(names, ~right[failing].all(0), strict=True) if lost]
        tags = [f"Fail%:{100 * failing.sum() / correct.sum():.0f}", f"Impact:A{''.join(hit)}"]
        tags += _complexity_tags(kinds[failing], levels[failing])
        tagged.append(_tagged(node, tags + looks.get(node, [])))
    return tagged


def features(dissection: Dissection) -> list[TaggedNode]:
    """What each node is for, where the search found it."""
    found: dict[str, list[str]] = {}
    for p in dissection.subtasks.purposes if dissection.subtasks else []:
        states = [_TRISTATE[one.name] for one in dissection.model.layout.operation.each_part]
        alone: list[tuple[int, ...]] = [(head,) for head in p.heads]
        for kind in states if p.kind == STATE else [_ALGO.get(k) for k in p.kind.split("/")]:
            for heads in alone or [()]:
                node = Node(p.row, p.layer, heads)
                tag = f"Algo:A{p.column}.{kind}"
                if kind and tag not in found.setdefault(str(node), []):
                    found[str(node)].append(tag)
    return [_tagged(Node.parse(name), tags) for name, tags in found.items() if tags]


def complexity(questions: Questions) -> tuple[Array, Array]:
    """The kind of each question (Math.Add, ..) and how far a carry or borrow travels in it."""
    written = Columns.of(questions, np.zeros(len(questions), dtype=bool))
    signed = np.broadcast_to(written.signed, len(questions))
    kinds = np.where(signed, np.where(questions.negative, "Math.Neg", "Math.Sub"), "Math.Add")
    travelled = np.where(written.carry_in, written.look_ahead + 1, 0)
    # Zeros in front of both numbers pass a borrow on, but there is nothing to compute.
    used = (questions.first > 0) | (questions.second > 0)
    highest = written.digits - used[:, ::-1].argmax(1)
    beyond = np.arange(written.digits + 1) > highest[:, None]
    farthest = np.where(beyond & signed[:, None], 0, travelled).max(1)
    return kinds, np.minimum(farthest, [_FARTHEST[kind] for kind in kinds])


def _complexity_tags(kinds: Array, levels: Array) -> list[str]:
    tags = []
    for kind, letter in (("Math.Add", "S"), ("Math.Sub", "M"), ("Math.Neg", "N")):
        seen: Bool[Array, " batch"] = kinds == kind
        if seen.any():
            tags.append(f"{kind}:{letter}{''.join(map(str, np.unique(levels[seen])))}")
    return tags


def _attention(engine: Engine, questions: Questions) -> dict[Node, list[str]]:
    """The positions that each head attends to most, at every row that can reach an answer."""
    sums: list[Array] = [np.zeros(1)] * engine.config.layers
    for state in engine.captures(questions):
        shares = [layer.scores.softmax(-1).sum(0).numpy() for layer in state.layers]
        sums = [total + share for total, share in zip(sums, shares, strict=True)]
    looks = {}
    for layer, total in enumerate(sums):
        rows = len(total)
        for row, head in np.ndindex(*total.shape[:2]):
            share = total[row, head] / len(questions)
            most = [p for p in np.argsort(-share)[:TOP_TOKENS] if share[p] >= LEAST_SHARE]
            node = Node(engine.layout.answer_rows.stop - rows + row, layer, (head,))
            looks[node] = [f"Attn:P{p}={100 * share[p]:.0f}" for p in most]
    return looks


def _tagged(node: Node, tags: list[str]) -> TaggedNode:
    return TaggedNode(
        position=node.row,
        layer=node.layer,
        is_head=bool(node.heads),
        num=node.head or 0,
        tags=tags,
    )
