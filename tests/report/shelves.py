"""Shelves that the tests of the report share, and ways to look at a page without a browser."""

import dataclasses
from functools import cache
from html.parser import HTMLParser

import msgspec
import torch
from report.certificates import certificate

import carryscope
from carryscope.dissection.dissect import dissect
from carryscope.model.config import FORMAT_VERSION, ModelConfig
from carryscope.model.files import weights_hash
from carryscope.model.transformer import Transformer, initialise
from carryscope.report.shelf import Absent, Shelf
from carryscope.training.config import RunConfig
from carryscope.verification.faithfulness import faithful
from carryscope.verification.risk import measure_risk

HOSTILE = """</script></title><script>alert(1)</script><img src=x onerror=alert(1)>"'`{{ 7*7 }}"""
"""What nobody calls a run, or anything else."""


@cache
def shipped_shelf() -> Shelf:
    """All findings about the shipped model, and a certificate made by hand."""
    return dataclasses.replace(carryscope.load().shelf(), certificate=certificate(), absent={})


@cache
def untrained_shelf(**fields) -> Shelf:
    """All findings about a model that was never trained."""
    config = ModelConfig(**{"digits": 2, "heads": 3, "d_model": 48, **fields})
    model = initialise(Transformer(config), torch.Generator().manual_seed(0))
    *_, found = dissect(model)
    return Shelf(
        name="untrained",
        where="runs/untrained",
        config=RunConfig(format_version=FORMAT_VERSION, model=config, source="nothing.pth"),
        weights_sha256=weights_hash(model),
        dissection=found,
        risk=measure_risk(model),
        faithfulness=faithful(model) if fields else None,
        absent={"certificate": Absent("a certificate", "carryscope certify runs/untrained")},
    )


def bare_shelf(model: Transformer, name: str = "a model", dissection=None) -> Shelf:
    """A model that has no run."""
    config = RunConfig(format_version=FORMAT_VERSION, model=model.config)
    return Shelf(name=name, where="RUN", config=config, weights_sha256="", dissection=dissection)


def replaced(record, **fields):
    return msgspec.structs.replace(record, **fields)


def made_hostile(value):
    """A finding with every text in it turned into a hostile one that begins as it did."""
    if isinstance(value, ModelConfig):
        return value
    if isinstance(value, msgspec.Struct):
        fields = {n: getattr(value, n) for n in value.__struct_fields__ if n not in CHOSEN}
        return replaced(value, **{name: made_hostile(inner) for name, inner in fields.items()})
    if isinstance(value, dict):
        return {made_hostile(name): made_hostile(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [made_hostile(inner) for inner in value]
    spoil = isinstance(value, str) and not value.isdecimal()
    return f"{value}{HOSTILE}" if spoil else value


CHOSEN = {"how", "changed", "staircase"}
"""Fields whose text is one of a few words: with another, findings are refused when read."""


class Seen(HTMLParser):
    """What a browser would see in a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else ""

    def handle_endtag(self, tag):
        self._inside = ""
        self.text += " " * (tag in ("td", "th"))

    def handle_data(self, data):
        if not self._inside:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]
