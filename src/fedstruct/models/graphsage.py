"""GraphSAGE with mean aggregation: LayerNorm on the features, convolutions with ReLU between them, a linear head.

Reference: Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

from fedstruct.models.dropout import dropped_relu
from fedstruct.models.feature_rows import FeatureRows
from fedstruct.models.mlp import StandardRows
from fedstruct.models.sparse import SparseMatrix
from fedstruct.structure.kernels import columns_of, divide_rows, onto_columns, picked, row_sums, stacked


class SAGELayer(SAGEConv):  # type: ignore[misc]
    """torch-geometric's layer, multiplied out: W_l mean(neighbours) + W_r own, on sparse matrices."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        for part in (self.lin_l, self.lin_r):
            # As they are multiplied: with a weight for each output side by side.
            part.weight.data = part.weight.data.T.contiguous().T

    def of(self, around: Tensor, own: Tensor) -> Tensor:
        """Of the mean of each node's neighbours, and its own values."""
        out: Tensor = nn.functional.linear(around, self.lin_l.weight, self.lin_l.bias) + own @ self.lin_r.weight.T
        return out

    def of_features(self, around: NeighbourMeans, own: StandardRows, gamma: Tensor, beta: Tensor) -> Tensor:
        """The same of features that are yet to be normalised."""
        left = around.times(self.lin_l.weight.T, gamma, beta)
        out: Tensor = left + own.times(self.lin_r.weight.T, gamma, beta) + self.lin_l.bias
        return out


class NeighbourMeans:
    """The mean of the neighbours' normalised features.

    The mean is linear and features are fixed: where these are dense, and fewer nodes have neighbours than are
    neighbours, it is taken once, before all products. Means of sparse rows are fuller than the rows; theirs follows.
    """

    def __init__(self, mean: csr_array, features: FeatureRows, dtype: torch.dtype) -> None:
        near = columns_of(mean)
        matrix, rows = SparseMatrix(onto_columns(mean, near), dtype), StandardRows(features[near], dtype)
        before = rows.dense and mean.shape[0] < len(near)
        self._rows = rows.mixed(matrix) if before else rows
        self._mean = None if before else matrix

    def times(self, weight: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
        product = self._rows.times(weight, gamma, beta)
        return product if self._mean is None else self._mean @ product


class GraphSAGE(nn.Module):
    """One convolution per hidden size, and a linear head.

    No ReLU stands between the last convolution and the head: with one, averages of models that were trained apart
    are much worse than the models.
    """

    def __init__(self, inputs: int, hidden: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(inputs))
        self.beta = nn.Parameter(torch.zeros(inputs))
        sizes = (inputs, *hidden)
        self.layers = nn.ModuleList(SAGELayer(i, o) for i, o in pairwise(sizes))
        self.head = nn.Linear(sizes[-1], classes)


class Neighbourhoods:
    """The logits of some nodes by GraphSAGE: each layer computes the nodes that the next one needs, and no others."""

    def __init__(
        self,
        adjacency: csr_array,
        features: FeatureRows,
        nodes: np.ndarray,
        layers: int,
        keys: np.ndarray,
        dtype: torch.dtype,
    ) -> None:
        """`adjacency` holds the edges, without self loops; `keys` names each node to dropout."""
        degrees = row_sums(adjacency)
        mean = divide_rows(adjacency, np.where(degrees > 0, degrees, 1))
        self._steps: list[tuple[SparseMatrix, np.ndarray]] = []
        wanted = nodes
        for _ in range(layers - 1):
            both = stacked([mean[wanted], picked(wanted, len(degrees))])
            wanted = columns_of(both)
            self._steps.insert(0, (SparseMatrix(onto_columns(both, wanted), dtype), keys[wanted]))
        self._around = NeighbourMeans(mean[wanted], features, dtype)
        self._own = StandardRows(features[wanted], dtype)

    def logits(self, module: GraphSAGE, rate: float = 0.0, when: tuple[int | str, ...] = ()) -> Tensor:
        """With a rate, under dropout between the convolutions; `when` names the draws."""
        first: Any = module.layers[0]
        values = first.of_features(self._around, self._own, module.gamma, module.beta)
        for depth, (both, keys) in enumerate(self._steps, start=1):
            layer: Any = module.layers[depth]
            values = dropped_relu(values, keys, rate, *when, depth)
            around, own = (both @ values).chunk(2)
            values = layer.of(around, own)
        logits: Tensor = module.head(values)
        return logits
