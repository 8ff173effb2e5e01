"""Where runs come from: load one, train one, study one, import one.

run = load("fast-5")                       # a model that comes with the package
run = train("runs/four", "paper-5", heads=4)
run = study("runs/study")                  # train, then every stage, then the report
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from carryscope.certificate.checking import Checked, check_certificate
from carryscope.certificate.finding import Certificate
from carryscope.certificate.proof import Engine
from carryscope.core.errors import CallError
from carryscope.core.progress import Progress, silent
from carryscope.core.storage import only_writer, read_json, write_json
from carryscope.core.workers import worker_count
from carryscope.model.config import FORMAT_VERSION
from carryscope.model.files import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    check_free,
    check_version,
    save_weights,
)
from carryscope.model.transformer_lens import read_state_dict
from carryscope.run import Run
from carryscope.shipped import SHIPPED, run_directory
from carryscope.stages import CERTIFICATE
from carryscope.task.operation import OperationName
from carryscope.training.config import RunConfig
from carryscope.training.loop import train as train_to_the_end
from carryscope.training.presets import DEFAULT_PRESET, changed, run_config, started_config

PROOF_MINUTES = 1.0
"""Time a study gives the certificate: a first look at what can be proved."""


def load(run: Path | str | None = None) -> Run:
    """The run in a directory, or a model that comes with the package, by its name."""
    return Run(run_directory(run))


def train(
    directory: Path | str,
    preset: str | None = None,
    *,
    threads: int | None = None,
    keep_checkpoints: int = 0,
    progress: Progress = silent,
    **changes: Any,
) -> Run:
    """Train a model by a preset, with any field of it changed, or continue a stopped training."""
    config, place = wanted_config(Path(directory), preset, changes), Path(directory)
    train_to_the_end(
        config, place, threads=threads, keep_checkpoints=keep_checkpoints, progress=progress
    )
    return Run(directory)


def wanted_config(
    directory: Path,
    preset: str | None,
    changes: Mapping[str, Any],
    start_from: Path | None = None,
) -> RunConfig:
    """The config that is wanted. A run that is there keeps its own recipe by default."""
    if start_from is not None:
        return started_config(start_from, dict(changes), preset)
    if preset is None and (directory / CONFIG_FILE).exists():
        check_version(directory)
        found = read_json(directory / CONFIG_FILE, RunConfig)
        if found.training is None:
            raise CallError(
                f"The model at {directory} was imported: there is no training to continue."
            )
        return changed(found, dict(changes))
    return run_config(preset or DEFAULT_PRESET, dict(changes))


def study(
    directory: Path | str = "runs/study",
    preset: str | None = None,
    *,
    threads: int | None = None,
    progress: Progress = silent,
) -> Run:
    """Train a model, make every finding about it, and write the report.

    What is there already is reused.
    """
    run = train(directory, preset, threads=threads, progress=progress)
    run.dissection(progress=progress)
    run.risk(progress=progress)
    run.faithfulness(progress=progress)
    first_proof(run, workers=threads, progress=progress)
    run.report()
    return run


def first_proof(
    run: Run, *, workers: int | None = None, progress: Progress = silent
) -> Certificate | None:
    """A proof of the same weights, or a minute of search, or what is left of it.

    Deeper models get none.

    A minute that was spent is not spent again: `Run.certificate` proves more.
    """
    if run.config.model.layers != 1:
        return None
    kept = run.read(CERTIFICATE)
    if kept.found is None and not kept.why and (proved := proof_of_same_weights(run)):
        return run.find(CERTIFICATE, lambda *_: proved)
    left, again = PROOF_MINUTES, bool(kept.why)
    if kept.found is not None:
        spent = kept.found.seconds / 60
        if kept.found.ended in ("decided", "time") or spent >= PROOF_MINUTES:
            return kept.found
        again = not kept.found.can_be_continued
        left -= 0 if again else spent
    return run.certificate(minutes=left, workers=workers, again=again, progress=progress)


def proof_of_same_weights(run: Run) -> Certificate | None:
    """A certificate of the same model that comes with the package, or stands in the repository.

    What else is in a folder of that name is somebody's own, and is left alone.
    """
    places = [*SHIPPED.glob(f"*/{CERTIFICATE.file}"), *Path("certificates").glob("*.json")]
    for place in places:
        with suppress(CallError):
            found = read_json(place, Certificate)
            if found.weights_sha256 == run.weights_sha256 and found.can_be_continued:
                return found
    return None


def check(
    run: Run,
    *,
    engine: Engine | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Progress = silent,
) -> Checked:
    """Decide every box of a run's certificate again, by the engine that did not search.

    A box that is not as claimed is an error. Else the certificate says what checked it.
    """
    model = run.model()  # without weights there is nothing to check, whatever else is there
    found, count = run.there(CERTIFICATE), worker_count(workers)
    checked = check_certificate(
        model, found, engine=engine, workers=count, cluster=cluster, progress=progress
    )
    if found.checked_with != checked.engine:
        kept = msgspec.structs.replace(found, checked_with=checked.engine)
        run.find(CERTIFICATE, lambda *_: kept, enough=lambda one: one == kept)
    return checked


def import_model(
    source: Path | str,
    directory: Path | str,
    *,
    operation: OperationName | None = None,
    heads: int | None = None,
) -> Run:
    """A new run from a TransformerLens state dict."""
    source, directory = Path(source), Path(directory)
    if (directory / CONFIG_FILE).exists():
        raise CallError(f"There is a run at {directory} already. Choose another --out.")
    model = read_state_dict(source, operation=operation, heads=heads)
    with only_writer(directory):
        check_free(directory, but=WEIGHTS_FILE)  # an import that was killed leaves them behind
        save_weights(model, directory)
        config = RunConfig(format_version=FORMAT_VERSION, source=source.name, model=model.config)
        write_json(directory / CONFIG_FILE, config)
    return Run(directory)
