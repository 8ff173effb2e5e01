"""`carryscope study`: every stage there is, one after the other, on one run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from carryscope.cli.ask import show_answer
from carryscope.cli.certify import certify_with_progress, without_log
from carryscope.cli.console import log, print_json, print_plain, program
from carryscope.cli.dissect import dissect_with_progress, show_dissection
from carryscope.cli.faithful import faithful_with_progress, show_faithfulness
from carryscope.cli.report import report_with_progress
from carryscope.cli.risk import risk_with_progress, show_risk
from carryscope.cli.train import show_summary, train_with_progress, wanted_config

if TYPE_CHECKING:
    from carryscope.certificate.finding import Certificate
    from carryscope.stages import Run

EXAMPLE = "445+555"
"""The paper's own example of a sum that a one-layer model finds hard."""

CERTIFY_MINUTES = 1.0
"""Time for the certificate: a first look at what can be proved, so that a study stays short."""


def study(
    *,
    preset: str | None = None,
    out: Path = Path("runs/study"),
    threads: int | None = None,
    json: bool = False,
) -> None:
    """Train a model and look at what it learnt: the place to start.

    Trains, dissects, measures how often the model fails and whether it runs the paper's
    algorithm, proves for a minute what can be proved about its answers (of models of one layer;
    `carryscope certify` goes on with it), and writes it all into one page, report.html. A second
    call picks up whatever is there already.

    Parameters
    ----------
    preset
        The recipe to train (see `carryscope presets`). Default: the run's own, or fast-5.
    out
        The run directory.
    threads
        Processor threads. Default: all cores; fewer are faster if others use them too.
    json
        Print the findings as JSON.
    """
    config = wanted_config(out, preset, {})
    where = shlex.quote(str(out))
    log.print(f"Training {config.model.digits}-digit addition in {out}", markup=False)
    summary = train_with_progress(
        config, out, threads=threads, again=f"{program()} study --out {where}"
    )
    from carryscope.stages import Run

    run = Run(out)
    log.print(f"Dissecting the model in {out}", markup=False)
    dissection = dissect_with_progress(run, threads=threads)
    log.print("Measuring how often it fails, and whether it runs the paper's algorithm")
    risk = risk_with_progress(run, threads=threads)
    faithfulness = faithful_with_progress(run, threads=threads)
    certificate = _certify(run, threads)
    log.print("Writing the report")
    report = report_with_progress(run)
    if json:
        stages = {"training": summary, "dissection": dissection}
        stages |= {"risk": risk, "faithfulness": faithfulness}
        proved = None if certificate is None else without_log(certificate)
        print_json(stages | {"certificate": proved, "report": str(report)})
        return
    show_summary(summary, out)
    show_dissection(dissection)
    show_faithfulness(faithfulness)
    question = EXAMPLE if config.model.digits >= len(EXAMPLE.partition("+")[0]) else "9+9"
    show_answer(run.model(), question)
    print_plain(f'Ask it anything: {program()} ask {where} "{question}"\n')
    show_risk(risk)
    if certificate is not None:
        print_plain(f"{certificate.statement}\n")
    if certificate is not None and int(certificate.undecided):
        print_plain(f"To prove more: {program()} certify {where}\n")
    print_plain(report)


def _certify(run: Run, threads: int | None) -> Certificate | None:
    """A minute of certificate, or what is left of it; models of more layers get none.

    A minute that was spent is not spent again: whoever wants more proved calls `certify`.
    """
    from carryscope.certificate.finding import (
        CERTIFICATE_FILE,
        LOG_VERSION,
        read_certificate,
    )
    from carryscope.model.files import weights_hash

    if run.config.model.layers != 1:
        log.print("No certificate: only models of one layer can be certified")
        return None
    again, left = False, CERTIFY_MINUTES
    if (run.directory / CERTIFICATE_FILE).exists():
        known = read_certificate(run.directory)
        about_it = known.weights_sha256 == weights_hash(run.model())
        left -= known.seconds / 60
        if about_it and (known.ended in ("decided", "time") or left <= 0):
            return known
        again = not about_it or known.log_version != LOG_VERSION
    log.print("Proving what can be proved in a minute")
    minutes = CERTIFY_MINUTES if again else left
    return certify_with_progress(run, minutes=minutes, workers=threads, again=again)
