"""A study: runs side by side and one small record of each. The pages follow from the records.

In: jobs by name; each trains a run and measures it. Out: a record for each, RECORDS/<name>.json. A
run whose record is there is done, so the same call continues after a stop. Records are all that is
kept of the runs: neither weights nor findings are needed to write the pages again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from carryscope.core.errors import WorkError
from carryscope.core.progress import Progress, silent
from carryscope.core.storage import read_json, write_bytes
from carryscope.sweeps.running import Job, side_by_side

T = TypeVar("T")

RESULTS = Path(__file__).parent / "results"
"""The committed results, a folder of records for each study."""

PAGES = Path(__file__).parent / "pages"
"""The texts of the pages."""


def left(jobs: Mapping[str, T], records: Path) -> dict[str, T]:
    """What has no record yet."""
    return {name: job for name, job in jobs.items() if not _file(records, name).exists()}


def make(
    jobs: Mapping[str, Job[Any]],
    runs: Path,
    records: Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Progress = silent,
) -> None:
    """Do the jobs that are left, one thread each, and keep their records."""
    keeping = {
        name: partial(_keep, job, _file(records, name).absolute())
        for name, job in left(jobs, records).items()
    }
    outcome = side_by_side(
        keeping, runs, workers=workers, threads=1, cluster=cluster, progress=progress
    )
    if outcome.failed:
        raise WorkError(" ".join(f"{name} failed: {why}" for name, why in outcome.failed.items()))


def read_records(records: Path, kind: type[T]) -> list[T]:
    """All records of a study, by name."""
    return [read_json(file, kind) for file in sorted(records.rglob("*.json"))]


def write_record(file: Path, record: Any) -> None:
    """Write a record, its numbers to six significant digits."""
    write_bytes(file, msgspec.json.encode(_short(msgspec.to_builtins(record))) + b"\n")


def page(name: str, **parts: object) -> str:
    """A page: its text is in `pages`, with places for what follows from the records."""
    return (PAGES / name).read_text().format(**parts)


def _file(records: Path, name: str) -> Path:
    return records / f"{name}.json"


def _keep(job: Job[Any], file: Path, directory: Path, threads: int, progress: Progress) -> None:
    """What a worker does: a job, and its record."""
    write_record(file, job(directory, threads, progress))


def _short(value: Any) -> Any:
    """The same with short numbers."""
    if isinstance(value, dict):
        return {name: _short(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_short(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
