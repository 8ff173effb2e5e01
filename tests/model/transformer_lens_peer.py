"""Runs in the venv of TransformerLens, called by test_transformer_lens.py.

run DIR     load ours.pth, run it on tokens.pt, write every site to cache.pt
make DIR    make a fresh model of config.pt, write theirs.pth and its cache.pt
train DIR   load ours.pth, train it by the paper's recipe on the batches of tokens.pt, write the
            loss of each step to losses.pt
"""

import sys
from pathlib import Path

import torch
from transformer_lens import HookedTransformer, HookedTransformerConfig

action, directory = sys.argv[1], Path(sys.argv[2])
arguments = torch.load(directory / "config.pt", weights_only=True)
model = HookedTransformer(HookedTransformerConfig(**arguments, device="cpu", seed=5))
if action != "make":
    model.load_state_dict(torch.load(directory / "ours.pth", weights_only=True), strict=True)
else:
    torch.save(model.state_dict(), directory / "theirs.pth")
tokens = torch.load(directory / "tokens.pt", weights_only=True)
if action == "train":
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-5, betas=(0.9, 0.98), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(i / 10, 1.0))
    losses, answer = [], model.cfg.n_ctx // 3
    for batch in tokens:
        chances = model(batch)[:, -answer - 1 : -1].to(torch.float64).log_softmax(-1)
        loss = -chances.gather(-1, batch[:, -answer:, None]).mean()
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    torch.save(torch.tensor(losses), directory / "losses.pt")
else:
    with torch.no_grad():
        logits, cache = model.run_with_cache(tokens)
    torch.save({**dict(cache.items()), "logits": logits}, directory / "cache.pt")
