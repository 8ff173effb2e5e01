"""What stands next to a state dict: its name, and the JSON files in its folder.

In: the path of a `.pth` file. Out: `Beside`, with the operation and the number of heads, if its
name (`ins1_mix_d6_l3_h4_t40K_s372001`), the authors' `training_loss.json` or a `config.json` says
them. A config that says the model computes something else than ours refuses it.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from carryscope.core.errors import CallError
from carryscope.core.storage import read_json
from carryscope.task.operation import OperationName

_NAME = re.compile(r"(?:^|_)(add|sub|mix|mul|mas)_d\d+_l\d+_h(\d+)_")
"""How the paper's authors name a model: `ins1_mix_d6_l3_h4_t40K_s372001`."""

_OPERATIONS: dict[str, OperationName] = {
    "add": "addition",
    "sub": "subtraction",
    "mix": "mixed",
}

_FILES = ("training_loss.json", "config.json", "{}.json", "{}_train.json")
"""Where a file's neighbours say more, by its name without `.pth`."""


class Beside(msgspec.Struct, frozen=True):
    """What is known about a state dict besides its tensors; a config may say much more."""

    model_name: str = ""
    operation: OperationName | None = None
    perc_sub: float | None = None
    """Of a hundred questions that the authors train on, how many are subtractions,"""
    perc_mult: float = 0
    """and how many multiplications."""
    n_heads: int | None = None
    act_fn: str | None = None
    normalization_type: str | None = None
    attention_dir: str | None = None

    @classmethod
    def of(cls, path: Path) -> Beside:
        """From the JSON files next to a state dict, the authors' or ours, and from its name."""
        said: dict[str, object] = {}
        for name in _FILES:
            if (file := path.with_name(name.format(path.stem))).is_file():
                found = read_json(file, dict)
                parts = [found, found.get("Config"), found.get("model")]
                said |= {k: v for part in parts if isinstance(part, dict) for k, v in part.items()}
        folder = path.resolve().parent.name if path.stem == "model" else ""
        for called in (path.stem, str(said.get("model_name")), folder):
            if match := _NAME.search(called):
                said = {"n_heads": int(match[2]), **said, "model_name": match[0].lstrip("_")}
                break
        try:
            return msgspec.convert(said, cls)
        except msgspec.ValidationError as error:
            raise CallError(f"The config next to {path} does not fit: {error}.") from error

    @property
    def asked(self) -> OperationName | None:
        """The operation, if anything says it."""
        if self.operation or self.model_name[:3] in _OPERATIONS:
            return self.operation or _OPERATIONS[self.model_name[:3]]
        if self.perc_sub is None:
            return None
        return (
            "mixed" if 0 < self.perc_sub < 100 else "subtraction" if self.perc_sub else "addition"
        )

    def check(self, source: Path) -> None:
        """Refuse a model that computes something else than ours."""
        if self.model_name[:3] in ("mul", "mas") or self.perc_mult:
            raise CallError(f"{source} is a model that multiplies, which carryscope does not know.")
        for name, ours in (
            ("act_fn", "relu"),
            ("normalization_type", "LN"),
            ("attention_dir", "causal"),
        ):
            if getattr(self, name) not in (ours, None):
                raise CallError(f"{source}: {name} must be {ours}. Got {getattr(self, name)}.")
