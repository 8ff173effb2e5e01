"""The command line: which command lives where, and how a call ends.

Commands are named here and imported when called, so that `carryscope --help` answers at once.
Exit codes: 0 done, 1 the work failed, 2 the call was wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter, UnusedCliTokensError

from carryscope.core.errors import CallError, WorkError
from carryscope.version import __version__

COMMANDS = {
    "study": ("study:study", "Train a model and look at what it learnt: the place to start."),
    "train": ("train:train", "Train a model, or go on with a training that was stopped."),
    "ask": ("ask:ask", "Ask a model a sum and see each digit of its answer."),
    "dissect": (
        "dissect:dissect",
        "Find out how a model adds: what each part of it carries.",
    ),
    "risk": ("risk:risk", "Measure how often a model fails over all questions, and where."),
    "faithful": ("faithful:faithful", "Ask whether a stated algorithm is the one a model runs."),
    "certify": ("certify:certify", "Prove bounds on a model's accuracy over every question."),
    "report": ("report:report", "Write the report of a run: one page for any browser."),
    "figures": ("figures:figures", "Write the figures of a run's findings, for a page or a paper."),
    "explorer": (
        "explorer:explorer",
        "Write a page in which a model can be asked and taken apart.",
    ),
    "sweep": (
        "sweep:sweep",
        "Train and study many seeds side by side: is the algorithm the same?",
    ),
    "presets": ("train:presets", "List the training recipes."),
    "sites": ("exchange:sites", "List the places in a model that can be read or changed."),
    "import": ("exchange:import_", "Make a run from a TransformerLens state dict."),
    "export": ("exchange:export", "Write a run's weights as a TransformerLens state dict."),
}


def make_app(called: str | None) -> App:
    """The command line. The command that is called is described by its own docstring."""
    app = App(
        name="carryscope",
        version=__version__,
        help=(
            "Train small transformers to add, see exactly how they do it, know where they "
            'fail.\n\nTry: carryscope ask "445+555"'
        ),
        default_parameter=Parameter(negative=()),
        suppress_keyboard_interrupt=False,
    )
    for name, (where, about) in COMMANDS.items():
        help_ = None if name == called else about
        app.command(f"carryscope.cli.{where}", name=name, help=help_)
    return app


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Carry out one call and return its exit code; what went wrong is told in one line."""
    try:
        app = make_app(arguments[0] if arguments else None)
        app(arguments, exit_on_error=False, print_error=False, result_action="return_none")
    except CallError as error:
        return _told(error, 2)
    except CycloptsError as error:
        return _told(_about_call(error), 2)
    except BrokenPipeError:
        # Whoever was reading has seen enough. Nothing is left to be flushed on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (WorkError, OSError) as error:
        return _told(error, 1)
    except KeyboardInterrupt:
        return _told("Interrupted.", 1)
    return 0


def _about_call(error: CycloptsError) -> str:
    """What is wrong with a call, and where its options are explained."""
    command, given = " ".join(error.command_chain or ()), error.unused_tokens or []
    see = f"See carryscope {command} --help."
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        unknown = [word for word in given if word[0] == "-" and word not in error.argument.names]
        beside = f" and has no {', '.join(unknown)}" if unknown else ""
        return f"{command} needs {error.argument.name}{beside}. {see}"
    if isinstance(error, UnusedCliTokensError):
        return f"{command} takes no {' '.join(given)}. {see}"
    return str(error)


def _told(what: object, code: int) -> int:
    print("carryscope:", " ".join(str(what).split()), file=sys.stderr)
    return code
