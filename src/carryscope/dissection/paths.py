"""Paths: a sub-task that is computed at one row and read at another.

In: an engine and questions. Out: `PathsFinding`, for models of two layers or more.

What a layer writes at a row is exchanged between questions, but only as one later reader sees it:
the heads of a later layer at a row, or an MLP. All else stays. What the answer digit then follows
is what that path carries, found as in the sub-task search. A path is reported only if

- more than half of the pairs follow the variable, Wilson interval included,
- it beats the best other row from which the same heads read (an MLP reads only its own row),
- it beats every other hypothesis, where the two predict different digits.

In a two-layer adder the row of D'2 can compute the state of column 2, and heads of layer 1 fetch it
for A5, A4 and A3. A digit that takes states from several rows resolves a *tri-state cascade*, as
the paper's authors describe it (arXiv 2402.02619).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from carryscope.core.evidence import Share
from carryscope.core.progress import Advance, unheard
from carryscope.core.words import listed, with_interval
from carryscope.dissection.engine import Engine
from carryscope.dissection.hypotheses import CARRY_IN, CARRY_OUT, DIGIT, Hypothesis, Pairs, in_words
from carryscope.dissection.interchange import Interchange
from carryscope.dissection.interventions import Into, Node, Route
from carryscope.dissection.samples import Samples
from carryscope.model.config import ModelConfig
from carryscope.task.questions import Questions
from carryscope.task.tokens import Format

PATH_PAIRS = 2000
"""Pairs of questions, each with its own share of nines, as in the sub-task search."""

FETCHED: tuple[Into, ...] = ("key", "value")
"""How a head reads another row."""


class Path(NamedTuple):
    """From what some nodes write to one reader of it."""

    senders: tuple[Node, ...]
    receiver: Node
    into: tuple[Into, ...] = ()

    def route(self, source: Questions) -> Route:
        """The exchange along this path."""
        return Route(self.senders, self.receiver, source, self.into)

    @property
    def row(self) -> int:
        """The row of the first sender."""
        return self.senders[0].row

    @property
    def fetches(self) -> bool:
        """Whether heads read another row than their own."""
        return self.into == FETCHED


class PathEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What one path is found to carry for one answer digit."""

    row: int
    token: str
    """The token at the row where it is computed."""
    layer: int
    reader: str
    """The node that reads it: `P13.L1.H0+H1+H2`, or an MLP."""
    fetched: bool
    """Whether it is read from another row."""
    digit: str
    variable: str
    kind: str
    column: int
    follows: Share
    """Pairs that land on the predicted digit."""
    control: str | None
    control_follows: Share | None
    """The best other row that the same heads read, on the same pairs; none for an MLP."""
    control_variable: str
    follows_this: Share
    follows_control: Share
    """The hypothesis that comes nearest, on the pairs where the two differ."""
    senders: dict[str, Share]
    """The same if only one part of the layer is exchanged: a head, or the MLP."""
    readers: dict[str, Share]
    """The same if only one head reads the exchange,"""
    into: dict[str, Share]
    """and if only its query, key or value does."""


class Fetch(msgspec.Struct, frozen=True, kw_only=True):
    """What the row of one answer digit fetches from all question rows at once."""

    digit: str
    variable: str | None
    """`carry_in(3)`, or `carry_out(2)` if its own row reads the columns above; none if nothing."""
    follows: Share
    """Pairs that land on the predicted digit; of the arriving carry, if nothing is found."""
    tokens: list[str]
    """The question tokens at which single columns are found for it."""

    @property
    def cascade(self) -> bool:
        """Whether the digit combines what several rows have computed into one carry."""
        carry = (self.variable or "").startswith((CARRY_IN, CARRY_OUT))
        return carry and len(self.tokens) > 1


class PathsFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Paths through the layers."""

    pairs: int
    tests: int
    """Hypotheses tested, over all paths and digits."""
    paths: list[PathEffect]
    carries: list[Fetch]
    """Highest digit first, and before it the sign, if there is one; A0 has no carry."""
    statement: str


def study_paths(engine: Engine, samples: Samples, advance: Advance = unheard) -> PathsFinding:
    """Test every hypothesis on every path, then take those that are found apart."""
    base, source = (samples.nines_rich(f"paths {name}", PATH_PAIRS) for name in ("base", "source"))
    swaps: Interchange[Path] = Interchange(engine, Pairs(base, source), advance, resolved=True)
    config, candidates = engine.config, list(all_paths(engine.config))
    digits = [k for k in reversed(swaps.places) if k and swaps.predictions[k]]
    carries = {k: _whole_question(config, k) for k in digits}
    swaps.run({path: path.route(source) for path in [*candidates, *carries.values()]})
    found = {
        (path, k): h
        for path in candidates
        for k in swaps.reached(path.receiver)
        if (h := _carried(swaps, path, k, _others(candidates, path)))
    }
    apart = {piece for path, _ in found for pieces in _pieces(path) for piece in pieces.values()}
    swaps.run({path: path.route(source) for path in apart if path not in swaps.said})
    paths = [_effect(swaps, candidates, path, h, config.layout) for (path, _), h in found.items()]
    fetches = [_fetch(swaps, paths, path, k, config) for k, path in carries.items()]
    return PathsFinding(
        pairs=PATH_PAIRS,
        tests=swaps.tests,
        paths=paths,
        carries=fetches,
        statement=_statement(paths, fetches, config),
    )


def all_paths(config: ModelConfig) -> Iterator[Path]:
    """From each layer at each row to its own MLP, and to all heads and MLPs of later layers."""
    heads, answers = tuple(range(config.heads)), config.layout.answer_rows
    last = config.layers - 1
    for layer in range(config.layers):
        for row in range(answers.stop) if layer < last else answers:
            attention = Node(row, layer, heads)
            senders = (attention, Node(row, layer)) if config.d_mlp else (attention,)
            if config.d_mlp:
                yield Path((attention,), Node(row, layer))
            for later in range(layer + 1, config.layers):
                for reader in range(row, answers.stop):
                    if later < last or reader in answers:
                        into = FETCHED if reader > row else ("query", *FETCHED)
                        yield Path(senders, Node(reader, later, heads), into)
                if config.d_mlp and (later < last or row in answers):
                    yield Path(senders, Node(row, later))


def _whole_question(config: ModelConfig, digit: int) -> Path:
    """From all that is computed at the question's rows to the last heads at a digit's row."""
    heads = tuple(range(config.heads))
    parts = [heads, ()] if config.d_mlp else [heads]
    senders = tuple(
        Node(row, layer, part)
        for row in range(config.layout.first_row)
        for layer in range(config.layers - 1)
        for part in parts
    )
    row = config.layout.answer_rows.stop - 1 - digit
    return Path(senders, Node(row, config.layers - 1, heads), FETCHED)


def _others(candidates: list[Path], path: Path) -> list[Path]:
    """The same reader and other rows: the controls of a path into heads."""
    if not path.into:
        return []
    return [p for p in candidates if p.receiver == path.receiver and p.into and p.row != path.row]


def _carried(
    swaps: Interchange[Path], path: Path, digit: int, controls: list[Path]
) -> Hypothesis | None:
    """What a path carries for a digit: the best hypothesis that beats all its controls."""
    if not swaps.does_anything(path, [digit]):
        return None
    passed = {}
    for h in swaps.strong(path, digit):
        follows, control = swaps.follows(path, h), swaps.best(h, controls)
        beaten = control is None or follows.low > control[1].high
        if beaten and swaps.nearest_rival(path, h).margin > 0:
            passed[h] = follows.estimate
    return max(passed, key=lambda h: passed[h], default=None)


def _pieces(path: Path) -> tuple[dict[str, Path], dict[str, Path], dict[str, Path]]:
    """A path by single senders, by single readers, and by what they read through."""
    parts = [
        node._replace(heads=one)
        for node in path.senders
        for one in [node.heads[i : i + 1] for i in range(len(node.heads) or 1)]
    ]
    heads = path.receiver.heads
    return (
        {str(part).rpartition(".")[2]: path._replace(senders=(part,)) for part in parts},
        {f"H{h}": path._replace(receiver=path.receiver._replace(heads=(h,))) for h in heads},
        {name: path._replace(into=(name,)) for name in path.into},
    )


def _effect(
    swaps: Interchange[Path], candidates: list[Path], path: Path, h: Hypothesis, layout: Format
) -> PathEffect:
    control = swaps.best(h, _others(candidates, path))
    rival = swaps.nearest_rival(path, h)
    senders, readers, into = (
        {name: swaps.follows(piece, h) for name, piece in pieces.items()}
        for pieces in _pieces(path)
    )
    return PathEffect(
        row=path.row,
        token=layout.position_names[path.row],
        layer=path.senders[0].layer,
        reader=str(path.receiver),
        fetched=path.fetches,
        digit=f"A{h.digit}",
        variable=str(h),
        kind=h.kind,
        column=h.column,
        follows=swaps.follows(path, h),
        control=f"P{control[0].row}" if control else None,
        control_follows=control[1] if control else None,
        control_variable=rival.name,
        follows_this=rival.follows_this,
        follows_control=rival.follows_rival,
        senders=senders,
        readers=readers,
        into=into,
    )


def _fetch(
    swaps: Interchange[Path], paths: list[PathEffect], path: Path, digit: int, config: ModelConfig
) -> Fetch:
    question = config.layout.position_names[: config.layout.first_row]
    base = config.layout.operation.subtasks.base
    ours = {p.token for p in paths if p.digit == f"A{digit}" and p.fetched and p.kind != base}
    found = _carried(swaps, path, digit, [])
    arriving = Hypothesis(CARRY_IN if digit <= config.digits else DIGIT, digit, digit)
    return Fetch(
        digit=f"A{digit}",
        variable=str(found) if found else None,
        follows=swaps.follows(path, found or arriving),
        tokens=[name for name in question if name in ours],
    )


def _statement(paths: list[PathEffect], fetches: list[Fetch], config: ModelConfig) -> str:
    """What is computed where, and which digits combine it."""
    computed: dict[str, dict[str, None]] = {}
    for p in paths:
        if p.fetched and p.row < config.layout.first_row:
            what = _carried_in_words(p, config)
            computed.setdefault(f"Layer {p.layer} at {p.token}", {})[what] = None
    if not computed:
        return "No later layer was found to fetch a sub-task that is computed at a question token."
    said = [f"{where} computes {listed([*what])}." for where, what in computed.items()]
    cascades = [fetch for fetch in fetches if fetch.cascade]
    if not cascades:
        return " ".join([*said, "No digit was found to combine several: no tri-state cascade."])
    least = min(cascades, key=lambda fetch: fetch.follows.estimate).follows
    said.append(f"Several of them are combined for {listed([c.digit for c in cascades])}:")
    said.append(f"a tri-state cascade. It decides the carry in {with_interval(least)} of the pairs")
    said.append("or more.")
    return " ".join(said)


def _carried_in_words(path: PathEffect, config: ModelConfig) -> str:
    """What a path carries. The carry that arrives at a column left the one below."""
    kind, column = path.kind, path.column
    if kind == CARRY_IN:
        kind, column = CARRY_OUT, column - 1
    return in_words(config.layout.operation)[kind].format(f"column {column}")
