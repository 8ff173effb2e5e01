"""The command line: which command lives where, and how a call ends.

Commands are named here and imported when called, so that `carryscope --help` answers at once.
Exit codes: 0 done, 1 the work failed, 2 the call was wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from carryscope.core.errors import CallError, WorkError, command, program
from carryscope.core.progress import Stopped
from carryscope.version import __version__

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError

COMMANDS = {
    "study": ("study:study", "Train a model and see what it learned: the place to start."),
    "train": ("train:train", "Train a model, or continue a training that was stopped."),
    "ask": ("ask:ask", "Ask a model a sum and see each digit of its answer."),
    "dissect": ("findings:dissect", "Find out how a model adds: what each part of it carries."),
    "risk": ("findings:risk", "Measure how often a model fails over all questions, and where."),
    "faithful": ("findings:faithful", "Test whether a stated algorithm is the one a model runs."),
    "certify": ("findings:certify", "Prove bounds on a model's accuracy over every question."),
    "repair": ("repair:repair", "Repair a model that fails, in a copy, and prove the result."),
    "report": ("pages:report", "Write the report of a run: one page for any browser."),
    "explorer": ("pages:explorer", "Write a page in which a model can be asked and taken apart."),
    "figures": ("pages:figures", "Write the figures of a run's findings, for a page or a paper."),
    "sweep": ("sweep:sweep", "Train and study many seeds side by side: do they add the same way?"),
    "presets": ("train:presets", "List the training recipes."),
    "sites": ("exchange:sites", "List the places in a model that can be read or changed."),
    "import": ("exchange:import_", "Make a run from a TransformerLens state dict."),
    "export": ("exchange:export", "Write a run's weights as a TransformerLens state dict."),
}


def make_app(called: str | None) -> App:
    """The command line. The command that is called is described by its own docstring."""
    from cyclopts import App, Parameter

    app = App(
        name=program(),
        version=__version__,
        help=(
            "Train small transformers to add, see exactly how they do it, know where they "
            f"fail.\n\nTry: {program()} ask 445+555"
        ),
        default_parameter=Parameter(negative=()),
        suppress_keyboard_interrupt=False,
    )
    for place, (name, (where, about)) in enumerate(COMMANDS.items()):
        help_ = None if name == called else about
        app.command(f"carryscope.cli.{where}", name=name, help=help_, sort_key=place)
    return app


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Carry out one call and return its exit code. What went wrong is one line."""
    from cyclopts import CycloptsError

    if arguments and arguments[0] == "help":
        arguments = [*arguments[1:2], "--help"]
    try:
        _check_command(arguments)
        app = make_app(arguments[0] if arguments else None)
        app(arguments, exit_on_error=False, print_error=False, result_action="return_none")
    except BrokenPipeError:
        # The reader has seen enough. Nothing is left to be flushed on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (CallError, CycloptsError) as error:
        return _failed(error if isinstance(error, CallError) else _about_call(error), 2)
    except Stopped as stop:
        return _failed(f"{stop} Continue with: {command(*arguments)}", 1)
    except (WorkError, OSError) as error:
        return _failed(error, 1)
    except KeyboardInterrupt:
        return _failed("Interrupted.", 1)
    return 0


def _check_command(arguments: Sequence[str]) -> None:
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        commands = ", ".join(COMMANDS)
        raise CallError(f"There is no command '{arguments[0]}'. The commands are {commands}.")


def _about_call(error: CycloptsError) -> str:
    """What is wrong with a call, and where its options are explained."""
    from cyclopts import MissingArgumentError, UnusedCliTokensError

    name, given = " ".join(error.command_chain or ()), error.unused_tokens or []
    see = f"See {command(*name.split(), '--help')}."
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        unknown = [word for word in given if word[0] == "-" and word not in error.argument.names]
        besides = f" and has no {', '.join(unknown)}" if unknown else ""
        return f"{name} needs {error.argument.name}{besides}. {see}"
    if isinstance(error, UnusedCliTokensError):
        return f"{name} takes no {' '.join(given)}. {see}"
    return str(error)


def _failed(why: object, code: int) -> int:
    print("carryscope:", " ".join(str(why).split()), file=sys.stderr)
    return code
