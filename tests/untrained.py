"""Models with random weights."""

import torch

from carryscope.model.config import ModelConfig
from carryscope.model.transformer import Transformer, initialise


def untrained(config: ModelConfig, seed: int = 0) -> Transformer:
    return initialise(Transformer(config), torch.Generator().manual_seed(seed))
