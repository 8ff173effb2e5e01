"""An algorithm of the user's own, from a Python file, checked before use.

In: `file.py:name`. Out: an `Algorithm`, or an error in one line that says what is wrong.
"""

from __future__ import annotations

import contextlib
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from carryscope.core.errors import CallError
from carryscope.dissection.samples import Samples
from carryscope.task.columns import Columns
from carryscope.task.operation import ADD, BASE, Array, Operation
from carryscope.verification.algorithms import Algorithm

PROBES = 2000
"""Questions with many propagating columns, on which an algorithm is tried before use."""


def load_algorithm(place: str, digits: int, operation: Operation = ADD) -> Algorithm:
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
    with _contained(f"{file} cannot be run"):
        defined = runpy.run_path(file, run_name="carryscope_algorithm")
    if name not in defined:
        ours = [key for key, value in defined.items() if callable(value) and key[:1] != "_"]
        raise CallError(f"{file} has no '{name}'. It has: {', '.join(ours) or 'no function'}.")
    return own_algorithm(defined[name], digits, operation, name=name)


def own_algorithm(
    given: Any, digits: int, operation: Operation = ADD, *, name: str = "own algorithm"
) -> Algorithm:
    """An algorithm from a function or an `Algorithm`, tried on questions before it is used.

    The only variable of a function is its answer.
    """
    if not isinstance(given, Algorithm) and not callable(given):
        raise CallError(
            f"{name} must be a function from columns to answer digits, or an Algorithm. "
            f"Got {_kind(given)}."
        )
    if not isinstance(given, Algorithm):
        about = (getattr(given, "__doc__", None) or "Given by the user.").strip().splitlines()[0]
        function = given
        given = Algorithm(
            name=name, about=about, answer=function, variables=lambda c: {"answer": function(c)}
        )
    stated: Algorithm = given
    checked = replace(
        stated,
        answer=lambda columns: _answer(stated, columns),
        variables=lambda columns: _variables(stated, columns),
    )
    columns = Columns.of(Samples(digits, 0, operation).nines_rich("probes", PROBES))
    said = checked.answer(columns)
    if (checked.answer(columns[::-2]) != said[::-2]).any():
        raise CallError(
            f"{stated.name} must answer each question by itself, and the same each time. Got "
            "different answers when the questions came in another order."
        )
    if (said == said[0]).all():
        raise CallError(
            f"{stated.name} must depend on the question. Got the same answer to all of them."
        )
    checked.variables(columns)
    return checked


def _answer(algorithm: Algorithm, columns: Columns) -> Array:
    what = f"The answer of {algorithm.name}"
    got = _array(_called(algorithm.answer, columns, algorithm.name), columns, what)
    beyond = got[(got < 0) | (got >= BASE)]
    if beyond.size:
        raise CallError(f"{what} must have digits from 0 to {BASE - 1}. Got {beyond[0]}.")
    return got


def _variables(algorithm: Algorithm, columns: Columns) -> dict[str, Array]:
    name = algorithm.name
    found = _called(algorithm.variables, columns, name)
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
    with _contained(f"{name} failed on {len(sums):,} questions"):
        return function(replace(columns, sums=sums))


@contextlib.contextmanager
def _contained(failed: str) -> Iterator[None]:
    """Run the user's code: what it prints is no result, and it cannot leave the directory."""
    try:
        with contextlib.chdir("."), contextlib.redirect_stdout(sys.stderr):
            yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise CallError(f"{failed}: {_line(error)}.") from error


def _array(given: Any, columns: Columns, what: str) -> Array:
    """The user's values as whole numbers, one for each question and answer digit."""
    wanted = (len(columns.sums), columns.digits + 1)
    try:
        values = np.asarray(given)
    except Exception as error:
        raise CallError(f"{what} must be an array. Got {_kind(given)}.") from error
    if values.shape != wanted or values.dtype.kind not in "iub":
        raise CallError(
            f"{what} must be an array of whole numbers of shape {wanted}: questions, and digits "
            f"A0 to A{columns.digits}. Got {_kind(given)} of {values.dtype}, shape {values.shape}."
        )
    return values.astype(np.int64)


def _line(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")


def _kind(thing: Any) -> str:
    return f"a {type(thing).__name__}"
