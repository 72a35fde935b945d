"""Dropout as a function: the same unit of the same node is dropped in the same round, wherever it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedstruct.seeds import key


def row_keys(parties: Sequence[str], nodes: Sequence[int]) -> np.ndarray:
    """One 32-bit key for each node of these parties, from its party's name and its number there."""
    sizes = np.asarray(nodes, np.int64)
    numbers = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    owners = np.repeat(np.array([key("dropout", p) for p in parties], np.uint64), sizes)
    mixed = (numbers.astype(np.uint64) + owners) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(32)).astype(np.uint32)


def dropped_relu(values: Tensor, rows: np.ndarray, rate: float, *when: int | str) -> Tensor:
    """ReLU, then dropout: each unit with probability `rate` to zero, the others times 1 / (1 - rate).

    `rows` are the keys of the nodes, `when` names seed, round and layer.

    >>> rows = row_keys(["bank"], [1000])
    >>> dropped_relu(torch.ones(1000, 8), rows, 0.5, 0, 1).mean().round(decimals=1)
    tensor(1.)
    >>> some = dropped_relu(torch.ones(2, 8), rows[7:9], 0.5, 0, 1)
    >>> torch.equal(dropped_relu(torch.ones(1000, 8), rows, 0.5, 0, 1)[7:9], some)
    True
    """
    if not rate:
        return torch.relu(values)
    kept: Tensor = _DroppedReLU.apply(values, rows, _unit_keys(values.shape[1], when), rate)  # type: ignore[no-untyped-call]
    return kept


def _unit_keys(width: int, when: Sequence[int | str]) -> np.ndarray:
    mixed = np.arange(width, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key(*when))
    mixed = ((mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(32)
    return mixed.astype(np.uint32)


class _DroppedReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, rows: np.ndarray, units: np.ndarray, rate: float) -> Tensor:
        # Importing the compiler takes a while, and most of the program does without.
        from fedstruct.models.compiled import kept_above_zero

        least = np.uint32(min(round(rate * 2**32), 2**32 - 1))
        dense = values.detach().contiguous().numpy()
        kept = torch.from_numpy(kept_above_zero(dense, rows, units, least, dense.dtype.type(1 - rate)))
        ctx.save_for_backward(kept)
        ctx.share = 1 - rate
        return kept

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (kept,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(gradients[0], kept, 0).div_(ctx.share), None, None, None
