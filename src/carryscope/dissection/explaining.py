"""Which columns the heads read at the row of a digit, and why a digit is wrong.

In: attention patterns of the answer rows. Out: arrays over questions, answer digits and columns,
units first; for a wrong digit an `Explanation`, with a sentence:

    A3 is 0 and should be 1: the carry is made in column 0, and to write A3 the heads read columns
    3, 2 and 1. No head reads column 0, so the model wrote A3 as if no carry arrived.

It says what attention shows. That a head reads a column does not prove that the model uses it.
With several layers a row can also use what lower layers brought to other positions, so nothing
is concluded from what its own heads read. Nothing here needs torch.
"""

from __future__ import annotations

import msgspec
import numpy as np
from jaxtyping import Bool, Float

from carryscope.core.words import brief, listed
from carryscope.dissection.interventions import head_name
from carryscope.model.config import ModelConfig
from carryscope.task.columns import Columns
from carryscope.task.operation import Array, State
from carryscope.task.tokens import Format

READS = 0.5
"""A head reads a column if the column's two tokens get more than half of its attention."""

NOTICED = 0.01
"""Attention to an unread column is mentioned from 1 % on."""


def column_shares(
    patterns: Float[Array, "*batch position"], layout: Format
) -> Float[Array, "*batch column"]:
    """The attention that each column gets: its token in the first number and in the second."""
    n = layout.digits
    both = patterns[..., :n] + patterns[..., n + 1 : 2 * n + 1]
    shares: Array = both[..., ::-1]
    return shares


def digit_shares(
    patterns: Float[Array, "batch layer head answer position"], layout: Format
) -> Float[Array, "batch layer head digit column"]:
    """The same at the row of each answer digit, A0 first; a sign's row is left out."""
    shares: Array = column_shares(patterns, layout)[:, :, :, ::-1][:, :, :, : layout.digits + 1]
    return shares


def decision_read(
    columns: Columns, shares: Float[Array, "batch layer head digit column"]
) -> Bool[Array, "batch digit"]:
    """Whether some head reads the column that decides the carry into each digit.

    False at the units, which receive no carry.
    """
    read = (shares > READS).any(axis=(1, 2))
    deciding = columns.deciding[..., None]
    found = np.take_along_axis(read, deciding.clip(min=0), axis=-1) & (deciding >= 0)
    return np.asarray(found[..., 0])


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why one answer digit is wrong, as far as attention shows it."""

    deciding: int | None
    """The column that decides which carry arrives; null for the units."""
    carrying: bool
    """Whether one does."""
    read: dict[int, list[str]]
    """The columns that are read at this row, highest first, and the heads that read them."""
    blind: list[int]
    """Columns that the digit needs and no head reads. It needs its own and those below it, down
    to the one that decides."""
    glance: float
    """The largest share of a head's attention that a blind column still gets."""
    assumed: bool | None
    """The digit would be right if a carry arrived, or if none did; null if it fits neither."""
    misled: bool
    """Whether it is right if the model reads the true digits before it, not its own."""
    sentence: str


def explain(
    columns: Columns,
    digit: int,
    said: str,
    shares: Float[Array, "layer head column"],
    config: ModelConfig,
    *,
    misled: bool,
) -> Explanation:
    """Explain one wrong answer digit of one question. `shares` is the attention of its row."""
    carrying = bool(columns.carry_in[0, digit])
    deciding = int(columns.deciding[0, digit]) if digit else None
    lowest = digit if deciding is None else deciding
    needed = [column for column in range(lowest, digit + 1) if column < columns.digits]
    read = {
        int(column): [
            head_name(int(layer), int(head), config.layers) for layer, head in np.argwhere(reading)
        ]
        for column in reversed(range(columns.digits))
        if (reading := shares[:, :, column] > READS).any()
    }
    blind = [column for column in reversed(needed) if column not in read]
    other = columns.answer_digit(digit, ~columns.carry_in[:, digit])[0]
    found = Explanation(
        deciding=deciding,
        carrying=carrying,
        read=read,
        blind=blind,
        glance=float(shares[:, :, blind].max()) if blind else 0.0,
        assumed=not carrying if said == str(other) else None,
        misled=misled,
        sentence="",
    )
    return msgspec.structs.replace(found, sentence=_sentence(found, columns, digit, said, config))


def _sentence(
    found: Explanation, columns: Columns, digit: int, said: str, config: ModelConfig
) -> str:
    name = f"A{digit}"
    truth = columns.answer_digit(digit, columns.carry_in[:, digit])[0]
    wrong = f"{name} is {said} and should be {truth}"
    if found.misled:
        return f"{wrong}: a digit before it is wrong. After the true ones the model writes {truth}."
    reads = (
        f"the heads read {column_words(list(found.read))}"
        if found.read
        else "no head reads a column"
    )
    origin = _origin(found, columns, digit)
    return (
        f"{wrong}: {origin}, and to write {name} {reads}. "
        f"{_conclusion(found, columns, digit, config)}"
    )


def _origin(found: Explanation, columns: Columns, digit: int) -> str:
    """Where the carry comes from, or why there is none."""
    words, decider = columns.operation.words, found.deciding
    if decider is None:
        return f"no {words.carry} can arrive at column 0"
    if found.carrying:
        return f"the {words.carry} is made in column {decider}"
    state, below = State(int(columns.state[0, decider])), [decider]
    if state is State.PROPAGATE:
        below = list(reversed(range(digit)))
    if columns.negative is not None and columns.negative[0]:  # said of the question as written
        state = State(State.GENERATE - state)
    does = (words.columns if len(below) > 1 else words.column)[state]
    return f"no {words.carry} arrives, because {column_words(below)} {does}"


def _conclusion(found: Explanation, columns: Columns, digit: int, config: ModelConfig) -> str:
    """What follows from what the heads read; with several layers, only what the model wrote."""
    name, carry = f"A{digit}", columns.operation.words.carry
    wrote = f"the model wrote {name} as if {'a' if found.assumed else 'no'} {carry} arrived"
    if found.assumed is None:
        wrote = f"the digit is wrong with a {carry} and without"
    if config.layers > 1:
        return f"{wrote[:1].upper()}{wrote[1:]}. Lower layers may bring more to its row."
    if not found.read:
        return f"{name} needs {column_words(found.blind)}."
    if found.blind:
        glance = f" (at most {brief(found.glance)} of a head's attention)"
        unread = f"No head reads {column_words(found.blind)}{glance * (found.glance >= NOTICED)}"
        if digit in found.blind:
            return f"{unread}, which {name} needs."
        return f"{unread}, {'but' if found.assumed is None else 'so'} {wrote}."
    if found.deciding is None or found.assumed is None:
        return f"The heads read every column that {name} needs, but {wrote}."
    readers = found.read[found.deciding]
    verb = "read" if len(readers) > 1 else "reads"
    return f"{listed(readers)} {verb} column {found.deciding} without effect: {wrote}."


def column_words(columns: list[int]) -> str:
    """ "column 0", "columns 3, 2 and 1", "no column"."""
    if not columns:
        return "no column"
    return f"column{'s' * (len(columns) > 1)} {listed([str(column) for column in columns])}"
