"""GraphSAGE with mean aggregation: LayerNorm on the features, convolutions with ReLU between them, a linear head.

Reference: Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

from fedstruct.graph.graph import Features
from fedstruct.models.dropout import dropped_relu
from fedstruct.models.mlp import StandardRows
from fedstruct.models.sparse import SparseMatrix
from fedstruct.structure.kernels import columns_of, divide_rows, onto_columns, row_sums


class SAGELayer(SAGEConv):  # type: ignore[misc]
    """torch-geometric's layer, multiplied out: W_l mean(neighbours) + W_r own, on sparse matrices.

    The mean is linear, so it is taken of W_l x where that is narrower than x.
    """

    def of(self, values: Tensor, mean: SparseMatrix, own: Tensor) -> Tensor:
        left, right = self.lin_l, self.lin_r
        out: Tensor = mean @ (values @ left.weight.T) + left.bias + values[own] @ right.weight.T
        return out

    def of_features(self, x: StandardRows, gamma: Tensor, beta: Tensor, mean: SparseMatrix, own: Tensor) -> Tensor:
        """The same on normalised features, which may be sparse."""
        both = x.times(torch.cat([self.lin_l.weight, self.lin_r.weight]).T, gamma, beta)
        width = self.lin_l.weight.shape[0]
        out: Tensor = mean @ both[:, :width].contiguous() + self.lin_l.bias + both[own, width:]
        return out


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
        features: Features,
        nodes: np.ndarray,
        layers: int,
        keys: np.ndarray,
        dtype: torch.dtype,
    ) -> None:
        """`adjacency` holds the edges, without self loops; `keys` names each node to dropout."""
        degrees = row_sums(adjacency)
        mean = divide_rows(adjacency, np.where(degrees > 0, degrees, 1))
        self._steps: list[tuple[SparseMatrix, Tensor, np.ndarray]] = []
        wanted = nodes
        for _ in range(layers):
            rows = mean[wanted]
            used = np.union1d(wanted, columns_of(rows))
            own = torch.from_numpy(np.searchsorted(used, wanted))
            self._steps.insert(0, (SparseMatrix(onto_columns(rows, used), dtype), own, keys[used]))
            wanted = used
        self._features = StandardRows(features[wanted], dtype)

    def logits(self, module: GraphSAGE, rate: float = 0.0, when: tuple[int | str, ...] = ()) -> Tensor:
        """With a rate, under dropout between the convolutions; `when` names the draws."""
        values = torch.empty(0)
        for depth, (layer, (mean, own, keys)) in enumerate(zip(module.layers, self._steps, strict=True)):
            if depth == 0:
                values = layer.of_features(self._features, module.gamma, module.beta, mean, own)  # type: ignore[operator]
                continue
            values = dropped_relu(values, keys, rate, *when, depth)
            values = layer.of(values, mean, own)  # type: ignore[operator]
        logits: Tensor = module.head(values)
        return logits
