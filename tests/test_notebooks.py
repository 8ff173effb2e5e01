"""The notebooks run from top to bottom, and are committed as they run."""

import re
from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_from_top_to_bottom(path):
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    made = [cell for cell in notebook.cells if cell.cell_type == "code"]
    kept = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert [cell.source for cell in made if not cell.execution_count] == []
    assert [_printed(cell) for cell in made] == [_printed(cell) for cell in kept]


def _printed(cell) -> str:
    """What a cell printed, but for percentages: another machine may round those otherwise."""
    text = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    return re.sub(r"\d+%", "%", text)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_committed_with_its_output(path):
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    shown = [output for cell in cells for output in cell.outputs]
    assert sum("image/svg+xml" in output.get("data", {}) for output in shown) >= 5
    assert not any(output.output_type == "error" for output in shown)
