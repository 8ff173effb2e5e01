"""The command line: which command lives where, and how a call ends.

Commands are named here and imported when called, so that `carryscope --help` answers at once.
Exit codes: 0 done, 1 the work failed, 2 the call was wrong.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from carryscope.core.errors import CallError, WorkError, command, program
from carryscope.core.machine import check_addresses
from carryscope.core.progress import Stopped
from carryscope.core.words import visible
from carryscope.version import __version__

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError

LONGEST_LINE = 2000
"""Characters of an error at most: a sum may have a million digits."""

TOO_LITTLE_MEMORY = "There is too little memory for this."

NO_MEMORY = ("allocate memory", "failed to map segment")
"""How torch, and the system when it loads a library, say so."""

COMMANDS = {
    "study": ("study:study", "Train a model and see what it learned: the place to start."),
    "train": ("train:train", "Train a model, or continue a training that was stopped."),
    "ask": ("ask:ask", "Ask a model a sum or a difference and see each digit of its answer."),
    "dissect": ("findings:dissect", "Find out how a model adds: what each part of it carries."),
    "risk": ("findings:risk", "Measure how often a model fails over all questions, and where."),
    "faithful": ("findings:faithful", "Test whether a stated algorithm is the one a model runs."),
    "certify": ("findings:certify", "Prove bounds on a model's accuracy over every question."),
    "repair": ("findings:repair", "Repair a model that fails, in a copy, and prove the result."),
    "report": ("pages:report", "Write the report of a run: one page for any browser."),
    "explorer": ("pages:explorer", "Write a page in which a model can be asked and taken apart."),
    "figures": ("pages:figures", "Write the figures of a run's findings, for a page or a paper."),
    "compare": ("pages:compare", "Write a page that lays runs over each other."),
    "runs": ("pages:runs", "Write an index of a directory of runs."),
    "sweep": ("sweep:sweep", "Train and study many seeds side by side: do they add the same way?"),
    "presets": ("train:presets", "List the training recipes."),
    "sites": ("exchange:sites", "List the places in a model that can be read or changed."),
    "import": ("exchange:import_", "Make a run from a TransformerLens state dict."),
    "export": ("exchange:export", "Write a run's weights as a TransformerLens state dict."),
}


def make_app(called: str | None) -> App:
    """The command line. The command that is called is described by its own docstring."""
    from cyclopts import App, Parameter

    from carryscope.cli.options import converted

    app = App(
        name=program(),
        version=__version__,
        help=(
            "Train small transformers to add, see exactly how they do it, know where they "
            f"fail.\n\nTry: {program()} ask 445+555"
        ),
        default_parameter=Parameter(negative=(), converter=converted),
        suppress_keyboard_interrupt=False,
    )
    for place, (name, (where, about)) in enumerate(COMMANDS.items()):
        help_ = None if name == called else about
        app.command(f"carryscope.cli.{where}", name=name, help=help_, sort_key=place)
    return app


def main() -> None:
    """The console script. Where it was started without an output, it prints into nothing."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str], other: App | None = None) -> int:
    """Carry out one call and return its exit code. What went wrong is one line.

    `paper` and `benchmarks` are other programs whose calls end in the same way.
    """
    from cyclopts import CycloptsError

    if arguments and arguments[0] == "help":
        arguments = [*arguments[1:2], "--help"]
    try:
        check_addresses()
        if other is None:
            _check_command(arguments)
        app = other or make_app(arguments[0] if arguments else None)
        app(arguments, exit_on_error=False, print_error=False, result_action="return_none")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        _flush_nothing()
    except (CallError, CycloptsError) as error:
        return _failed(error if isinstance(error, CallError) else _about_call(error), 2)
    except Stopped as stop:
        return _failed(f"{stop} Continue with: {command(*arguments)}", 1)
    except (WorkError, OSError, MemoryError) as error:
        _flush_nothing() if isinstance(error, OSError) else None
        return _failed(error if str(error) else TOO_LITTLE_MEMORY, 1)
    except (RuntimeError, ImportError) as error:
        if not any(words in f"{error} {error.__cause__}" for words in NO_MEMORY):
            raise
        return _failed(TOO_LITTLE_MEMORY, 1)
    except KeyboardInterrupt:
        return _failed("Interrupted.", 1)
    return 0


def _flush_nothing() -> None:
    """What could not be printed is not tried again on the way out."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_command(arguments: Sequence[str]) -> None:
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        commands = ", ".join(COMMANDS)
        raise CallError(f"There is no command '{arguments[0]}'. The commands are {commands}.")


def _about_call(error: CycloptsError) -> str:
    """What is wrong with a call, and where its options are explained."""
    from cyclopts import MissingArgumentError, UnusedCliTokensError

    name, given = " ".join(error.command_chain or ()), error.unused_tokens or []
    see = f"See {command(*name.split(), '--help')}."
    if isinstance(error, MissingArgumentError) and error.argument and error.tokens_so_far:
        return f"{error.argument.name} needs more than {' '.join(error.tokens_so_far)}. {see}"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        unknown = [word for word in given if word[0] == "-" and word not in error.argument.names]
        besides = f" and has no {', '.join(unknown)}" if unknown else ""
        return f"{name} needs {error.argument.name}{besides}. {see}"
    if isinstance(error, UnusedCliTokensError):
        return f"{name} takes no {' '.join(given)}. {see}"
    return str(error)


def _failed(why: object, code: int) -> int:
    line = visible(" ".join(str(why).split()))
    if len(line) > LONGEST_LINE:
        line = f"{line[: LONGEST_LINE // 2]} … {line[-LONGEST_LINE // 2 :]}"
    print(f"{Path(program()).name.split()[-1]}:", line, file=sys.stderr)
    return code
