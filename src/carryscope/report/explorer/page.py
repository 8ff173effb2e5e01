"""The explorer as a page of its own, or as parts that another page embeds.

In: a model, the name of its run, and its dissection if there is one. Out: HTML with the weights
in it, in which the model runs. The page loads nothing from the network, and every text that comes
from outside (names, findings) is data to it, never markup.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import msgspec

from carryscope.core.storage import write_output
from carryscope.dissection.findings import Dissection
from carryscope.model.config import ModelConfig
from carryscope.model.transformer import LAYER_NORM_EPSILON, Transformer
from carryscope.report.explorer.examples import examples
from carryscope.report.explorer.sayings import sayings
from carryscope.report.explorer.weights import pack
from carryscope.report.figures.canvas import head_colours
from carryscope.report.policy import content_policy
from carryscope.report.words import row_names
from carryscope.task.operation import ADD, BASE, Operation
from carryscope.task.tokens import POSITIVE
from carryscope.verification.risk import RiskFinding

SCRIPTS = (
    "task numbers weights parts transformer state dom explain sum attention inspector removed "
    "steps tour main"
).split()
"""The page's JavaScript in the order in which it is joined; each file uses those before it."""

STYLES = "base sum removed attention inspector tour".split()
"""Its style sheets; each says how one part of the page looks."""

FRAME_HEIGHT = 900
"""Height of the explorer in a notebook, in pixels."""

_FILES = resources.files(__package__) / "browser"


@dataclass(frozen=True)
class ExplorerParts:
    """What a page needs to hold an explorer; nothing in it reaches outside its root element."""

    css: str
    """Rules, all of them below `.carryscope-explorer`: for a style element."""
    html: str
    """One element, with the weights in it: for the body."""
    script: str
    """One function that calls itself: for a script element after the html."""


def explorer_parts(
    model: Transformer,
    name: str,
    dissection: Dissection | None = None,
    risk: RiskFinding | None = None,
) -> ExplorerParts:
    """The explorer of a model; `name` is text, and so is what the findings say."""
    packed = pack(model, dissection.seed if dissection else 0)
    data = {
        "layout": _layout(model.config),
        "examples": examples(model.config.digits),
        "sayings": sayings(dissection),
        "failures": [one.simplest for one in risk.strata if one.simplest] if risk else None,
        "places": packed.places,
    }
    html = _template("explorer.html").render(
        name=name, config=model.config, data=_inert_json(data), weights=packed.text
    )
    script = f'(() => {{\n"use strict";\n{_joined(SCRIPTS, "js")}\n}})();\n'
    css = head_colours(".carryscope-explorer") + _joined(STYLES, "css")
    return ExplorerParts(css=css, html=html, script=script)


@dataclass(frozen=True)
class ExplorerPage:
    """The explorer as one self-contained file; in a notebook it shows itself."""

    html: str

    def save(self, path: Path | str) -> int:
        """Write the file; its size in bytes."""
        content = self.html.encode()
        write_output(Path(path), content)
        return len(content)

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" title="carryscope '
            f'explorer" style="width: 100%; height: {FRAME_HEIGHT}px; border: 0"></iframe>'
        )


def explorer_page(
    model: Transformer,
    name: str,
    dissection: Dissection | None = None,
    risk: RiskFinding | None = None,
) -> ExplorerPage:
    """The page in which a model can be asked and taken apart."""
    parts = explorer_parts(model, name, dissection, risk)
    frame = _read("page.css") + parts.css
    page = _template("page.html").render(
        name=name,
        policy=content_policy([parts.script], frame),
        css=frame,
        html=parts.html,
        script=parts.script,
    )
    return ExplorerPage(page)


def _layout(config: ModelConfig) -> dict[str, Any]:
    """The shape of the model and of its questions, as the page's scripts call them."""
    layout = config.layout
    names = layout.position_names
    return {
        "digits": config.digits,
        "signs": layout.signs,
        "symbols": layout.symbols,
        "layers": config.layers,
        "heads": config.heads,
        "dModel": config.d_model,
        "dHead": config.d_head,
        "dMlp": config.d_mlp,
        "context": config.context,
        "firstRow": layout.first_row,
        "lastRow": layout.answer_rows.stop,
        "allRows": list(range(layout.answer_rows.stop)),
        "positionNames": names,
        "answerNames": layout.answer_names,
        "rowNames": [*names[: layout.first_row], *row_names(layout)],
        "epsilon": LAYER_NORM_EPSILON,
        "operation": _operation(ADD),
    }


def _operation(operation: Operation) -> dict[str, Any]:
    """What a column does, and how it is spoken of."""
    return {
        "symbol": operation.symbol,
        "positive": POSITIVE,
        "base": BASE,
        "raw": operation.raw.tolist(),
        "state": operation.state.tolist(),
        "step": operation.step,
        "subtasks": operation.subtasks,
        "words": operation.words,
    }


def _inert_json(data: object) -> str:
    """JSON that no parser of HTML can take for anything else, `</script>` included."""
    text = msgspec.json.encode(data).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _joined(names: list[str], ending: str) -> str:
    return "\n".join(_read(f"{name}.{ending}") for name in names)


def _read(file: str) -> str:
    return (_FILES / file).read_text(encoding="utf-8")


def _template(file: str) -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_read(file))
