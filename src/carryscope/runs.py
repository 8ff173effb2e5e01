"""The run directory: the shelf on which each stage leaves what the next one picks up.

runs/<name>/
  config.json          model and training config, format and package version
  model.safetensors    weights
  checkpoint/          what exact resume needs, while training goes on
  metrics.jsonl        one record per step
  findings/*.json      one file per stage
  README.md            the model's card
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from carryscope.errors import CallError
from carryscope.model.config import FORMAT_VERSION
from carryscope.model.files import CONFIG_FILE, check_free, check_version, load_model, save_weights
from carryscope.model.transformer_lens import read_state_dict
from carryscope.storage import only_writer, read_json, write_json
from carryscope.training.checkpoint import read_metrics
from carryscope.training.config import RunConfig
from carryscope.training.losses import StepRecord
from carryscope.training.summary import FINDING_FILE, TrainingSummary

if TYPE_CHECKING:
    from carryscope.model.transformer import Transformer

SHIPPED = Path(__file__).parent / "shipped" / "fast-5"
"""The trained 5-digit, 3-head model that comes with the package."""


class Run:
    """What stands on the shelf of one run. Only its version is read before it is asked for."""

    def __init__(self, directory: Path | str = SHIPPED) -> None:
        self.directory = Path(directory)
        check_version(self.directory)

    @property
    def config(self) -> RunConfig:
        """How the run was made."""
        return read_json(self.directory / CONFIG_FILE, RunConfig)

    def model(self) -> Transformer:
        """The trained model."""
        return load_model(self.directory)

    def metrics(self) -> list[StepRecord]:
        """One record per training step."""
        return read_metrics(self.directory)

    def training(self) -> TrainingSummary:
        """What the training came to."""
        return read_json(self.directory / FINDING_FILE, TrainingSummary)


def import_model(source: Path, directory: Path) -> Run:
    """A new run from a TransformerLens state dict."""
    model = read_state_dict(source)
    with only_writer(directory):
        if (directory / CONFIG_FILE).exists():
            raise CallError(f"There is a run at {directory} already. Choose another --out.")
        check_free(directory)
        save_weights(model, directory)
        config = RunConfig(format_version=FORMAT_VERSION, source=source.name, model=model.config)
        write_json(directory / CONFIG_FILE, config)
    return Run(directory)
