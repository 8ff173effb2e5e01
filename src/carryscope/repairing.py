"""Repair a model that fails: say what is missing, mend it in a copy, and prove the result.

In: a run and a new directory. Out: the repaired run there, and a `RepairFinding`.

    out/rounds/0    a copy of the run: how often it fails, and which columns its heads read
    out/rounds/1    its weights with the missing heads added, trained on cascades
    out/rounds/2    if questions still fail: trained again, on the patterns that fail
    out             the last round

Every round is a run like any other. So a repair that was stopped continues, and the run that
it starts from never changes.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from msgspec.structs import asdict, replace

from carryscope.core.errors import CallError, WorkError
from carryscope.core.progress import Progress, Stopped, silent, stopping
from carryscope.core.storage import only_writer, read_bytes, write_bytes, write_json
from carryscope.dissection.attention import AttentionFinding
from carryscope.model.files import check_free
from carryscope.run import Run
from carryscope.stages import CERTIFICATE, Stage
from carryscope.task.strata import as_written, is_pattern
from carryscope.training.loop import train
from carryscope.training.presets import EXACT, started_config
from carryscope.verification.before_after import (
    RepairFinding,
    Round,
    blind_digits,
    repair_statement,
)
from carryscope.verification.cases import pooled
from carryscope.verification.risk import RiskFinding
from carryscope.version import __version__

ROUNDS = Path("rounds")
"""Where the rounds are, in the directory of a repair."""

MOST_ROUNDS = 4
"""A model that still fails after so many trainings is beyond this repair."""

MOST_PATTERNS = 40
"""Failing patterns that a round trains on: those that cost most."""

TESTED = 200_000
"""Questions that a round is tested on, at most: enough to see what fails. The proof sees the rest.
A rate that is known better is used as it is."""

MINUTES = 30.0
"""Time for a repair, if nothing else is said."""

RATE_TIMES_WIDTH = 0.0765
"""The learning rate, times d_model: 1.5e-4 at the paper's width of 510, and more in narrower
models. A third of what training from scratch takes: with more, what was learnt is lost at first."""

RECIPE = replace(
    EXACT,
    seed=0,
    steps=4000,
    final_batch=0,
    head_delay=100,
    sharpness_start=0.4,
    coverage=0.3,
    hard_start=0.6,
    warmup=50,
    init_std=0.0,
    embedding_std=0.0,
)
"""How a round trains: as an exact adder does, for a shorter time. Added heads start one after the
other, and are drawn to the columns that no head reads."""

REPAIR = Stage("repair", "the repair", RepairFinding, ("repair",))


def repair(
    source: Run,
    directory: Path | str,
    *,
    minutes: float = MINUTES,
    threads: int | None = None,
    progress: Progress = silent,
) -> RepairFinding:
    """Repair a run in a new directory, or continue a repair that was stopped.

    It ends when no tested question fails and the certificate has decided what it can, or when the
    time is up. Then the finding says what is left, and the same call with more time continues.
    """
    directory, began = Path(directory), time.monotonic()
    _check(source, directory, minutes)
    end = began + 60 * minutes
    why = "The time for the repair is up."
    watched = stopping(lambda: time.monotonic() > end, why, progress)
    runs = [_copied(source, directory / ROUNDS / "0")]
    try:
        while _fails(runs[-1], end, threads, watched) and len(runs) <= MOST_ROUNDS:
            if time.monotonic() > end:
                break
            runs.append(_trained(runs, directory / ROUNDS / str(len(runs)), threads, watched))
    except Stopped:
        if time.monotonic() < end:
            raise
    finding = _finding(source, runs, began, end)
    _publish(runs[-1], directory, finding)
    return finding


def _check(source: Run, directory: Path, minutes: float) -> None:
    if not minutes > 0:
        raise CallError(f"minutes must be above 0. Got {minutes}.")
    layers = source.config.model.layers
    if layers != 1:
        raise CallError(
            "A repair is for models of 1 layer: in deeper ones a column that no head reads "
            f"directly can arrive by another way. Got {layers} layers."
        )
    place = directory.resolve()
    if source.directory.resolve() in (place, *place.parents):
        raise CallError("A repair works on a copy outside the run. Choose another --out.")
    for folder in (directory / ROUNDS, *directory.glob(f"{ROUNDS}/*")):
        if folder.is_symlink():
            raise CallError(f"{folder} is a link, which may lead anywhere. Choose another --out.")
    source.model()


def _copied(source: Run, place: Path) -> Run:
    """A copy of the run with its findings, made once."""
    if place.exists():
        copy = Run(place)
        if copy.weights_sha256 != source.weights_sha256:
            raise CallError(
                f"{place.parent.parent} holds the repair of another model. Choose another --out."
            )
        return copy
    place.parent.parent.mkdir(parents=True, exist_ok=True)
    check_free(place.parent.parent, but=str(ROUNDS))  # which a copy that was killed leaves
    fresh = place.with_name(".copying")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        ignored = shutil.ignore_patterns(".*", "checkpoint", "report.html", str(ROUNDS))
        shutil.copytree(source.directory, fresh, symlinks=True, ignore=ignored)
        fresh.rename(place)
    except OSError as error:
        raise WorkError(f"Cannot copy the run to {place}: {error.strerror or error}.") from error
    return Run(place)


def _fails(run: Run, end: float, threads: int | None, progress: Progress) -> bool:
    """Whether a question fails: tested, and if no tested one does, by all that the time proves."""
    if _proved_wrong(run) or _risk(run, progress).teacher_forced.estimate > 0:
        return True
    minutes = (end - time.monotonic()) / 60
    if minutes > 0:
        run.certificate(until=1.0, minutes=minutes, workers=threads, progress=progress)
    return _proved_wrong(run)


def _risk(run: Run, progress: Progress = silent) -> RiskFinding:
    return run.risk(budget=TESTED, progress=progress)


def _proved_wrong(run: Run) -> bool:
    known = run.read(CERTIFICATE).found
    return known is not None and int(known.proved_wrong) > 0


def _trained(runs: list[Run], place: Path, threads: int | None, progress: Progress) -> Run:
    """The next round: the last one's weights, the heads it lacks, the questions it fails."""
    before = runs[-1]
    model = before.config.model
    blind = blind_digits(_attention(before, progress), model.layout)
    # One head that reads both digits of a column alike cannot tell 7-2 from 2-7.
    per_column = 1 + model.layout.operation.signed
    changes = asdict(RECIPE) | {
        "heads": model.heads + per_column * max((len(one.columns) for one in blind), default=0),
        "first_heads": model.heads + 1,
        "learning_rate": RATE_TIMES_WIDTH / model.d_model,
        "seed": len(runs),
        "patterns": failing_patterns(before) if len(runs) > 1 else (),
        "start_weights": before.weights_sha256,
    }
    config = started_config(before.directory, changes, "exact-5")
    train(config, place, start_from=before.directory, threads=threads, progress=progress)
    return Run(place)


def failing_patterns(run: Run) -> tuple[str, ...]:
    """The patterns of columns that fail, measured and proved, the costliest first."""
    proof = run.read(CERTIFICATE).found
    proved = [family.states for family in proof.wrong_families] if proof is not None else []
    measured = [as_written(stratum.name) for stratum in _risk(run).strata if stratum.failed.count]
    patterns = [name for name in dict.fromkeys(measured + proved) if is_pattern(name)]
    return tuple(patterns[:MOST_PATTERNS])


def _attention(run: Run, progress: Progress) -> AttentionFinding:
    found = run.dissection("attention", progress=progress).attention
    assert found is not None
    return found


def _finding(source: Run, runs: list[Run], began: float, end: float) -> RepairFinding:
    last, questions = runs[-1], _risk(runs[-1]).questions
    proof = last.read(CERTIFICATE).found
    finding = RepairFinding(
        package_version=__version__,
        weights_sha256=last.weights_sha256,
        source=source.name,
        operation=last.config.model.operation,
        rounds=[_round(run) for run in runs],
        questions=questions,
        proved_right=proof.proved_right if proof else "0",
        proved_wrong=proof.proved_wrong if proof else "0",
        undecided=proof.undecided if proof else questions,
        seconds=round(time.monotonic() - began, 1),
        time_is_up=time.monotonic() > end,
        statement="",
    )
    return replace(finding, statement=repair_statement(finding))


def _round(run: Run) -> Round:
    config, risk = run.config, _risk(run)
    recipe = config.training if run.directory.name != "0" else None
    return Round(
        heads=config.model.heads,
        steps=recipe.steps if recipe else 0,
        patterns=list(recipe.patterns) if recipe else [],
        blind=blind_digits(_attention(run, silent), config.model.layout),
        wrong=risk.teacher_forced,
        evaluated=risk.evaluated,
        depths=pooled(risk.cases),
    )


def _publish(last: Run, directory: Path, finding: RepairFinding) -> None:
    """The last round becomes the run in the directory itself."""
    with only_writer(directory):
        for path in sorted(last.directory.rglob("*")):
            place = directory / path.relative_to(last.directory)
            if path.is_file() and not path.name.startswith("."):
                write_bytes(place, read_bytes(path))
        write_json(directory / REPAIR.file, finding)
