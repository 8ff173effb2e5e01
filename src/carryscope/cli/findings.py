"""`dissect`, `risk`, `faithful` and `certify`: one finding each, made or read."""

from __future__ import annotations

from carryscope.cli.bars import bars
from carryscope.cli.console import opened, print_finding, print_json, print_plain
from carryscope.core.errors import CallError, command


def use_machine(threads: int | None) -> None:
    """Set the number of threads, and keep freed memory for the next pass."""
    from carryscope.model.process import keep_freed_memory, use_threads

    use_threads(threads)
    keep_freed_memory()


def dissect(
    run: str | None = None,
    /,
    *,
    only: str | None = None,
    seed: int | None = None,
    again: bool = False,
    show: bool = False,
    verbose: bool = False,
    threads: int | None = None,
    json: bool = False,
) -> None:
    """Find out how a model adds: what each part of it carries.

    Writes findings/dissection.json in the run. Earlier findings are reused. An interrupted call
    continues where it stopped.

    Parameters
    ----------
    run
        A run directory or the name of a shipped model. With --show the default is fast-5.
    only
        Parts to do, with commas: attention, edges, heads, nodes, subtasks, mlp, first_digits,
        story. Default: all of them.
    seed
        Seed of the questions. Default: that of the findings there are, or 0.
    again
        Do it all again, even what was found before.
    show
        Show what is there, and make nothing.
    verbose
        Show all tables.
    threads
        Processor threads. Default: all cores. Fewer are faster on a busy machine.
    json
        Print the findings as JSON.
    """
    from carryscope.stages import DISSECTION

    if run is None and not show:
        raise CallError(f"dissect needs RUN. See {command('dissect', '--help')}.")
    chosen = opened(run)
    if show:
        kept = chosen.read(DISSECTION)
        if kept.found is None:
            make = DISSECTION.line(chosen.directory)
            raise CallError(kept.why or f"{chosen.directory} is not dissected. Run: {make}")
        found = kept.found
    else:
        use_machine(threads)
        with bars() as progress:
            found = chosen.dissection(only, seed=seed, again=again, progress=progress)
    print_finding(found, chosen.directory / DISSECTION.file, json=json, verbose=verbose)


def risk(
    run: str,
    /,
    *,
    width: float = 0.05,
    budget: int = 1_000_000,
    seed: int = 0,
    again: bool = False,
    verbose: bool = False,
    threads: int | None = None,
    json: bool = False,
) -> None:
    """Measure how often a model fails over all questions, and where.

    Draws questions from every pattern of columns, most where the uncertainty is, and weighs
    each pattern by its exact probability. Up to three digits every question is tested. Ctrl-C
    ends the sampling: the estimate so far is kept, with a wider interval. Writes
    findings/risk.json.

    Parameters
    ----------
    run
        A run directory or the name of a shipped model.
    width
        Stop when the 95 % interval is this wide, relative to the estimate.
    budget
        Stop after this many questions.
    seed
        Seed of the questions.
    again
        Measure again, even if a precise estimate is there.
    verbose
        Show all tables.
    threads
        Processor threads. Default: all cores. Fewer are faster on a busy machine.
    json
        Print the findings as JSON.
    """
    from carryscope.stages import RISK

    chosen = opened(run)
    use_machine(threads)
    with bars() as progress:
        found = chosen.risk(width=width, budget=budget, seed=seed, again=again, progress=progress)
    print_finding(found, chosen.directory / RISK.file, json=json, verbose=verbose)


def faithful(
    run: str,
    /,
    *,
    algorithm: str | None = None,
    seed: int = 0,
    again: bool = False,
    verbose: bool = False,
    threads: int | None = None,
    json: bool = False,
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
    run
        A run directory or the name of a shipped model.
    algorithm
        An algorithm of your own to compare with: file.py:name.
    seed
        Seed of the questions.
    again
        Compare again, even if the finding is there.
    verbose
        Show all tables.
    threads
        Processor threads. Default: all cores. Fewer are faster on a busy machine.
    json
        Print the findings as JSON.
    """
    from carryscope.stages import FAITHFULNESS

    chosen = opened(run)
    use_machine(threads)
    with bars() as progress:
        found = chosen.faithfulness(algorithm, seed=seed, again=again, progress=progress)
    print_finding(found, chosen.directory / FAITHFULNESS.file, json=json, verbose=verbose)


def certify(
    run: str,
    /,
    *,
    until: float = 0.99,
    minutes: float = 60.0,
    workers: int | None = None,
    cluster: str | None = None,
    check: bool = False,
    again: bool = False,
    verbose: bool = False,
    json: bool = False,
) -> None:
    """Prove bounds on a model's accuracy over every question.

    Puts questions into boxes, proves each box right or wrong or splits it, and counts the
    questions in proved boxes exactly. The result is sound whenever the search stops: Ctrl-C
    keeps what is proved, and a second call continues from there. For models of one layer.
    Writes findings/certificate.json, which `--check` verifies without trusting the search that
    made it. The mathematics: docs/certificate.md.

    Parameters
    ----------
    run
        A run directory or the name of a shipped model.
    until
        Stop when this share of all questions is decided.
    minutes
        Stop after this many minutes.
    workers
        Local processes. Default: one for each core.
    cluster
        Address of a dask scheduler (tcp://host:8786) whose workers do the work instead. They
        run code: use only a cluster you trust.
    check
        Verify the certificate that is there, bound by bound, and prove nothing new.
    again
        Start from nothing, even if something is proved already.
    verbose
        Show all tables.
    json
        Print the certificate as JSON, without its log of boxes.
    """
    from carryscope.stages import CERTIFICATE

    chosen = opened(run)
    if check:
        _check(run, workers=workers, cluster=cluster, json=json)
        return
    with bars() as progress:
        found = chosen.certificate(
            until=until,
            minutes=minutes,
            workers=workers,
            cluster=cluster,
            again=again,
            progress=progress,
        )
    if json:
        print_json(found.without_log())
        return
    print_finding(found, chosen.directory / CERTIFICATE.file, json=False, verbose=verbose)


def _check(run: str, *, workers: int | None, cluster: str | None, json: bool) -> None:
    """Compute every bound of a certificate again."""
    import os

    from carryscope.certificate.checking import check_certificate
    from carryscope.stages import CERTIFICATE

    chosen = opened(run)
    model = chosen.model()  # without weights there is nothing to check, whatever else is there
    kept = chosen.read(CERTIFICATE)
    certificate = kept.found
    if certificate is None:
        make = f"Run: {command('certify', chosen.directory)}"
        raise CallError(kept.why or f"There is no certificate in {chosen.directory}. {make}")
    with bars() as progress:
        checked = check_certificate(
            model,
            certificate,
            workers=(os.cpu_count() or 1) if workers is None else workers,
            cluster=cluster,
            progress=progress,
        )
    if json:
        print_json(checked._asdict() | {"holds": True})
        return
    print_plain(
        f"The certificate holds: all {checked.claims:,} bounds in {checked.boxes:,} boxes were "
        f"computed again.\n{certificate.statement}"
    )
