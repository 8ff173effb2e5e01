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
from functools import partial
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape

from carryscope.core.progress import Progress, silent
from carryscope.dissection.asking import answers_without
from carryscope.model.transformer import Transformer
from carryscope.report.explorer.page import ExplorerParts, explorer_parts
from carryscope.report.figures.canvas import head_colours
from carryscope.report.findings import parts_of
from carryscope.report.parts import Folded, More, Part, Picture, Section, flat
from carryscope.report.policy import content_policy
from carryscope.report.sections.report import report_sections
from carryscope.report.sections.why import sums_to_try, telling
from carryscope.report.shelf import Shelf
from carryscope.report.tables import Cell, Table

REPORT_FILE = "report.html"

STYLES = ("colours", "frame", "parts", "figures", "paper")
"""The page's style sheets, in the order in which they are joined; later ones have the last word."""

SHADES = 10
"""Shades of a cell, from hardly any to all: as many as the style sheet has."""

_FILES = resources.files(__package__) / "browser"


def report_page(
    shelf: Shelf, model: Transformer | None = None, *, progress: Progress = silent
) -> str:
    """The report of a run; without a model there is no explorer in it, and no sum is drawn."""
    config = shelf.config.model
    explorer, example = ExplorerParts(css="", html="", script=""), None
    if model is not None:
        example = telling(answers_without(model, sums_to_try(config.digits, shelf.risk), ()))
        explorer = explorer_parts(model, shelf.name, shelf.dissection, shelf.risk)
    return page_of(
        _read("report.html"),
        report_sections(shelf, explorer.html, example),
        css=explorer.css,
        script=explorer.script,
        digits=config.digits if model is not None else 0,
        progress=progress,
        shelf=shelf,
        model=config,
    )


def page_of(
    template: str,
    sections: Sequence[Section],
    *,
    css: str = "",
    script: str = "",
    digits: int = 0,
    progress: Progress = silent,
    **named: object,
) -> str:
    """Sections as a page, by a template that extends `layout.html` and uses what is `named`.

    Sums of up to so many `digits` become links into the explorer of the page.
    """
    figures = sum(isinstance(part, Picture) for part in flat(sections))
    style = head_colours(":root") + "".join(_read(f"{name}.css") for name in STYLES) + css
    scripts = [text for text in (_read("report.js"), script) if text]
    with progress("report", figures, "figures") as advance:

        def drawn(figure: Any) -> str:
            svg: str = figure.page_svg()
            advance(1)
            return svg

        rendered = (
            _environment(drawn, live=True, digits=digits)
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
    style = head_colours(":root") + _read("colours.css")
    style = style.replace(":root", ".carryscope-finding")
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


def _environment(drawn: Callable[[Any], str], *, live: bool, digits: int = 0) -> jinja2.Environment:
    """Templates that escape everything, and draw a figure where one stands.

    `live` is whether the page has its script, which saves and copies.
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
        "code": partial(_marked, digits=digits),
        "look": _look,
        "kind": lambda part: type(part).__name__.lower(),
    }
    environment.globals |= {"live": live}
    return environment


def _marked(text: str, digits: int) -> Markup:
    """Text with code between backticks, heads in their colour, and sums as links.

    It is escaped before that. A sum is a link if the explorer takes numbers of its length.
    """
    told = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    told = re.sub(r"\bH([0-5])\b", r'<b class="head-\1">H\1</b>', told)
    number = rf"\d{{1,{digits}}}"
    link = r'<a class="sum" href="#explorer?q=\g<0>">\g<0></a>'
    return Markup(re.sub(rf"(?<![\w+]){number}\+{number}(?![\w+])", link, told) if digits else told)


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
