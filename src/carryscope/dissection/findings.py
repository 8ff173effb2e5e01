"""The findings of a dissection: one record with a part for each experiment.

    found.attention.staircase      # "present"
    found.statements()["edges"]    # one or two sentences

A part that was not made yet, or does not apply, is null.
"""

from __future__ import annotations

from collections.abc import Sequence

from carryscope.core.errors import CallError
from carryscope.core.evidence import Finding
from carryscope.dissection.attention import AttentionFinding
from carryscope.dissection.edges import EdgesFinding
from carryscope.dissection.first_digits import FirstDigitsFinding
from carryscope.dissection.heads import HeadsFinding
from carryscope.dissection.keys import MlpFinding
from carryscope.dissection.nodes import NodesFinding
from carryscope.dissection.purposes import SubtasksFinding
from carryscope.dissection.story import TrainingStory
from carryscope.model.config import ModelConfig

EXPERIMENTS = ("attention", "edges", "heads", "nodes", "subtasks", "mlp", "first_digits", "story")
"""The parts of a dissection, in the order in which they are made."""


class Dissection(Finding, frozen=True, kw_only=True):
    """What was found in a model."""

    package_version: str
    weights_sha256: str
    seed: int
    model: ModelConfig
    attention: AttentionFinding | None = None
    """Where the heads look, and the staircase."""
    edges: EdgesFinding | None = None
    """Attention edges that are used."""
    heads: HeadsFinding | None = None
    """Each head by question class."""
    nodes: NodesFinding | None = None
    """Each node: what fails without it."""
    subtasks: SubtasksFinding | None = None
    """The purpose map, by interchange."""
    mlp: MlpFinding | None = None
    """The keys of the MLP. Null for an attention-only model."""
    first_digits: FirstDigitsFinding | None = None
    """How A_n and the digit after it are computed."""
    story: TrainingStory | None = None
    """How the training went. Null for a model that was not trained here."""

    @property
    def made(self) -> list[str]:
        """The parts that were made."""
        return [name for name in EXPERIMENTS if getattr(self, name) is not None]

    def statements(self) -> dict[str, str]:
        """A few sentences for each part that was found."""
        return {name: getattr(self, name).statement for name in self.made}


def chosen_parts(only: str | Sequence[str] | None) -> tuple[str, ...]:
    """The parts that a person named, such as `attention,nodes`; all of them by default."""
    if only is None:
        return EXPERIMENTS
    named = [name.strip() for name in only.split(",")] if isinstance(only, str) else list(only)
    for name in named:
        if name not in EXPERIMENTS:
            raise CallError(f"A dissection has the parts {', '.join(EXPERIMENTS)}. Got '{name}'.")
    return tuple(name for name in EXPERIMENTS if name in named)
