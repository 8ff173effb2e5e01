"""Parts as HTML: the report and the explorer, one file each that needs nothing but a browser; and
a notebook's fragment.

In: the shelf of a run and its model, whose weights go into the explorer; or some parts. Out: text.
A page may run the scripts that were put into it and load nothing at all: its own policy forbids the
rest, so that a name or a finding that looks like markup stays text twice over.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape as escaped
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from carryscope.core.storage import write_output
from carryscope.report.explorer import Live, live_model
from carryscope.report.figures.canvas import head_colours
from carryscope.report.findings import parts_of
from carryscope.report.parts import Explorer, Part, Section, flat
from carryscope.report.sections.report import report_sections
from carryscope.report.shelf import Shelf
from carryscope.report.tables import Cell, Table
from carryscope.task.tokens import Format

REPORT_FILE = "report.html"

STYLES = ("colours", "frame", "parts", "figures", "paper")
"""The page's style sheets, in the order in which they are joined; later ones have the last word."""

EXPLORER_STYLES = tuple("base ask sum removed attention inspector tour".split())
EXPLORER_SCRIPTS = tuple(
    (
        "task numbers weights parts transformer state dom explain failures play sum attention "
        "inspector lapse removed steps tour main"
    ).split()
)
"""The same for the explorer. Each script uses those before it."""

SHADES = 10
"""Shades of a cell, from hardly any to all: as many as the style sheet has."""

FRAME_HEIGHT = 900
"""Height of the explorer in a notebook, in pixels."""

POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data: blob:"

_FILES = resources.files(__package__) / "browser"


@dataclass(frozen=True)
class Page:
    """A page as one self-contained file; in a notebook it shows itself."""

    html: str = field(repr=False)

    def save(self, path: Path | str) -> int:
        """Write the file; its size in bytes."""
        content = self.html.encode(errors="backslashreplace")  # a path may not be UTF-8
        write_output(Path(path), content)
        return len(content)

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escaped(self.html)}" sandbox="allow-scripts" title="carryscope" '
            f'style="width: 100%; height: {FRAME_HEIGHT}px; border: 0"></iframe>'
        )


def report_page(shelf: Shelf, live: Sequence[Live] = ()) -> Page:
    """The report of a run. Its model comes first in `live`, and next to it one that is proved.

    Without a model there is no explorer in the page, and no sum is drawn.
    """
    verb = shelf.config.model.layout.operation.words.verb
    title = f"How {shelf.name} {verb} {shelf.config.model.digits}-digit numbers"
    return page_of(title, "carryscope report", report_sections(shelf, live))


def explorer_page(live: Sequence[Live], question: str = "") -> Page:
    """The page in which models can be asked and taken apart, opened on a question."""
    for shelf, _ in live if question else ():
        shelf.config.model.layout.parse(question)
    names = " and ".join(shelf.name for shelf, _ in live)
    subjects = [live_model(*one, question) for one in live]
    section = Section("try", "", "Explorer", [Explorer(subjects)])
    return page_of(f"{names}: ask, and take apart", "carryscope explorer", [section])


def page_of(title: str, command: str, sections: Sequence[Section], *, reload: int = 0) -> Page:
    """Sections as a page. Where there is an explorer, sums that it takes are links into it.

    A page can reload itself, every so many seconds.
    """
    explorers = [part for part in flat(sections) if isinstance(part, Explorer)]
    live = [one for explorer in explorers for one in explorer.subjects]
    style = head_colours(":root") + _joined(STYLES, "css")
    scripts = [_read("report.js")]
    if live:
        style += _joined(EXPLORER_STYLES, "css", "explorer/")
        joined = _joined(EXPLORER_SCRIPTS, "js", "explorer/")
        scripts.append(f'(() => {{\n"use strict";\n{joined}\n}})();\n')
    environment = _environment(live=True, asked=_questions([one.config.layout for one in live]))
    html = environment.get_template("layout.html").render(
        title=title,
        command=command,
        sections=sections,
        reload=reload,
        style=style,
        scripts=scripts,
        policy=content_policy(scripts, style),
    )
    return Page(html.lstrip())


def content_policy(scripts: Iterable[str], style: str) -> str:
    """What a page may run and load: its own scripts and style, known by hash, and nothing else."""

    def known(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return f"{POLICY}; script-src {' '.join(map(known, scripts))}; style-src {known(style)}"


def notebook(finding: Any) -> str:
    """A finding, an answer or a shelf as a notebook shows it."""
    return fragment(parts_of(finding))


def fragment(parts: Iterable[Part]) -> str:
    """Parts as a piece of HTML that stands in any page, such as the output of a notebook cell.

    It has its style with it and runs nothing. What a page adds is folded, and there no figure is
    drawn: many findings may stand in one notebook.
    """
    style = head_colours(":root") + _read("colours.css")
    style = style.replace(":root", ".carryscope-finding")
    inner = _joined(("parts", "figures", "fragment"), "css")
    environment = _environment(live=False)
    return environment.get_template("fragment.html").render(
        style=f"{style}.carryscope-finding {{\n{inner}}}\n", parts=parts
    )


def _read(file: str) -> str:
    return (_FILES / file).read_text(encoding="utf-8")


def _joined(names: Iterable[str], ending: str, folder: str = "") -> str:
    return "\n".join(_read(f"{folder}{name}.{ending}") for name in names)


def _questions(layouts: Sequence[Format]) -> str:
    """What the questions that all explorers take look like; empty without an explorer."""
    if not layouts:
        return ""
    number = rf"\d{{1,{min(layout.digits for layout in layouts)}}}"
    signs = "|".join(re.escape(one.symbol) for one in layouts[0].operation.each_part)
    return rf"(?<![\w+-]){number}(?:{signs}){number}(?![\w+-])"


def _environment(*, live: bool, asked: str = "") -> jinja2.Environment:
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
        "svg": lambda figure: Markup(figure.page_svg() if live else figure.svg()),
        "code": partial(_marked, asked=asked),
        "linked": partial(_linked, asked=asked),
        "look": _look,
        "kind": lambda part: type(part).__name__.lower(),
    }
    environment.globals |= {"live": live}
    return environment


def _marked(text: str, asked: str) -> Markup:
    """Text with code between backticks, heads in their colour, and questions as links.

    It is escaped before that. `asked` is what a question looks like that the explorer takes.
    """
    shown = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    shown = re.sub(r"\bH([0-5])\b", r'<b class="head-\1">H\1</b>', shown)
    link = r'<a class="sum" href="#explorer?q=\g<0>">\g<0></a>'
    return Markup(re.sub(asked, link, shown) if asked else shown)


def _linked(cell: str, asked: str) -> Markup:
    """A cell, as a link if it opens something that is there."""
    link = getattr(cell, "link", "")
    inside = link.startswith("#")
    if not link or (inside and not asked):
        return _marked(cell, asked)
    return Markup('<a{} href="{}">{}</a>').format(
        Markup(' class="sum"') if inside else "", link, cell
    )


def _look(cell: str, table: Table, column: int) -> Markup:
    """The attributes of a cell: what its column holds, how dark it is, and what it says."""
    held = {"number": table.numeric, "prose": table.prose}
    classes = [name for name, columns in held.items() if column in columns]
    if isinstance(cell, Cell):
        classes += [cell.tone] if cell.tone else []
        classes += [f"shade-{math.ceil(cell.shade * SHADES)}"] if cell.shade else []
    tip = getattr(cell, "tip", "")
    look = Markup(' class="{}"').format(" ".join(classes)) if classes else Markup()
    return look + (Markup(' data-tip="{}"').format(tip) if tip else "")
