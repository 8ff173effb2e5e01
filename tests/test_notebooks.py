"""The notebooks run from top to bottom, are committed as they run, and show themselves."""

import re
from html import escape
from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.name)
def pair(request):
    """A notebook as it runs here, and as it is committed."""
    made = nbformat.read(request.param, as_version=4)
    nbclient.NotebookClient(made, timeout=300, kernel_name="python3").execute()
    return made, nbformat.read(request.param, as_version=4)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_a_notebook_prints_what_was_committed(pair):
    made, kept = map(code, pair)
    assert all(cell.execution_count for cell in [*made, *kept])
    assert [_printed(cell) for cell in made] == [_printed(cell) for cell in kept]


def _printed(cell) -> str:
    """What a cell printed, but for percentages: another machine may round those otherwise."""
    text = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    return re.sub(r"\d+%", "%", text)


def test_a_notebook_is_short_enough_to_open_and_shows_figures(pair):
    shown = [output for cell in code(pair[1]) for output in cell.outputs]
    assert sum("image/svg+xml" in output.get("data", {}) for output in shown) >= 3
    assert not any(output.output_type == "error" for output in shown)
    sizes = sorted(len(str(output)) for output in shown)
    assert sizes[-2] < 30_000, "the largest holds a live model"
    assert sizes[-1] < 300_000


def test_a_notebook_as_a_page_has_a_live_model_that_answers(pair, visit, tmp_path):
    page = visit(_written(pair[0], tmp_path / "notebook.html"))
    assert page.locator("svg").count() >= 3
    assert "A3 is 0 and should be 1" in page.locator("body").inner_text()
    frame = page.frames[1]
    frame.wait_for_selector(".carryscope-explorer[aria-busy=false]")
    frame.locator("[data-part=input]").fill("12+34")
    assert frame.locator("[data-part=short-answer]").inner_text().startswith("12+34 = ")
    assert frame.locator("[data-part=moment]").get_attribute("max") == "6"


def _written(notebook, path: Path) -> Path:
    """The outputs of a notebook in one page, as converters to HTML put them there."""
    shown = []
    for cell in notebook.cells:
        shown.append(f"<pre>{escape(cell.source)}</pre>")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            text = escape(output.get("text", ""))
            shown.append(data.get("text/html") or data.get("image/svg+xml") or text)
    path.write_text(f"<!doctype html><meta charset=utf-8>{''.join(shown)}")
    return path
