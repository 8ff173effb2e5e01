"""Runs in the venv of TransformerLens, called by test_transformer_lens.py.

run DIR     load ours.pth, run it on tokens.pt, write every site to cache.pt
make DIR    make a fresh model of config.pt, write theirs.pth and its cache.pt
"""

import sys
from pathlib import Path

import torch
from transformer_lens import HookedTransformer, HookedTransformerConfig

action, directory = sys.argv[1], Path(sys.argv[2])
arguments = torch.load(directory / "config.pt", weights_only=True)
model = HookedTransformer(HookedTransformerConfig(**arguments, device="cpu", seed=5))
if action == "run":
    model.load_state_dict(torch.load(directory / "ours.pth", weights_only=True), strict=True)
else:
    torch.save(model.state_dict(), directory / "theirs.pth")
with torch.no_grad():
    logits, cache = model.run_with_cache(torch.load(directory / "tokens.pt", weights_only=True))
torch.save({**dict(cache.items()), "logits": logits}, directory / "cache.pt")
