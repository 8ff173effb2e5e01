"""A one-digit model so small that its logits can be checked by hand.

Width 2, one head, no MLP. Token t has the embedding (t, -t), positions have none. LayerNorm
turns every embedding but that of 0 into (1, -1), as near as epsilon allows, and 0 into
(0, 0). Scores are 0, so a row attends to all it has seen equally, and V and O pass on what
they read. Row 3 of "1+2=03" has seen 1, +, 2, =: four times (1, -1), mean (1, -1). Added to
the embedding of "=" (11, -11) that is (12, -12), which the last LayerNorm makes (1, -1). The
unembedding reads the first coordinate, times 1, 2, 3 .. for tokens 0, 1, 2 ..
"""

import torch

from carryscope.model.config import ModelConfig
from carryscope.model.transformer import Transformer

MICRO_LOGITS = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]


def micro_model() -> Transformer:
    model = Transformer(ModelConfig(digits=1, heads=1, d_model=2, d_mlp=0))
    with torch.no_grad():
        model.embed.W_E[:] = torch.arange(12.0)[:, None] * torch.tensor([1.0, -1.0])
        model.blocks[0].attn.W_V[0] = torch.eye(2)
        model.blocks[0].attn.W_O[0] = torch.eye(2)
        model.unembed.W_U[0] = torch.tensor(MICRO_LOGITS)
    return model
