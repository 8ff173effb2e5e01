"""The named sites of a model, which the instrumented pass visits.

In: a config. Out: the sites with their shapes.

A site is a place in the forward pass with a TransformerLens name, such as
`blocks.0.attn.hook_z`. A visitor is a function `visit(name, value) -> value`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from carryscope.core.errors import CallError
from carryscope.model.config import ModelConfig

if TYPE_CHECKING:
    from torch import Tensor

Visit = Callable[[str, "Tensor"], "Tensor"]


class Site(NamedTuple):
    """A place in the forward pass."""

    name: str
    axes: dict[str, int]
    """The axes of the value with their sizes; the batch comes before them."""


Hook = Callable[["Tensor", Site], "Tensor | None"]


def leave_alone(name: str, value: Tensor) -> Tensor:
    """The visitor that changes nothing."""
    return value


def sites(config: ModelConfig) -> dict[str, Site]:
    """Every site of a model of this shape, in the order of the forward pass."""
    size = {
        "row": config.context,
        "query": config.context,
        "key": config.context,
        "head": config.heads,
        "d_head": config.d_head,
        "d_model": config.d_model,
        "d_mlp": config.d_mlp,
        "1": 1,
    }
    stream, per_head = "row d_model", "row head d_head"
    norm = {"hook_scale": "row 1", "hook_normalized": stream}
    named = {"hook_embed": stream, "hook_pos_embed": stream}
    for layer in range(config.layers):
        block = {"hook_resid_pre": stream} | {f"ln1.{site}": axes for site, axes in norm.items()}
        block |= {f"attn.hook_{part}": per_head for part in "qkv"}
        block |= {"attn.hook_attn_scores": "head query key", "attn.hook_pattern": "head query key"}
        block |= {"attn.hook_z": per_head, "hook_attn_out": stream}
        if config.d_mlp:
            block |= {"hook_resid_mid": stream} | {f"ln2.{s}": axes for s, axes in norm.items()}
            block |= {"mlp.hook_pre": "row d_mlp", "mlp.hook_post": "row d_mlp"}
            block |= {"hook_mlp_out": stream}
        block["hook_resid_post"] = stream
        named |= {f"blocks.{layer}.{site}": axes for site, axes in block.items()}
    named |= {f"ln_final.{site}": axes for site, axes in norm.items()}
    return {
        name: Site(name, {axis: size[axis] for axis in axes.split()})
        for name, axes in named.items()
    }


def site_table(config: ModelConfig) -> str:
    """The sites with their shapes, one a line, for a person to read."""
    rows = sites(config).values()
    width = max(len(site.name) for site in rows)
    return "\n".join(
        f"{site.name:{width}}  batch "
        + " ".join(f"{axis}={size}" for axis, size in site.axes.items())
        for site in rows
    )


def check_sites(config: ModelConfig, names: Sequence[str]) -> None:
    """Refuse names that are not sites of this model."""
    known = sites(config)
    for name in names:
        if name not in known:
            similar = [site for site in known if site.endswith(name.rpartition(".")[2])]
            hint = f" Did you mean {similar[0]}?" if similar else ""
            raise CallError(f"This model has no site '{name}'.{hint} See `carryscope sites`.")
