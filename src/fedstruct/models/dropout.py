"""Dropout as a function: the same unit of the same node is dropped in the same round, wherever it is computed."""

from __future__ import annotations

from collections.abc import Sequence

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


def keep_mask(rows: np.ndarray, width: int, rate: float, *when: int | str) -> Tensor:
    """Which units are kept, rows × width; `when` names seed, round and layer.

    >>> rows = row_keys(["bank"], [1000])
    >>> keep_mask(rows, 8, 0.5, 0, 1).float().mean().round(decimals=1)
    tensor(0.5000)
    >>> torch.equal(keep_mask(rows, 8, 0.5, 0, 1)[7:9], keep_mask(rows[7:9], 8, 0.5, 0, 1))
    True
    """
    columns = np.arange(width, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key(*when))
    columns = ((columns ^ (columns >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(32)
    # A 32-bit finaliser per unit, in place: this is the largest piece of arithmetic of a round after the products.
    mixed: np.ndarray = rows[:, None] ^ columns.astype(np.uint32)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        mixed ^= mixed >> np.uint32(shift)
        mixed *= np.uint32(factor)
    mixed ^= mixed >> np.uint32(16)
    return torch.from_numpy(mixed >= np.uint32(min(round(rate * 2**32), 2**32 - 1)))
