"""One run brought to its end, stage by stage, by a worker that heeds a sign to stop.

In: a config and a run directory. Out: the run, trained, dissected, its risk measured, compared
with the paper's algorithm; what was there already is kept.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from carryscope.core.progress import Stopped
from carryscope.core.storage import LOCK_FILE
from carryscope.dissection.findings import DISSECTION_FILE
from carryscope.model.run_files import CONFIG_FILE
from carryscope.stages import Run
from carryscope.training.checkpoint import METRICS_FILE
from carryscope.training.config import RunConfig
from carryscope.training.loop import train
from carryscope.training.summary import FINDING_FILE
from carryscope.verification.faithfulness import FAITHFULNESS_FILE
from carryscope.verification.risk import RISK_FILE

SIGN_EVERY = 1.0
"""Seconds between two looks at whether to stop."""


class Sign:
    """Whether the work is to stop: once there is a file at a path. Looked up now and then."""

    def __init__(self, path: Path) -> None:
        self._path, self._stop, self._looked = path, False, -SIGN_EVERY

    def __call__(self) -> bool:
        if time.monotonic() - self._looked > SIGN_EVERY:
            self._stop, self._looked = self._path.exists(), time.monotonic()
        return self._stop

    def heed(self, _: object = None) -> None:
        """End the work here if it is to stop."""
        if self():
            raise Stopped("Stopped; the stages that were done are kept.")

    def bar(self, *_: object) -> AbstractContextManager[Callable[[int], object]]:
        """A bar for a stage that says how far it is: nothing to see, but it heeds the sign."""
        return nullcontext(self.heed)


def bring_to_end(config: RunConfig, directory: Path, *, threads: int, sign: Sign) -> Run:
    """All stages of a run but its report, from wherever it stands."""
    run = trained(config, directory, threads=threads, sign=sign)
    run.dissect(bar=sign.bar)
    run.measure_risk(on_round=sign.heed)
    run.compare(bar=sign.bar)
    return run


def trained(
    config: RunConfig,
    directory: Path,
    *,
    threads: int,
    sign: Sign,
    on_last_step: Callable[[], object] = lambda: None,
) -> Run:
    """A run with its training done; whoever else is at it is waited for."""
    _wait_for_others(directory, sign)
    train(config, directory, threads=threads, should_stop=sign, on_last_step=on_last_step)
    return Run(directory)


def _wait_for_others(directory: Path, sign: Sign) -> None:
    """A worker of a driver that was killed may still be at this run."""
    if not directory.is_dir():
        return
    with (directory / LOCK_FILE).open("a") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                sign.heed()
                time.sleep(SIGN_EVERY)
            else:
                return


def stage(run: Path) -> str:
    """What a run is at, by what stands in its directory."""
    if not (run / CONFIG_FILE).exists():
        return "starting"
    if not (run / FINDING_FILE).exists():
        path = run / METRICS_FILE
        steps = path.read_bytes().count(b"\n") if path.exists() else 0
        return f"training, step {steps:,}"
    if (run / FAITHFULNESS_FILE).exists():
        return "writing"
    if (run / RISK_FILE).exists():
        return "comparing"
    return "measuring risk" if (run / DISSECTION_FILE).exists() else "dissecting"
