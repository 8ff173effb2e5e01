"""An algorithm of the user's own, from a Python file, checked before use.

In: `file.py:name`. Out: an `Algorithm`, or an error in one line that says what is wrong.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from carryscope.core.errors import CallError
from carryscope.dissection.samples import Samples
from carryscope.task.columns import Columns
from carryscope.task.operation import BASE, Array
from carryscope.verification.algorithms import Algorithm

PROBES = 2000
"""Questions with many propagating columns, on which an algorithm is tried before use."""


def load_algorithm(place: str, digits: int) -> Algorithm:
    """The algorithm `name` in `file.py`, given as `file.py:name`.

    This runs the file, so use only files you trust. `name` is a function from `Columns` to answer
    digits, units first, or an `Algorithm`, which can also name its variables. This example never
    passes a carry on:

        import numpy as np

        def no_cascades(columns):
            carry = np.pad(columns.make_carry, ((0, 0), (1, 0)))
            own = np.pad(columns.base_add, ((0, 0), (0, 1)))
            return (own + carry) % 10
    """
    file, colon, name = place.rpartition(":")
    if not (colon and file and name):
        raise CallError(f"An algorithm is given as file.py:name. Got '{place}'.")
    if not Path(file).is_file():
        raise CallError(f"There is no file {file}. An algorithm is given as file.py:name.")
    try:
        defined = runpy.run_path(file, run_name="carryscope_algorithm")
    except (Exception, SystemExit) as error:
        raise CallError(f"{file} cannot be run: {_line(error)}.") from error
    if name not in defined:
        ours = [key for key, value in defined.items() if callable(value) and key[:1] != "_"]
        raise CallError(f"{file} has no '{name}'. It has: {', '.join(ours) or 'no function'}.")
    return own_algorithm(defined[name], digits, name=name)


def own_algorithm(given: Any, digits: int, *, name: str = "own algorithm") -> Algorithm:
    """An algorithm from a function or an `Algorithm`, tried on questions before it is used.

    The only variable of a function is its answer.
    """
    if isinstance(given, Algorithm):
        stated, name = given, given.name
    elif callable(given):
        about = (getattr(given, "__doc__", None) or "Given by the user.").strip().splitlines()[0]
        stated = Algorithm(
            name=name, about=about, answer=given, variables=lambda c: {"answer": given(c)}
        )
    else:
        raise CallError(
            f"{name} must be a function from columns to answer digits, or an Algorithm. "
            f"Got {_kind(given)}."
        )
    checked = replace(
        stated,
        answer=lambda columns: _answer(stated.answer, columns, name),
        variables=lambda columns: _variables(stated.variables, columns, name),
    )
    _try(checked, digits)
    return checked


def _try(algorithm: Algorithm, digits: int) -> None:
    """Refuse what is no algorithm."""
    name = algorithm.name
    columns = Columns.of(Samples(digits, 0).nines_rich("probes", PROBES))
    said = algorithm.answer(columns)
    if (algorithm.answer(replace(columns, sums=columns.sums[::-2])) != said[::-2]).any():
        raise CallError(
            f"{name} must answer each question by itself, and the same each time. Got different "
            "answers when the questions came in another order."
        )
    if (said == said[0]).all():
        raise CallError(f"{name} must depend on the question. Got the same answer to all of them.")
    algorithm.variables(columns)


def _answer(function: Callable[[Columns], Any], columns: Columns, name: str) -> Array:
    got = _array(_called(function, columns, name), columns, f"The answer of {name}")
    beyond = got[(got < 0) | (got >= BASE)]
    if beyond.size:
        raise CallError(
            f"The answer of {name} must have digits from 0 to {BASE - 1}. Got {beyond[0]}."
        )
    return got


def _variables(function: Callable[[Columns], Any], columns: Columns, name: str) -> dict[str, Array]:
    found = _called(function, columns, name)
    if not isinstance(found, Mapping) or not found:
        raise CallError(
            f"The variables of {name} must be a dict of arrays, at least one. Got {_kind(found)}."
        )
    return {
        str(key): _array(values, columns, f"Variable '{key}' of {name}")
        for key, values in found.items()
    }


def _called(function: Callable[[Columns], Any], columns: Columns, name: str) -> Any:
    """Call the user's code with a copy of the sums that does not overflow in products."""
    sums = columns.sums.astype(np.int64)
    sums.setflags(write=False)
    try:
        return function(replace(columns, sums=sums))
    except (Exception, SystemExit) as error:
        raise CallError(f"{name} failed on {len(sums):,} questions: {_line(error)}.") from error


def _array(given: Any, columns: Columns, what: str) -> Array:
    wanted = (len(columns.sums), columns.digits + 1)
    try:
        values = np.asarray(given)
    except Exception as error:
        raise CallError(f"{what} must be an array. Got {_kind(given)}.") from error
    if values.shape != wanted:
        raise CallError(
            f"{what} must be an array of shape {wanted}: questions, and digits A0 to "
            f"A{columns.digits}. Got {_kind(given)} of shape {values.shape}."
        )
    if not (np.issubdtype(values.dtype, np.integer) or values.dtype == bool):
        raise CallError(f"{what} must be of whole numbers. Got {values.dtype}.")
    return values.astype(np.int64)


def _line(error: BaseException) -> str:
    """An error in one line."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _kind(thing: Any) -> str:
    return f"a {type(thing).__name__}"
