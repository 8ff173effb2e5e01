"""A model as the explorer takes it: its weights, its shape, and what is known about it, as data.

In: a run's shelf and its model. Out: `LiveModel`. Every text that comes from outside (names,
findings) is data to the page, never markup. No weight is rounded: the page has the run's own
float32 numbers. Their bytes are sorted into four planes before they are deflated, because exponents
are alike and the other bytes are noise: a 5-digit model of the paper's shape shrinks from 16.8 MB
of base64 to 14.3.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor

from carryscope.dissection.dissect import Dissection
from carryscope.dissection.samples import Samples
from carryscope.model.config import ModelConfig
from carryscope.model.prediction import answer
from carryscope.model.transformer import LAYER_NORM_EPSILON, Transformer
from carryscope.report.lapse import moments
from carryscope.report.nodes import UNKNOWN, UNUSED, node_words
from carryscope.report.sections.verdict import is_proved
from carryscope.report.shelf import Shelf
from carryscope.report.words import is_sum, nines
from carryscope.shipped import run_directory
from carryscope.task.operation import ADD, BASE, SUBTRACT, Operation
from carryscope.task.questions import Questions
from carryscope.task.tokens import POSITIVE, Format
from carryscope.verification.risk import RiskFinding

PLAIN = {
    ADD: (("12345", "54321"), ("23816", "15327")),
    SUBTRACT: (("98765", "12344"), ("91826", "15319")),
}
"""Numbers without a carry and with carries, repeated to the left; no column passes one on."""

CASCADES = {
    ADD: ["25+79", "445+555", "1234+8769", "54321+45679"],
    SUBTRACT: ["100-1", "1000-1", "10000-1"],
}
"""Questions to begin with: a carry passes one column, then one more in each."""

CHUNK = 128
"""Questions at a time while means are taken: a few megabytes for each site."""

NOTHING = (
    "This run has no findings, so the page cannot say what each part is for. "
    "carryscope dissect RUN finds out; then write the page again."
)
"""Where the source of what is said stands, if there is none."""


@dataclass(frozen=True)
class LiveModel:
    """A model in an explorer."""

    name: str
    """What its run is called. It comes from a user, so it is text and never markup."""
    config: ModelConfig
    data: str
    """What the scripts read: JSON that no parser of HTML can take for anything else."""
    weights: str


Live = tuple[Shelf, Transformer]
"""A run with its model."""


def live_model(shelf: Shelf, model: Transformer, question: str = "") -> LiveModel:
    """A model with what was found about it; its explorer opens on the question."""
    found, risk = shelf.dissection, shelf.risk
    weights, places = pack(model, found.seed if found else 0)
    chosen = examples(model.config.layout)
    sums = [example["sum"] for example in chosen]
    data = {
        "layout": _layout(model.config),
        "start": question,
        "examples": chosen,
        "moments": moments(run_directory(shelf.where), model.config, sums),
        "sayings": sayings(found),
        "failures": _failures(risk, model) if risk else None,
        "proved": is_proved(shelf),
        "places": places,
    }
    return LiveModel(shelf.name, model.config, _inert_json(data), weights)


def _failures(risk: RiskFinding, model: Transformer) -> list[tuple[str, str]]:
    """The sums that were found to fail, the likeliest first, and what the model answers."""
    layout = model.config.layout
    sums = [str(one.simplest) for one in risk.strata if is_sum(one.simplest, layout)]
    if not sums:
        return []
    questions = Questions.joined([layout.parse(text) for text in sums])
    said = answer(model, questions, free_running=True).predicted
    return [(text, layout.text(tokens)) for text, tokens in zip(sums, said, strict=True)]


def examples(layout: Format) -> list[dict[str, str]]:
    """Questions to pick, from no carry to one that passes four columns, as far as they fit."""
    cases: dict[str, tuple[str, str]] = {}
    for one in layout.operation.each_part:
        words, (base, uses, passes) = one.words, one.subtasks.classes
        about = (f"no {words.carry}", words.carries)
        for label, said, pair in zip((base, uses), about, PLAIN[one], strict=True):
            text = one.symbol.join((number * layout.digits)[-layout.digits :] for number in pair)
            cases[label] = (text, said)
        for depth, text in enumerate(CASCADES[one], start=1):
            label = f"Simple {passes}" if depth == 1 else f"Cascade {depth}"
            label += " -" * (label in cases)
            if is_sum(text, layout):
                cases[label] = (text, nines(depth, words))
    return [{"label": label, "sum": text, "about": about} for label, (text, about) in cases.items()]


def _layout(config: ModelConfig) -> dict[str, Any]:
    """The shape of the model and of its questions, as the page's scripts call them."""
    layout = config.layout
    operations = [_operation(one) for one in layout.operation.each_part]
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
        "positionNames": layout.position_names,
        "answerNames": layout.answer_names,
        "rowNames": layout.row_names,
        "epsilon": LAYER_NORM_EPSILON,
        "operations": operations,
        "operation": operations[0] | {"words": layout.operation.words},
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
        "signed": operation.signed,
        "subtasks": operation.subtasks,
        "words": operation.words,
    }


def _inert_json(data: object) -> str:
    """JSON without the signs that HTML is made of, `</script>` included."""
    text = msgspec.json.encode(data).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def sayings(dissection: Dissection | None) -> dict[str, Any]:
    """What is known about each part, by its name.

    `looked`: whether anyone looked for what nodes do; then nothing said is nothing found. `nodes`:
    a sentence or two about each, such as `P13.L0.H2`. `carries`: the same as short as can be,
    `BA(3)`. `roles`: what each head attends to. `staircase`: where they look, in a sentence.
    `source`: what all this rests on; without findings, how to get them.
    """
    attention = dissection.attention if dissection else None
    words = node_words(dissection) if dissection else {}
    return {
        "looked": bool(words),
        "nodes": {node: known.sentence for node, known in words.items()},
        "carries": {node: known.carries for node, known in words.items() if _named(known.carries)},
        "roles": {
            f"L{head.layer}.H{head.head}": head.role
            for head in (attention.heads if attention else [])
            if head.role
        },
        "staircase": attention.statement if attention else "",
        "source": _source(dissection) if dissection else NOTHING,
    }


def _named(carries: str) -> bool:
    """Whether a node carries something by itself."""
    return bool(carries) and carries not in (UNUSED, UNKNOWN) and " with " not in carries


def _source(dissection: Dissection) -> str:
    """The evidence behind the sentences, and what was not looked for."""
    sources = []
    if dissection.subtasks:
        sources.append(
            f"purposes by interchange ({dissection.subtasks.pairs:,} pairs of questions)"
        )
    if dissection.nodes:
        nodes = dissection.nodes
        sources.append(f"failures by {nodes.how} ablation ({nodes.questions:,} questions)")
    missing = [part for part in ("attention", "nodes", "subtasks") if not getattr(dissection, part)]
    lines = f"From the run's findings: {'; '.join(sources)}; teacher-forced." if sources else ""
    rest = f"Not looked for: {', '.join(missing)} (carryscope dissect RUN)." if missing else ""
    return f"{lines} {rest}".strip()


class Place(msgspec.Struct, frozen=True):
    """Where a tensor stands among all numbers."""

    name: str
    start: int
    length: int


def pack(model: Transformer, seed: int) -> tuple[str, list[Place]]:
    """The weights, and the means that ablated parts are set to, as one text."""
    tensors = dict(model.state_dict()) | reference_means(model, seed)
    arrays = {name: tensor.detach().numpy().astype("<f4") for name, tensor in tensors.items()}
    places, start = [], 0
    for name, array in arrays.items():
        places.append(Place(name, start, array.size))
        start += array.size
    numbers = np.concatenate([array.ravel() for array in arrays.values()])
    planes = np.ascontiguousarray(numbers.view(np.uint8).reshape(-1, 4).T)
    return base64.b64encode(zlib.compress(planes.tobytes())).decode("ascii"), places


def reference_means(model: Transformer, seed: int) -> dict[str, Tensor]:
    """What mean ablation puts in the place of each part: the means that the engine takes.

    They are over the engine's reference questions, at the same row, teacher-forced.
    """
    sites = _ablated_sites(model)
    reference = Samples.of(model.config.layout, seed).varied
    tokens = torch.from_numpy(model.config.layout.encode(reference))
    totals = dict.fromkeys(sites, torch.zeros(()))
    with torch.inference_mode():
        for start in range(0, len(tokens), CHUNK):
            _, cache = model.run_with_cache(tokens[start : start + CHUNK], list(sites))
            for site in sites:
                totals[site] = totals[site] + cache[site].sum(0)
    return {name: totals[site] / len(tokens) for site, name in sites.items()}


def _ablated_sites(model: Transformer) -> dict[str, str]:
    """The sites that can be ablated in the page, and what their means are called there."""
    parts = {"attn.hook_z": "z", "hook_mlp_out": "mlp_out", "hook_resid_post": "resid_post"}
    return {
        f"blocks.{layer}.{part}": f"mean.{layer}.{name}"
        for layer in range(model.config.layers)
        for part, name in parts.items()
        if model.config.d_mlp or name != "mlp_out"
    }
