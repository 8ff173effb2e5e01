"""Pages written once and opened by many tests."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Visitor
from playwright.sync_api import Browser, Locator, Page
from report.shelves import bare_shelf

import carryscope
from carryscope.model.transformer import Transformer
from carryscope.report.page import explorer_page


@pytest.fixture(scope="session")
def shipped_page(tmp_path_factory) -> Path:
    """The explorer of the model that comes with the package."""
    run = carryscope.load()
    path = tmp_path_factory.mktemp("shipped") / "explorer.html"
    run.explorer().save(path)
    return path


@dataclasses.dataclass(frozen=True)
class OpenExplorer:
    """An explorer in a browser, and short ways to its parts."""

    page: Page

    def part(self, name: str) -> Locator:
        return self.page.locator(f"[data-part={name}]")

    def named(self, name: str) -> Locator:
        """What takes a part of the model away, in the maps."""
        return self.page.locator(f'.looks [data-name="{name}"]')

    @property
    def answer(self) -> str:
        return "".join(self.page.locator(".answer b").all_text_contents())

    @property
    def status(self) -> str:
        return self.part("status").inner_text()

    @property
    def removed(self) -> list[str]:
        return [
            b.get_attribute("data-name") for b in self.part("removed").get_by_role("button").all()
        ]

    def type(self, text: str) -> None:
        self.part("input").fill(text)

    def call(self, expression: str, argument: Any = None) -> Any:
        """Evaluate an expression in the page, with `explorer` and `argument` at hand."""
        root = "document.querySelector('.carryscope-explorer')"
        code = f"(argument) => {{ const {{ explorer }} = {root}; return {expression} }}"
        return self.page.evaluate(code, argument)


def opened(page: Page) -> OpenExplorer:
    page.wait_for_selector(".carryscope-explorer[aria-busy=false]")
    return OpenExplorer(page)


AS_OPENED = """(
    document.activeElement.blur(),
    explorer.preview(null),
    explorer.tour.close(),
    explorer.store.past.length = 0,
    explorer.store.tell(explorer.first()),
    explorer.sum.settled())"""


@pytest.fixture(scope="session")
def _open_explorer(chromium: Browser, shipped_page: Path) -> Iterator[tuple[OpenExplorer, Visitor]]:
    visitor = Visitor(chromium)
    yield opened(visitor(shipped_page)), visitor
    visitor.close()


@pytest.fixture
def shipped(_open_explorer) -> Iterator[OpenExplorer]:
    """The explorer of the shipped model as it is when one opens it.

    The page is kept open from test to test: to unpack 14 MB takes longer than most tests.
    """
    explorer, visitor = _open_explorer
    explorer.page.mouse.move(0, 0)
    explorer.call(AS_OPENED)
    yield explorer
    assert visitor.complaints == []


@pytest.fixture
def explore(visit: Visitor) -> Callable[..., OpenExplorer]:
    """Open an explorer and wait until its model runs."""

    def open_explorer(path: Path, fragment: str = "", **options) -> OpenExplorer:
        return opened(visit(path, fragment, **options))

    return open_explorer


@pytest.fixture
def explore_model(explore, tmp_path) -> Callable[..., OpenExplorer]:
    """The explorer of a model that has no run."""

    def open_model(model: Transformer, name: str = "a model", dissection=None, **options):
        path = tmp_path / "explorer.html"
        explorer_page([(bare_shelf(model, name, dissection), model)]).save(path)
        return explore(path, **options)

    return open_model
