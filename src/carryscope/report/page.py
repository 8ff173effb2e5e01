"""Parts as HTML: the report, one file that needs nothing but a browser; and a notebook's fragment.

In: the shelf of a run and its model, whose weights go into the explorer; or some parts. Out: text.
The page may run the two scripts that were put into it and load nothing at all: its own policy
forbids the rest, so that a name or a finding that looks like markup stays text twice over.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape

from carryscope.core.progress import Progress, silent
from carryscope.model.transformer import Transformer
from carryscope.report.explorer.page import ExplorerParts, explorer_parts
from carryscope.report.findings import parts_of
from carryscope.report.parts import Cell, Folded, More, Part, Picture, Section, Table, flat
from carryscope.report.policy import content_policy
from carryscope.report.sections.report import report_sections
from carryscope.report.shelf import Shelf

REPORT_FILE = "report.html"

STYLES = ("colours", "frame", "parts", "figures", "paper")
"""The page's style sheets, in the order in which they are joined; later ones have the last word."""

SHADES = 10
"""Shades of a cell, from hardly any to all: as many as the style sheet has."""

_FILES = resources.files(__package__) / "browser"


def report_page(
    shelf: Shelf, model: Transformer | None = None, *, progress: Progress = silent
) -> str:
    """The report of a run; without a model there is no explorer in it."""
    nothing = ExplorerParts(css="", html="", script="")
    explorer = explorer_parts(model, shelf.name, shelf.dissection) if model else nothing
    return page_of(
        _read("report.html"),
        report_sections(shelf, explorer.html),
        css=explorer.css,
        script=explorer.script,
        progress=progress,
        shelf=shelf,
        model=shelf.config.model,
    )


def page_of(
    template: str,
    sections: Sequence[Section],
    *,
    css: str = "",
    script: str = "",
    progress: Progress = silent,
    **named: object,
) -> str:
    """Sections as a page, by a template that extends `layout.html` and uses what is `named`."""
    figures = sum(isinstance(part, Picture) for part in flat(sections))
    style = "".join(_read(f"{name}.css") for name in STYLES) + css
    scripts = [text for text in (_read("report.js"), script) if text]
    with progress("report", figures, "figures") as advance:

        def drawn(figure: Any) -> str:
            svg: str = figure.page_svg()
            advance(1)
            return svg

        rendered = (
            _environment(drawn, live=True)
            .from_string(template)
            .render(
                sections=sections,
                style=style,
                scripts=scripts,
                policy=content_policy(scripts, style, pictures=True),
                **named,
            )
        )
    return rendered.lstrip()


def notebook(finding: Any) -> str:
    """A finding, an answer or a shelf as a notebook shows it."""
    return fragment(parts_of(finding))


def fragment(parts: Iterable[Part]) -> str:
    """Parts as a piece of HTML that stands in any page, such as the output of a notebook cell.

    It has its style with it and runs nothing. Figures are drawn only where they are in sight.
    """
    style = _read("colours.css").replace(":root", ".carryscope-finding")
    inner = "".join(_read(f"{name}.css") for name in ("parts", "figures", "fragment"))
    environment = _environment(lambda figure: figure.svg(), live=False)
    return environment.get_template("fragment.html").render(
        style=f"{style}.carryscope-finding {{\n{inner}}}\n", parts=_in_short(parts)
    )


def _in_short(parts: Iterable[Part]) -> list[Part]:
    """Parts without the pictures that are not in sight; what a page adds is one fold at the end."""
    short: list[Part] = []
    more: list[Part] = []
    for part in parts:
        if isinstance(part, Folded):
            short.append(replace(part, parts=_no_pictures(part.parts)))
        elif isinstance(part, Section):
            short.append(replace(part, parts=_in_short(part.parts)))
        elif isinstance(part, More):
            more += _no_pictures(part.parts)
        else:
            short.append(part)
    return [*short, *([Folded("More", more)] if more else [])]


def _no_pictures(parts: Iterable[Part]) -> list[Part]:
    return [part for part in _in_short(parts) if not isinstance(part, Picture)]


def _read(file: str) -> str:
    return (_FILES / file).read_text(encoding="utf-8")


def _environment(drawn: Callable[[Any], str], *, live: bool) -> jinja2.Environment:
    """Templates that escape everything, and draw a figure where one stands.

    `live` is whether the page has its script, which saves, copies and switches views.
    """
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_read),
    )
    environment.filters |= {
        "svg": lambda figure: Markup(drawn(figure)),
        "code": _with_code,
        "look": _look,
        "kind": lambda part: type(part).__name__.lower(),
    }
    environment.globals |= {"live": live}
    return environment


def _with_code(text: str) -> Markup:
    """Text with what stands between backticks as code. It is escaped before that."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _look(cell: str, table: Table, column: int) -> Markup:
    """The attributes of a cell: what its column holds, how dark it is, and what it says."""
    held = {"number": table.numeric, "paper": table.paper, "prose": table.prose}
    classes = [name for name, columns in held.items() if column in columns]
    if isinstance(cell, Cell):
        classes += [cell.tone] if cell.tone else []
        classes += [f"shade-{math.ceil(cell.shade * SHADES)}"] if cell.shade else []
    tip = getattr(cell, "tip", "")
    look = Markup(' class="{}"').format(" ".join(classes)) if classes else Markup()
    return look + (Markup(' data-tip="{}"').format(tip) if tip else "")
