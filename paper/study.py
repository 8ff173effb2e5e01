"""A study: runs side by side, one small record of each, and pages that follow from the records.

In: jobs by name; each trains a run and measures it. Out: a record for each, and the pages. A run
whose record is there is done, so the same call continues after a stop. Records are all that is
kept of the runs: neither weights nor findings are needed to write the pages again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
import msgspec

from carryscope.core import words
from carryscope.core.errors import WorkError
from carryscope.core.progress import Progress
from carryscope.core.storage import read_json, write_bytes
from carryscope.report.markdown import as_text
from carryscope.sweeps.running import Job, side_by_side

RESULTS = Path(__file__).parent / "results"
"""The committed results, a folder of records for each study."""

DOCS = Path(__file__).parents[1] / "docs"

Jobs = Mapping[str, Job[Any]]
"""Jobs by the names of their runs and records."""


@dataclass(frozen=True)
class Study:
    """Runs, their records, and the pages that follow from them."""

    name: str
    """The folder of its runs, and that of its records."""
    record: type[Any]
    pages: Callable[[list[Any]], dict[str, str]]
    """Files by name, from all records; the page to read is the first."""
    rounds: Callable[[Path], Sequence[Jobs]]
    """The jobs, given where the runs are. A round begins when the one before it has ended."""
    home: Path = DOCS
    """Where the pages of the committed results are."""

    def make(self, runs: Path, results: Path, progress: Progress, **crew: Any) -> None:
        """Do the jobs that are left, one thread each, and keep their records."""
        runs = (runs / self.name).absolute()
        for jobs in self.rounds(runs):
            keeping = {n: partial(_keep, jobs[n], file) for n, file in self.left(jobs, results)}
            outcome = side_by_side(keeping, runs, threads=1, progress=progress, **crew)
            if outcome.failed:
                failed = [f"{name} failed: {why}" for name, why in outcome.failed.items()]
                raise WorkError(" ".join(failed))

    def left(self, jobs: Mapping[str, Any], results: Path) -> list[tuple[str, Path]]:
        """The names of jobs without a record, and where their records will be."""
        files = {name: (results / self.name / f"{name}.json").absolute() for name in jobs}
        return [(name, file) for name, file in files.items() if not file.exists()]

    def read(self, results: Path = RESULTS) -> list[Any]:
        """All records, by name."""
        files = sorted((results / self.name).rglob("*.json"))
        return [read_json(file, self.record) for file in files]

    def write_pages(self, results: Path) -> Path:
        """Write the pages of what is there, and return the one to read."""
        home = self.home if results.resolve() == RESULTS.resolve() else results
        files = self.pages(self.read(results))
        for name, text in files.items():
            write_bytes(home / name, text.encode())
        return home / next(iter(files))


def _keep(job: Job[Any], file: Path, directory: Path, threads: int, progress: Progress) -> None:
    """What a worker does: a job, and its record."""
    write_record(file, job(directory, threads, progress))


def write_record(file: Path, record: Any) -> None:
    """Write a record, its numbers to six significant digits."""
    write_bytes(file, msgspec.json.encode(_rounded(msgspec.to_builtins(record))) + b"\n")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def page(name: str, **known: object) -> str:
    """A page: its template is in `pages`, and may use the functions of `core/words.py`."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "pages"),
    )
    environment.filters |= {"text": as_text, "number": _number, "short": _short}
    return environment.get_template(name).render(**vars(words), **known)


def _number(value: float, decimals: int = 0) -> str:
    return f"{value:,.{decimals}f}"


def _short(value: float | None) -> str:
    """A number to three digits; from a thousand on, to the unit."""
    if value is None:
        return "none"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
