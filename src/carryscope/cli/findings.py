"""`dissect`, `risk`, `faithful`, `certify` and `repair`: one finding each, made or read."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from carryscope.certificate.proof import About
from carryscope.certificate.proof import Engine as ProofEngine
from carryscope.cli.bars import bars
from carryscope.cli.console import log, opened, print_finding, print_json, print_plain
from carryscope.cli.options import (
    Again,
    AnyRun,
    Cluster,
    Json,
    QuestionSeed,
    RunName,
    Threads,
    Verbose,
)
from carryscope.core.errors import CallError, command

if TYPE_CHECKING:
    from carryscope.run import Run


def dissect(
    run: AnyRun = None,
    /,
    *,
    only: str | None = None,
    seed: int | None = None,
    again: Again = False,
    show: bool = False,
    verbose: Verbose = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Find out how a model adds: what each part of it carries.

    Writes findings/dissection.json in the run. Earlier findings are reused. An interrupted call
    continues where it stopped.

    Parameters
    ----------
    only
        Parts to do, with commas: attention, edges, nodes, subtasks, paths, mlp, story. Default:
        all of them.
    seed
        Seed of the questions. Default: that of the findings there are, or 0.
    show
        Show what is there, and make nothing.
    """
    from carryscope.stages import DISSECTION

    if run is None and not show:
        raise CallError(f"dissect needs RUN. See {command('dissect', '--help')}.")
    chosen = opened(run)
    if show:
        found = chosen.there(DISSECTION)
    else:
        with bars(threads) as progress:
            found = chosen.dissection(only, seed=seed, again=again, progress=progress)
    print_finding(found, chosen.directory / DISSECTION.file, json=json, verbose=verbose)


def risk(
    run: RunName,
    /,
    *,
    width: float = 0.05,
    budget: int = 1_000_000,
    seed: QuestionSeed = 0,
    again: Again = False,
    verbose: Verbose = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Measure how often a model fails over all questions, and where.

    Draws questions from every pattern of columns, most where the uncertainty is, and weighs
    each pattern by its exact probability. Up to three digits every question is tested. Ctrl-C
    ends the sampling: the estimate so far is kept, with a wider interval. Writes
    findings/risk.json.

    Parameters
    ----------
    width
        Stop when the 95 % interval is this wide, relative to the estimate.
    budget
        Stop after this many questions.
    """
    from carryscope.stages import RISK

    chosen = opened(run)
    with bars(threads) as progress:
        found = chosen.risk(width=width, budget=budget, seed=seed, again=again, progress=progress)
    print_finding(found, chosen.directory / RISK.file, json=json, verbose=verbose)


def faithful(
    run: RunName,
    /,
    *,
    algorithm: str | None = None,
    seed: QuestionSeed = 0,
    again: Again = False,
    verbose: Verbose = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Test whether a stated algorithm is the one a model runs, on right answers and wrong ones.

    Compares the model with exact addition, the paper's Algorithm 1, its relatives that look
    further or less far, and the dissected algorithm if there is a dissection. Then it resamples,
    inside the model, everything an algorithm calls irrelevant, and counts the answers that stay.
    Writes findings/faithfulness.json.

    An algorithm of your own is a function from columns to answer digits in a Python file,
    given as --algorithm file.py:name. The file is run, so use only files you trust:

        def no_carries(columns):  # columns.sums has the shape (questions, columns), units first
            import numpy as np
            return np.pad(columns.sums % 10, ((0, 0), (0, 1)))

    Parameters
    ----------
    algorithm
        An algorithm of your own to compare with: file.py:name.
    """
    from carryscope.stages import FAITHFULNESS
    from carryscope.verification.own_function import apart

    chosen = opened(run)
    with bars(threads) as progress, apart(algorithm) as own:
        found = chosen.faithfulness(own, seed=seed, again=again, progress=progress)
    print_finding(found, chosen.directory / FAITHFULNESS.file, json=json, verbose=verbose)


def certify(
    run: RunName,
    /,
    *,
    until: float = 0.99,
    minutes: float = 60.0,
    workers: int | None = None,
    cluster: Cluster = None,
    about: About | None = None,
    with_: Annotated[ProofEngine | None, Parameter(name="--with")] = None,
    check: bool = False,
    again: Again = False,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Prove bounds on a model's accuracy over every question.

    Puts questions into boxes, proves each box right or wrong or splits it, and counts the
    questions in proved boxes exactly. The result is sound whenever the search stops: Ctrl-C
    keeps what is proved, and a second call continues from there. For models of one layer.
    Writes findings/certificate.json, which `--check` verifies without trusting the search that
    made it. The mathematics: docs/certificate.md.

    Parameters
    ----------
    until
        Stop when this share of all questions is decided.
    minutes
        Stop after this many minutes.
    workers
        Local processes. Default: one for each core.
    about
        What is proved: what the model answers in exact arithmetic (the default), or what any
        float32 evaluation of it answers, which takes leads of some logits.
    with_
        What computes the bounds: numba, if it is installed, or torch, which is slower. A check
        takes the one that did not search.
    check
        Verify the certificate that is there, box by box, and prove nothing new.
    """
    from carryscope.stages import CERTIFICATE

    chosen = opened(run)
    if check:
        _check(chosen, engine=with_, workers=workers, cluster=cluster, json=json)
        return
    _say_who_searches(with_)
    with bars() as progress:
        found = chosen.certificate(
            until=until,
            minutes=minutes,
            workers=workers,
            cluster=cluster,
            about=about,
            engine=with_,
            again=again,
            progress=progress,
        )
    print_finding(found, chosen.directory / CERTIFICATE.file, json=json, verbose=verbose)


def _say_who_searches(engine: ProofEngine | None) -> None:
    if engine is None and find_spec("numba") is None:
        print_plain("numba is not installed, so torch searches, which is slower.", to=log)


def _check(
    run: Run, *, engine: ProofEngine | None, workers: int | None, cluster: str | None, json: bool
) -> None:
    """Decide every box of a certificate again."""
    from carryscope.api import check
    from carryscope.stages import CERTIFICATE

    with bars() as progress:
        checked = check(run, engine=engine, workers=workers, cluster=cluster, progress=progress)
    if json:
        print_json(checked._asdict() | {"holds": True})
        return
    certificate = run.there(CERTIFICATE)
    print_plain(
        f"The certificate holds: {' and '.join(certificate.found_with)} found it, and "
        f"{checked.engine} decided all {checked.claims:,} boxes again.\n{certificate.statement}"
    )


def repair(
    run: AnyRun = None,
    /,
    *,
    out: Path,
    minutes: float = 30.0,
    threads: Threads = None,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Repair a model that fails, in a copy, and prove the result.

    Measures how often the model fails, and finds the columns that no head reads where they are
    needed. Adds heads for them, which change no answer at first, and trains on cascades and on
    the questions that fail. It ends when no tested question fails and the certificate has decided
    what it can, or when the time is up. The run itself never changes. Ctrl-C loses nothing: the
    same command continues. For models of one layer.

    Parameters
    ----------
    out
        The directory of the repaired run. Every round is kept in its `rounds`.
    minutes
        Stop after this many minutes.
    """
    from carryscope.repairing import REPAIR
    from carryscope.repairing import repair as repair_run

    chosen = opened(run)
    with bars(threads) as progress:
        found = repair_run(chosen, out, minutes=minutes, threads=threads, progress=progress)
    print_finding(found, out / REPAIR.file, json=json, verbose=verbose)
