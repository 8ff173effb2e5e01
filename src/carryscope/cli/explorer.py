"""`carryscope explorer`: a page in which a run's model can be asked and taken apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from carryscope.cli.console import log, print_json, print_plain
from carryscope.core.errors import CallError

if TYPE_CHECKING:
    from carryscope.dissection.findings import Dissection
    from carryscope.stages import Run


def explorer(run: Path, /, *, out: Path | None = None, json: bool = False) -> None:
    """Write a page in which a model can be asked and taken apart, in any browser.

    One file, with the model in it: it needs no server and no network. Type a sum, see where
    every head looks, click a part away and see which digits break. What each part is for is
    told if the run was dissected.

    Parameters
    ----------
    run
        The run directory.
    out
        The file to write. Default: explorer.html in the run directory.
    json
        Print the path and the size in bytes as JSON.
    """
    from carryscope.core.storage import write_bytes
    from carryscope.report.explorer.page import explorer_page
    from carryscope.stages import Run

    shelf = Run(run)
    path = run / "explorer.html" if out is None else out
    if path.is_dir():
        raise CallError(f"--out must be a file to write. Got the directory {path}.")
    with log.status("Writing the explorer ..."):
        page = explorer_page(shelf.model(), run_name(run), _findings(shelf)).html.encode()
        write_bytes(path, page)
    if json:
        print_json({"path": str(path), "bytes": len(page)})
        return
    print_plain(f"The explorer of {run_name(run)}, {len(page) / 1e6:.1f} MB: open it in a browser.")
    print_plain(path)


def run_name(run: Path) -> str:
    """The name of a run: that of its directory, `.` included."""
    return run.name or run.resolve().name


def _findings(shelf: Run) -> Dissection | None:
    """What a dissection found in these weights; without it the page says less, but works."""
    if not shelf.dissected:
        return None
    try:
        return shelf.dissection()
    except CallError as error:
        log.print(f"Written without findings: {error}", markup=False, soft_wrap=True)
        return None
