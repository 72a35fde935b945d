"""The mean over a node and its neighbours, Â = D̃⁻¹ (A + I), and its adjoint, for graphs of any size."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fedstruct.models.sparse import SparseMatrix
from fedstruct.structure.neighbours import Neighbours

MANY = 1 << 22
"""Edges from which on a product waits for memory and little else. The compiled loop asks for rows ahead of time, holds
no weight where all are 1 and no transpose where it is the same, and runs on all cores; below, torch's is faster."""

LINE = 64
"""Bytes that come from memory together."""


class NormalisedAdjacency:
    """Products with Â and with its transpose."""

    def __init__(self, neighbours: Neighbours, dtype: torch.dtype, many: int = MANY) -> None:
        self._large = len(neighbours.indices) >= many
        self._neighbours = neighbours
        if self._large:
            self._rows: np.ndarray | None = None
            self._share = torch.from_numpy(1 / neighbours.degrees()).to(dtype)[:, None]
            if neighbours.weights is not None:
                kind = self._share.numpy().dtype
                self._neighbours = replace(neighbours, weights=neighbours.weights.astype(kind))
        else:
            self._matrix = SparseMatrix(neighbours.normalised(), dtype)

    def forward(self, values: Tensor) -> Tensor:
        """Â values."""
        if not self._large:
            return self._matrix.forward @ values
        self._room(values.shape[1]).copy_(values)
        return self._sums(self._neighbours, values.shape[1]).mul_(self._share)

    def backward(self, slopes: Tensor) -> Tensor:
        """Âᵀ slopes."""
        if not self._large:
            return self._matrix.T @ slopes
        torch.mul(slopes, self._share, out=self._room(slopes.shape[1]))
        return self._sums(self._transposed, slopes.shape[1])

    @cached_property
    def _transposed(self) -> Neighbours:
        return self._neighbours.transposed()

    def _room(self, width: int) -> Tensor:
        """Where the values to be summed are put: no row lies across a line of the cache that it could do without."""
        if self._rows is None or self._rows.shape[1] < width:
            numbers = LINE // self._share.element_size()
            padded = -(-width // numbers) * numbers if width > numbers else 1 << (width - 1).bit_length()
            raw = np.zeros(len(self._share) * padded + numbers, self._share.numpy().dtype)
            start = -raw.ctypes.data % LINE // raw.itemsize
            self._rows = raw[start : start + len(self._share) * padded].reshape(-1, padded)
        return torch.from_numpy(self._rows)[:, :width]

    def _sums(self, of: Neighbours, width: int) -> Tensor:
        # Importing the compiler takes a while, and small graphs do without.
        from fedstruct.models.compiled import neighbour_sums

        sums = np.empty((len(self._share), width), self._share.numpy().dtype)
        neighbour_sums(of.indptr, of.indices, of.weights, self._rows, sums)
        return torch.from_numpy(sums)
