"""Runs in the venv of TransformerLens 4, called by test_transformer_lens.py.

DIR   convert ours.pth by its own converter to converted.pth, load it, save the model's own
      bridge.pth, and write its logits on tokens.pt to logits.pt
"""

import sys
from pathlib import Path

import torch
from transformer_lens.config import TransformerBridgeConfig
from transformer_lens.model_bridge import TransformerBridge
from transformer_lens.utilities.tl_checkpoint_conversion import convert_tl_checkpoint

directory = Path(sys.argv[1])
config = TransformerBridgeConfig(**torch.load(directory / "config.pt", weights_only=True))
converted = convert_tl_checkpoint(torch.load(directory / "ours.pth", weights_only=True), config)
torch.save(converted, directory / "converted.pth")
model = TransformerBridge.boot_native(config)
model.load_state_dict(converted, strict=True)
torch.save(model.state_dict(), directory / "bridge.pth")
with torch.no_grad():
    torch.save(
        model(torch.load(directory / "tokens.pt", weights_only=True)), directory / "logits.pt"
    )
