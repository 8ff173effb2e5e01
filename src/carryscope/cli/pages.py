"""`report`, `explorer`, `compare`, `runs` and `figures`: findings for a browser or a paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from carryscope.cli.console import log, opened, print_file, print_json, print_plain
from carryscope.cli.options import AnyRun, Json, Open, OutFile, RunName
from carryscope.core.errors import CallError
from carryscope.core.storage import check_place

if TYPE_CHECKING:
    from carryscope.run import Run

Ending = Literal["svg", "png", "pdf"]


def report(
    run: AnyRun = None, /, *, out: OutFile = None, open: Open = False, json: Json = False
) -> None:
    """Write the report of a run: one page for any browser, with the model in it to try.

    It shows the findings of all stages that were run (train, dissect, risk, faithful, certify),
    and how to run the others. The page needs no network and can be printed.
    """
    chosen = opened(run)
    path = place(chosen, "report.html", out)
    chosen.report(path)
    print_file(path, json=json, open=open)


def explorer(*runs: RunName, out: OutFile = None, json: Json = False) -> None:
    """Write a page in which a model can be asked and taken apart, in any browser.

    One file with the model in it: it needs no server and no network. Type a sum, see where
    every head looks, click a part away and see which digits break. If the run was dissected,
    the page says what each part does. Two runs (`explorer fast-5 exact-5`) answer the same sum.
    Default: fast-5.
    """
    from carryscope.stages import DISSECTION

    chosen, *beside = [opened(run) for run in runs or (None,)]
    path = place(chosen, "explorer.html", out)
    why = chosen.read(DISSECTION).why
    if why:
        print_plain(f"Written without findings: {why}", to=log)
    size = chosen.explorer(beside=beside).save(path)
    print_file(path, json=json, bytes=size)


def compare(*runs: RunName, out: Path = Path("compare.html"), json: Json = False) -> None:
    """Write a page that lays runs over each other: losses, failures, circuits, proofs.

    A directory of runs stands for all of them. Each report opens from the page.

    Parameters
    ----------
    out
        The file to write.
    """
    from carryscope.sweeps.page import compare_page

    found = [one for run in runs for one in _runs_in(run)]
    if len(found) < 2:
        raise CallError(f"compare needs at least two runs. Got {len(found)}.")
    check_place(out)
    compare_page([opened(run).shelf() for run in found], out.parent).save(out)
    print_file(out, json=json)


def runs(directory: Path, /, *, json: Json = False) -> None:
    """Write an index of a directory of runs, from which each report opens.

    The page is DIRECTORY/index.html.
    """
    from carryscope.sweeps.page import index_page

    found = _runs_in(str(directory))
    if found == [str(directory)]:
        raise CallError(f"There is no finished run in {directory}.")
    out = directory / "index.html"
    check_place(out)
    index_page([opened(run).shelf() for run in found], directory).save(out)
    print_file(out, json=json)


def _runs_in(name: str) -> list[str]:
    """The finished runs below a directory; any other name stands for itself."""
    from carryscope.model.files import CONFIG_FILE, WEIGHTS_FILE

    configs = [path for depth in ("*", "*/*") for path in Path(name).glob(f"{depth}/{CONFIG_FILE}")]
    found = sorted(str(at.parent) for at in configs if (at.parent / WEIGHTS_FILE).exists())
    return [name] if (Path(name) / CONFIG_FILE).exists() or not found else found


def figures(
    run: AnyRun = None,
    /,
    *,
    out: Path,
    only: str | None = None,
    format: Ending = "svg",
    json: Json = False,
) -> None:
    """Write the figures of a run's findings, for a page or a paper. No browser is needed.

    Parameters
    ----------
    out
        The directory to write to.
    only
        Figures to write, with commas, such as circuit,depth,staircase. Default: every picture
        and table of the report; an unknown name lists them.
    format
        svg, png or pdf.
    """
    from carryscope.report.sections.report import figures as drawn

    names = [name.strip() for name in only.split(",")] if only else []
    chosen = drawn(opened(run).shelf(), names)
    paths = [str(shown.save(out / f"{name}.{format}")) for name, shown in chosen.items()]
    print_json(paths) if json else print_plain("\n".join(paths))


def place(run: Run, file: str, out: Path | None) -> Path:
    """Where to write a page: where it was asked for, in the run, or here for a shipped model."""
    from carryscope.shipped import SHIPPED

    if out is None:
        out = Path(file) if run.directory.parent == SHIPPED else run.directory / file
    check_place(out)
    return out
