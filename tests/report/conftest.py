"""The report of the shipped model: written once, opened once, read by many tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Visitor
from playwright.sync_api import Browser, Page
from report.shelves import shipped_shelf

import carryscope
from carryscope.report.page import report_page


@pytest.fixture(scope="session")
def written(tmp_path_factory) -> Path:
    """The file of the whole report of the shipped model, the model in it."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    exact = carryscope.load("exact-5")
    live = [(shipped_shelf(), carryscope.load().model()), (exact.shelf(), exact.model())]
    report_page(shipped_shelf(), live).save(path)
    return path


AS_OPENED = """() => {
    document.querySelectorAll("details").forEach((one) => (one.open = false));
    history.replaceState(null, "", " ");
    scrollTo(0, 0);
}"""


@pytest.fixture(scope="session")
def _kept_open(chromium: Browser, written: Path) -> Iterator[tuple[Page, Visitor]]:
    visitor = Visitor(chromium)
    page = visitor(written)
    page.wait_for_selector(".carryscope-explorer.second[aria-busy=false]")
    page.wait_for_selector(".carryscope-explorer:not(.second)[aria-busy=false]")
    yield page, visitor
    visitor.close()


@pytest.fixture
def report(_kept_open) -> Iterator[Page]:
    """The report in a browser, as it is when one opens it; the page is kept from test to test."""
    page, visitor = _kept_open
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(media="screen", color_scheme="light", reduced_motion="reduce")
    page.keyboard.press("Escape")
    page.mouse.move(0, 0)
    page.evaluate(AS_OPENED)
    yield page
    assert visitor.complaints == []
