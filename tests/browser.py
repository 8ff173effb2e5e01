"""A real Chromium for tests of pages: one for the whole session, with the network off.

Debian's Chromium (or Chrome) is driven by Playwright, which downloads nothing. Where there
is none, tests that ask for a page are skipped, and the first lines of the run say so.

    def test_the_page_has_a_heading(visit, tmp_path):
        page = visit(tmp_path / "report.html", width=360, dark=True)
        assert page.get_by_role("heading").count() > 0

When the test ends, a page that asked for anything on the network, opened a dialog, threw an
error or wrote one to its console fails it.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    sync_playwright,
)

NAMES = ("chromium", "google-chrome", "chromium-browser")
"""What Debian, Google and older systems call it."""

LOCAL = ("file:", "data:", "blob:")
"""Addresses that need no network."""


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


class Visitor:
    """Opens files, each in a page of its own, and notes down what pages should not do."""

    def __init__(self, chromium: Browser) -> None:
        self._chromium = chromium
        self._contexts: list[BrowserContext] = []
        self.complaints: list[str] = []

    def __call__(
        self,
        path: Path,
        fragment: str = "",
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        calm: bool = True,
    ) -> Page:
        context = self._chromium.new_context(
            offline=True,
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce" if calm else "no-preference",
        )
        context.set_default_timeout(10_000)
        self._contexts.append(context)
        page = context.new_page()
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", self._on_dialog)
        page.on("request", self._on_request)
        page.goto(path.absolute().as_uri() + fragment)
        return page

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"console: {message.text}")

    def _on_dialog(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith(LOCAL):
            self.complaints.append(f"request: {request.url[:200]}")

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Visitor]:
    """Open a file: `visit(path, fragment="", width=1280, dark=False)`."""
    visitor = Visitor(chromium)
    yield visitor
    visitor.close()
    assert visitor.complaints == []
