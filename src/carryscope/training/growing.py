"""A model that starts from the weights of a smaller one.

In: a new model and its donor. Out: the new model with the donor's weights where it has any:

    taken over   every weight of the donor's layers, heads and neurons, in the lowest places
                 tokens by their symbol, positions by their name (D4 .. D0, =, A5 .. A0)
    new          further layers, heads, neurons, tokens and the position of a sign

What new parts write starts at 0. So with the same tokens and format, all answers stay the same at
first. Digits, d_model and d_head must stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from carryscope.core.errors import CallError
from carryscope.model.config import ModelConfig

if TYPE_CHECKING:
    from carryscope.model.transformer import Transformer

_STAYS, _GROWS = ("digits", "d_model", "d_head"), ("layers", "heads", "d_mlp", "vocabulary")


def check_growth(donor: ModelConfig, model: ModelConfig) -> None:
    """Refuse a model that the donor's weights do not fit into."""
    for name in _STAYS + _GROWS:
        had, has = getattr(donor, name), getattr(model, name)
        if has < had or (name in _STAYS and has != had):
            least = f"{had}" if name in _STAYS else f"at least {had}"
            raise CallError(
                f"{name} must be {least}, as in the run that the training starts from. Got {has}."
            )
    if model.format != donor.format and donor.format == "signed":
        raise CallError("format must be signed, as in the run that the training starts from.")


def new_parts(donor: ModelConfig, model: ModelConfig) -> tuple[str, ...]:
    """What the model has and its donor has not, in words."""
    added = {name: getattr(model, name) - getattr(donor, name) for name in _GROWS}
    words = {"layers": "layers", "heads": "heads a layer", "d_mlp": "neurons a layer"}
    grown = [f"{added[name]} more {what}" for name, what in words.items() if added[name]]
    tokens = [symbol for symbol in model.layout.symbols if symbol not in donor.layout.symbols]
    grown += [f"tokens {' '.join(tokens)}"] if tokens else []
    grown += ["the position of the sign"] if model.format != donor.format else []
    return tuple(grown)


def take_over(model: Transformer, donor: Transformer, *, but: frozenset[str] = frozenset()) -> None:
    """Fill a model with its donor's weights, except for the parameters named in `but`."""
    import torch

    places, taken = _places(donor.config, model.config), donor.state_dict()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in but:
                continue
            if name.endswith(("W_O", "W_out")):
                parameter.zero_()
            if name in taken:
                sizes = enumerate(taken[name].shape)
                where = [torch.tensor(places.get((name, axis), range(n))) for axis, n in sizes]
                parameter[torch.meshgrid(*where, indexing="ij")] = taken[name]


def _places(donor: ModelConfig, model: ModelConfig) -> dict[tuple[str, int], Sequence[int]]:
    """Where tokens and positions of the donor are in the model, by parameter and axis."""
    symbols = [model.layout.symbols.index(symbol) for symbol in donor.layout.symbols]
    rows = model.layout.first_row + 1
    positions = [
        *range(rows),
        *range(rows + model.layout.signs - donor.layout.signs, model.context),
    ]
    tokens = {("embed.W_E", 0), ("unembed.W_U", 1), ("unembed.b_U", 0)}
    return dict.fromkeys(tokens, symbols) | {("pos_embed.W_pos", 0): positions}
