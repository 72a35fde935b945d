"""The mean over a node and its neighbours, Â = D̃⁻¹ (A + I), and its adjoint, for graphs of any size."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fedstruct.models.sparse import SparseMatrix
from fedstruct.structure.neighbours import Neighbours

MANY = 1 << 20
"""Edges from which on a product waits for memory and little else. The compiled loop asks for rows ahead of time, holds
no weight where all are 1 and no transpose where it is the same, and runs on all cores; below, torch's is faster."""


class NormalisedAdjacency:
    """Products with Â and with its transpose."""

    def __init__(self, neighbours: Neighbours, dtype: torch.dtype, many: int = MANY) -> None:
        self._large = len(neighbours.indices) >= many
        self._neighbours = neighbours
        self._dtype = dtype
        if self._large:
            self._share = torch.from_numpy(1 / neighbours.degrees()).to(dtype)[:, None]
            if neighbours.weights is not None:
                kind = self._share.numpy().dtype
                self._neighbours = replace(neighbours, weights=neighbours.weights.astype(kind))
        else:
            self._matrix = SparseMatrix(neighbours.normalised(), dtype)

    def forward(self, values: Tensor) -> Tensor:
        """Â values."""
        return self._sums(self._neighbours, values).mul_(self._share) if self._large else self._matrix.forward @ values

    def backward(self, slopes: Tensor) -> Tensor:
        """Âᵀ slopes."""
        return self._sums(self._transposed, slopes * self._share) if self._large else self._matrix.T @ slopes

    @cached_property
    def _transposed(self) -> Neighbours:
        return self._neighbours.transposed()

    def _sums(self, of: Neighbours, values: Tensor) -> Tensor:
        # Importing the compiler takes a while, and small graphs do without.
        from fedstruct.models.compiled import neighbour_sums, weighted_neighbour_sums

        dense = values.contiguous().numpy()
        sums = np.empty_like(dense)
        if of.weights is None:
            neighbour_sums(of.indptr, of.indices, dense, sums)
        else:
            weighted_neighbour_sums(of.indptr, of.indices, of.weights, dense, sums)
        return torch.from_numpy(sums)
