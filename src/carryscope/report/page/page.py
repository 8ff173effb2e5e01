"""The last step: sections become one HTML file that needs nothing but a browser.

In: the shelf of a run and its model, whose weights go into the explorer. Out: the page as text.
The page may run the two scripts that were put into it and load nothing at all: its own policy
forbids the rest, so that a name or a finding that looks like markup stays text twice over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import resources

import jinja2
from markupsafe import Markup, escape

from carryscope.model.transformer import Transformer
from carryscope.report.explorer.page import ExplorerParts, explorer_parts
from carryscope.report.figure import Figure
from carryscope.report.page.parts import Section, pictures
from carryscope.report.page.sections import report_sections
from carryscope.report.policy import content_policy
from carryscope.report.shelf import Shelf

REPORT_FILE = "report.html"

STYLES = ("frame", "parts", "figures", "paper")
"""The page's style sheets, in the order in which they are joined; later ones have the last word."""

_FILES = resources.files(__package__) / "browser"


def report_page(
    shelf: Shelf,
    model: Transformer | None,
    *,
    on_figure: Callable[[int, int], object] = lambda *_: None,
) -> str:
    """The report of a run; without a model there is no explorer in it.

    `on_figure` hears how many figures are drawn, of how many.
    """
    nothing = ExplorerParts(css="", html="", script="")
    explorer = explorer_parts(model, shelf.name, shelf.dissection) if model else nothing
    sections = report_sections(shelf, explorer.html)
    return page_of(
        _read("report.html"),
        sections,
        css=explorer.css,
        script=explorer.script,
        on_figure=on_figure,
        shelf=shelf,
        model=shelf.config.model,
    )


def page_of(
    template: str,
    sections: Sequence[Section],
    *,
    css: str = "",
    script: str = "",
    on_figure: Callable[[int, int], object] = lambda *_: None,
    **named: object,
) -> str:
    """Sections as a page, by a template that extends `layout.html` and uses what is `named`."""
    views = [view for s in sections for picture in pictures(s.parts) for view in picture.views]
    style = "".join(_read(f"{name}.css") for name in STYLES) + css
    scripts = [text for text in (_read("report.js"), script) if text]
    page = _environment(len(views), on_figure).from_string(template)
    rendered = page.render(
        sections=sections,
        style=style,
        scripts=scripts,
        policy=content_policy(scripts, style, pictures=True),
        **named,
    )
    return rendered.lstrip()


def _read(file: str) -> str:
    return (_FILES / file).read_text(encoding="utf-8")


def _environment(total: int, on_figure: Callable[[int, int], object]) -> jinja2.Environment:
    """Templates that escape everything, and draw a figure where one stands."""
    drawn = 0

    def svg(figure: Figure) -> Markup:
        nonlocal drawn
        picture = Markup(figure.page_svg())
        drawn += 1
        on_figure(drawn, total)
        return picture

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_read),
    )
    environment.filters |= {"svg": svg, "code": _with_code}
    return environment


def _with_code(text: str) -> Markup:
    """Text with what stands between backticks as code. It is escaped before that."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))
