"""A function of the user's own, from a Python file: in this process, or in one of its own.

In: `file.py:name`. Out: the function. In a process of its own it can neither end the program nor
print into its results, and it has a time limit.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import runpy
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from carryscope.core.errors import CallError
from carryscope.core.processes import LocalProcess, reason
from carryscope.task.columns import Columns

SECONDS, SECONDS_A_QUESTION = 30.0, 0.01
"""How long a function in a process of its own may take: in any case, and more for each question."""

Function = Callable[[Columns], Any]


def load_function(place: str) -> Function:
    """The function `name` of `file.py`, given as `file.py:name`.

    This runs the file, so use only files you trust.
    """
    file, colon, name = place.rpartition(":")
    if not (colon and file and name):
        raise CallError(f"An algorithm is given as file.py:name. Got '{place}'.")
    if not os.path.isfile(file):  # noqa: PTH113 - a name may be too long for pathlib
        raise CallError(f"There is no file {file}. An algorithm is given as file.py:name.")
    with contained(f"{file} cannot be run"):
        defined = runpy.run_path(file, run_name="carryscope_algorithm")
    functions = {key: value for key, value in defined.items() if callable(value)}
    if name not in functions:
        ours = [key for key in functions if key[:1] != "_"]
        raise CallError(f"{file} has no function '{name}'. It has: {', '.join(ours) or 'none'}.")
    found: Function = functions[name]
    return found


def described(function: Function) -> tuple[str, str]:
    """The name of a function, and the first line of what it says about itself."""
    with contained("The algorithm has no name"):
        about = str(getattr(function, "__doc__", None) or "").strip() or "Given by the user."
        return str(getattr(function, "__name__", "own algorithm")), about.splitlines()[0]


@contextlib.contextmanager
def contained(failed: str) -> Iterator[None]:
    """Run the user's code: what it prints is no result, and it cannot leave the directory."""
    try:
        with contextlib.chdir("."), contextlib.redirect_stdout(sys.stderr):
            yield
    except (KeyboardInterrupt, CallError):
        raise
    except BaseException as error:
        raise CallError(f"{failed}: {reason(error)}.") from error


@contextlib.contextmanager
def apart(place: str | None) -> Iterator[Function | None]:
    """The function at a place, if one is named, in a process of its own."""
    if place is None:
        yield None
        return
    process = LocalProcess(1, pickle.dumps(place))

    def call(step: Callable[[str, Any], Any], item: Any, seconds: float | None) -> Any:
        try:
            worked, result = process.made(pickle.dumps((step, item)), seconds)
        except TimeoutError as error:
            raise CallError(
                f"{place} must end within {seconds:.0f} seconds. It does not."
            ) from error
        except (EOFError, OSError) as error:
            raise CallError(f"{place} must not end its process. It does.") from error
        if not worked:
            raise result
        return result

    def function(columns: Columns) -> Any:
        return call(_answered, columns, SECONDS + SECONDS_A_QUESTION * len(columns.sums))

    try:
        call(_ready, None, None)
        function.__name__, function.__doc__ = call(_described, None, SECONDS)
        yield function
    finally:
        process.kill()


_loaded = lru_cache(1)(load_function)


def _ready(*_: object) -> None:
    """What is printed in the process is no result, whoever prints it."""
    os.dup2(2, 1)


def _described(place: str, _: None) -> tuple[str, str]:
    return described(_loaded(place))


def _answered(place: str, columns: Columns) -> Any:
    return np.asarray(_loaded(place)(columns))
