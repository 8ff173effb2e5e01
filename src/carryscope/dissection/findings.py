"""The findings of a dissection: one record with a part for each experiment, kept as JSON.

In: a run directory. Out: `Dissection`, read back by type. What was found with other weights,
another seed or another version of carryscope is not taken for what would be found now.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from carryscope.core.errors import CallError
from carryscope.core.storage import read_json, write_json
from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.first_digits import FirstDigitsFinding
from carryscope.dissection.heads import HeadsFinding
from carryscope.dissection.keys import MlpFinding
from carryscope.dissection.nodes import NodesFinding
from carryscope.dissection.purposes import SubtasksFinding
from carryscope.dissection.rows import RowsFinding
from carryscope.dissection.story import TrainingStory
from carryscope.model.config import ModelConfig

DISSECTION_FILE = Path("findings") / "dissection.json"


class Dissection(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in a model. A part that was not asked for, or does not apply, is null."""

    package_version: str
    weights_sha256: str
    seed: int
    model: ModelConfig
    attention: AttentionFinding | None = None
    """Where the heads look, and the staircase."""
    rows: RowsFinding | None = None
    """Rows, attention edges and tokens that are used."""
    heads: HeadsFinding | None = None
    """Each head by question class."""
    nodes: NodesFinding | None = None
    """Each node: what fails without it."""
    subtasks: SubtasksFinding | None = None
    """The purpose map, by interchange."""
    mlp: MlpFinding | None = None
    """The 60 keys. Null for an attention-only model."""
    first_digits: FirstDigitsFinding | None = None
    """How A_n and the digit after it are computed."""
    story: TrainingStory | None = None
    """How the training went. Null for a model that was not trained here."""

    def statements(self) -> dict[str, str]:
        """One sentence or two for each part that was found."""
        parts = {name: getattr(self, name) for name in PARTS}
        told = {name: part.statement for name, part in parts.items() if hasattr(part, "statement")}
        return told | ({"story": " ".join(self.story.statements)} if self.story else {})


PARTS = ("attention", "rows", "heads", "nodes", "subtasks", "mlp", "first_digits", "story")
"""The parts of a dissection, in the order in which they are made."""


def chosen_parts(only: str | Sequence[str] | None) -> tuple[str, ...]:
    """The parts that a person named, such as `attention,nodes`; all of them by default."""
    if only is None:
        return PARTS
    named = [name.strip() for name in only.split(",")] if isinstance(only, str) else list(only)
    for name in named:
        if name not in PARTS:
            raise CallError(f"A dissection has the parts {', '.join(PARTS)}. Got '{name}'.")
    return tuple(name for name in PARTS if name in named)


def read_dissection(directory: Path) -> Dissection:
    """The findings in a run directory."""
    path = directory / DISSECTION_FILE
    if not path.exists():
        raise CallError(f"{directory} has not been dissected. Run: carryscope dissect {directory}")
    try:
        return read_json(path, Dissection)
    except CallError as error:
        again = f"carryscope dissect {directory} --again"
        raise CallError(f"{error} Or it is of another version. Make it anew: {again}") from error


def write_dissection(dissection: Dissection, directory: Path) -> Path:
    """Leave the findings in a run directory."""
    path = directory / DISSECTION_FILE
    write_json(path, dissection)
    return path
