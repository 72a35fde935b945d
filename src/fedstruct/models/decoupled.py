"""The decoupled GCN: an MLP on each node's features, then powers of the normalised adjacency, H = Â^L MLP(X)."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from fedstruct.models.feature_rows import FeatureRows
from fedstruct.models.mlp import MLP
from fedstruct.models.pieces import NodeFeatures
from fedstruct.models.sparse import SparseMatrix
from fedstruct.structure.kernels import columns_of, onto_columns, picked


class LocalHops:
    """Â^L for some nodes, over just those nodes that are within L hops of them.

    For few nodes the L products are one matrix, multiplied out before; for all nodes they are done one by one,
    because Â^L has more entries than L times Â.
    """

    def __init__(self, adjacency: csr_array, nodes: np.ndarray, layers: int, dtype: torch.dtype) -> None:
        few = 4 * len(nodes) < adjacency.shape[0]
        hops = [adjacency[nodes]] + [adjacency] * (layers - 1) if layers else [picked(nodes, adjacency.shape[0])]
        if few:
            while len(hops) > 1:
                hops[:2] = [(hops[0] @ hops[1]).tocsr()]
        self.used = columns_of(hops[-1])
        """The nodes whose values count."""
        hops[-1] = onto_columns(hops[-1], self.used)
        self._hops = [SparseMatrix(hop, dtype) for hop in hops]

    def __matmul__(self, values: Tensor) -> Tensor:
        """Of the values of the nodes that count."""
        for hop in reversed(self._hops):
            values = hop @ values
        return values


class DecoupledGCN:
    """The logits of some nodes, from the features of just those nodes that are within L hops of them."""

    def __init__(
        self, adjacency: csr_array, features: FeatureRows, nodes: np.ndarray, layers: int, keys: np.ndarray,
        dtype: torch.dtype,
    ) -> None:  # fmt: skip
        """`adjacency` is Â; `keys` names each of its nodes to dropout."""
        self._hops = LocalHops(adjacency, nodes, layers, dtype)
        self._features = NodeFeatures(features, self._hops.used, keys[self._hops.used], dtype)

    def logits(self, module: MLP, rate: float = 0.0, when: tuple[int | str, ...] = ()) -> Tensor:
        """Â^L MLP(X); with a rate, under dropout, whose draws are named by `when`."""
        return self._hops @ self._features.logits(module, rate, when)
