"""A linear functional of what the heads write: the least it can be within a box.

In: `Ranges` of boxes and a functional of the features for each. Out: its least value. The heads
write sum_s alpha_s v_s over the slots. The functional of v_s is looked up for every element that
the box holds there, and each element is taken with the share alpha_s that makes it least.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from carryscope.certificate.intervals import Ranges, Shares
from carryscope.certificate.row_tables import RowTables


class Elements:
    """The elements that a chunk of boxes holds: slot after slot, each as wide as its largest set.

    A smaller set repeats its first element, which changes neither its least nor its largest value.
    """

    def __init__(self, tables: RowTables, ranges: Ranges, which: Int[Tensor, " neuron"]) -> None:
        rest = torch.arange(tables.features.d_mlp, len(tables.features.norms))
        self.columns = torch.cat([which, rest])
        """The features that a functional is made of, in its order."""
        self.at_reference = ranges.written.index_select(1, self.columns)
        """What all heads write at the reference point."""
        self.absolute = ranges.absolute.index_select(1, self.columns)
        self._tables, self._shares = tables, ranges.shares
        self._table = tables.stacked.index_select(1, self.columns).T
        self._lay_out(ranges.shares)

    def _lay_out(self, shares: Shares) -> None:
        first, second, part, mean, low, high = [], [], [], [], [], []
        begin, self._widths = len(self._tables.fixed_part), []
        for s, slot in enumerate(self._tables.slots):
            sizes = slot.sizes[shares.sets[:, s]]
            width = int(sizes.max())
            held = slot.held[shares.sets[:, s], :width]
            mean.append((torch.arange(width) < sizes[:, None]) / sizes[:, None])
            weight = slot.weight[held]
            low.append(weight / (weight + shares.others_most[:, s, None]))
            high.append(weight / (weight + shares.others_least[:, s, None]))
            if slot.part is None:
                first.append(begin + held)
                second.append(begin + held)
                part.append(torch.ones_like(weight))
            else:
                first.append(begin + held // slot.tokens)
                second.append(begin + slot.tokens + held % slot.tokens)
                part.append(slot.part[held])
            begin += slot.tokens if slot.part is None else 2 * slot.tokens
            self._widths.append(width)
        kind = self._table.dtype
        self._first, self._second = torch.cat(first, 1)[..., None], torch.cat(second, 1)[..., None]
        self._mean = torch.cat(mean, 1).to(kind)[..., None]
        self._part, self._low, self._high = (torch.cat(t, 1).to(kind) for t in (part, low, high))

    def least(
        self, functional: Float[Tensor, "pair some_feature"], box: Int[Tensor, " pair"]
    ) -> tuple[Float[Tensor, " pair"], Float[Tensor, "pair slot"]]:
        """The least value of the functional in its box, and what each slot takes off it.

        For any number rho per head, the head writes rho + sum_s alpha_s (value_s - rho); taking
        for rho about the value in the middle of the box keeps what is to be bounded small.
        """
        fixed, values = self._values(functional, box)
        shares = self._shares
        free, middles = shares.free[box], shares.middle[box]
        weighted = self._mean.index_select(0, box) * values
        means = torch.stack([t.sum(1) for t in torch.split(weighted, self._widths, 1)], 1)
        known = fixed * shares.fixed_part[box] + (means * shares.known_part[box]).sum(1)
        known_least, known_most = shares.known_least[box], shares.known_most[box]
        middle = (known_least + known_most) / 2
        rho = ((middles * means).sum(1) + middle * known) / (middle + middles.sum(1))
        gain = known - rho
        least = (rho + torch.where(gain > 0, known_least, known_most) * gain).sum(1)
        values -= rho[:, None]
        low, high = self._low.index_select(0, box), self._high.index_select(0, box)
        taken = torch.where(values > 0, low, high).mul_(values)
        by_slot = torch.split(taken.sum(-1), self._widths, 1)
        worst = torch.stack([t.amin(1) for t in by_slot], 1)
        best = torch.stack([t.amax(1) for t in by_slot], 1)
        return least + (worst * free).sum(1), (best - worst) * free

    def _values(
        self, functional: Float[Tensor, "pair some_feature"], box: Int[Tensor, " pair"]
    ) -> tuple[Float[Tensor, "pair head"], Float[Tensor, "pair element head"]]:
        """The functional of v, for the fixed tokens together and for all elements."""
        part = self._tables.fixed_part
        found = (functional @ self._table).view(len(functional), -1, part.shape[1])
        wide = (-1, -1, part.shape[1])
        one = found.gather(1, self._first.index_select(0, box).expand(wide))
        other = found.gather(1, self._second.index_select(0, box).expand(wide))
        values = other.addcmul_(self._part.index_select(0, box), one.sub_(other))
        return (found[:, : len(part)] * part).sum(1), values
