"""The paper's own numbers, each with where it stands there, and for which models it holds.

In: `paper_values.json`, written by hand from the paper. Out: `PaperValue`, or its text. A value is
shown next to a measured one only where the model is of the kind that the paper measured.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from carryscope.core.storage import read_json
from carryscope.model.config import ModelConfig

VALUES_FILE = Path(__file__).with_name("paper_values.json")


class PaperValue(msgspec.Struct, frozen=True, kw_only=True):
    """One number, or a few words, of the paper."""

    id: str
    what: str
    value: float | str
    where: str
    """A table, a figure or a section, as a reader counts them."""
    label: str
    """The same as the LaTeX source names it."""
    applies: dict[str, int | str]
    """Fields of the model's config that must be just so."""

    @property
    def text(self) -> str:
        """The value as the paper prints it."""
        return self.value if isinstance(self.value, str) else f"{self.value:g}"

    def fits(self, model: ModelConfig) -> bool:
        """Whether the paper measured it on a model of this shape."""
        return all(getattr(model, name) == value for name, value in self.applies.items())


class PaperValues(msgspec.Struct, frozen=True, kw_only=True):
    """The file."""

    paper: str
    values: list[PaperValue]


@cache
def paper_values() -> dict[str, PaperValue]:
    """All values by id."""
    return {value.id: value for value in read_json(VALUES_FILE, PaperValues).values}


def paper_value(name: str, model: ModelConfig | None) -> PaperValue | None:
    """A value, if the paper has it for a model of this shape."""
    value = paper_values().get(name)
    return value if value is not None and model is not None and value.fits(model) else None


def paper_text(name: str, model: ModelConfig | None) -> str:
    """The paper's value with where it stands; empty if it has none."""
    value = paper_value(name, model)
    return f"{value.text} ({value.where})" if value else ""


def paper_cell(name: str, model: ModelConfig | None) -> str:
    """The paper's value alone, for a table whose caption says where it stands."""
    value = paper_value(name, model)
    return value.text if value else ""


def with_paper(caption: str, text: str) -> str:
    """A caption, and what the paper has in the place of what it stands under."""
    return f"{caption} Paper: {text}." if text else caption
