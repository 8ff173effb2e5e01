"""A real Chromium for tests of pages: one for the whole session, with the network off.

Debian's Chromium (or Chrome) is driven by Playwright, which downloads nothing. Where there
is none, tests that ask for a page are skipped, and the first lines of the run say so.

    def test_the_page_has_a_heading(visit, tmp_path):
        page = visit(tmp_path / "report.html", width=360, dark=True)
        assert page.get_by_role("heading").count() > 0

When the test ends, a page that asked for anything on the network, threw an error or wrote
one to its console fails it.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

NAMES = ("chromium", "google-chrome", "chromium-browser")
"""What Debian, Google and older systems call it."""

LOCAL = ("file:", "data:", "blob:")
"""Addresses that need no network."""

Visit = Callable[..., Page]


def find_chromium() -> str | None:
    """Where Chromium is, if it is installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def pytest_report_header() -> str:
    where = find_chromium()
    if where is None:
        return "browser tests: SKIPPED, no Chromium here (apt-get install chromium)"
    return f"browser tests: run in {where}"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser that all tests share."""
    executable = find_chromium()
    if executable is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        # No sandbox: as root, in a container, Chromium does not start with one.
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Visit]:
    """Open a file in a page of its own: `visit(path, fragment="", width=1280, dark=False)`."""
    complaints: list[str] = []
    contexts = []

    def open_page(
        path: Path,
        fragment: str = "",
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        calm: bool = True,
    ) -> Page:
        context = chromium.new_context(
            offline=True,
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce" if calm else "no-preference",
        )
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        _listen(page, complaints)
        page.goto(path.absolute().as_uri() + fragment)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _listen(page: Page, complaints: list[str]) -> None:
    """Note down whatever a page that needs no network and has no bugs does not do."""

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(f"console: {message.text}")

    def on_request(address: str) -> None:
        if not address.startswith(LOCAL):
            complaints.append(f"request: {address[:200]}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("request", lambda request: on_request(request.url))
