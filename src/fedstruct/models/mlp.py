"""The feature model: LayerNorm → Linear → ReLU → Dropout → Linear, on features that may be sparse."""

from __future__ import annotations

from copy import copy
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, diags_array, issparse
from torch import Tensor, nn

from fedstruct.graph.graph import Features
from fedstruct.models.dropout import dropped_relu
from fedstruct.models.sparse import SparseMatrix
from fedstruct.structure.kernels import columns_of, onto_columns

EPSILON = 1e-5
"""torch's LayerNorm adds this to the variance."""

DENSE = 0.08
"""From this share of filled entries on, dense products are faster than sparse ones."""


class StandardRows:
    """Rows of features, each shifted and scaled to mean 0 and variance 1, without making sparse ones dense.

    Rows that are sparse only by name, well filled, are made dense. A sparse row x becomes x/σ, kept sparse, and the
    number -μ/σ that is to be added to every entry. Columns that hold nothing are left out where these are most.
    """

    def __init__(self, features: Features, dtype: torch.dtype) -> None:
        width = max(features.shape[1], 1)
        if issparse(features) and features.nnz > DENSE * features.shape[0] * width:
            features = features.toarray()
        self.rows = features.shape[0]
        self.used: Tensor | None = None
        """The columns that `scaled` holds, unless it holds all."""
        self.scaled: SparseMatrix | Tensor
        self.dense = not issparse(features)
        ones = np.ones(self.rows)
        if self.dense:
            self.scaled = torch.empty(features.shape, dtype=dtype)
            # Some rows at a time: the sums are in double precision, and the table may be most of the memory.
            for at in range(0, self.rows, 1 << 16):
                values = features[at : at + (1 << 16)].astype(np.float64)
                mean, scale = _moments(values, width)
                self.scaled[at : at + (1 << 16)] = torch.from_numpy((values - mean[:, None]) * scale[:, None])
            offsets = ones[:, None]
        else:
            values = features.astype(np.float64)
            mean, scale = _moments(values, width)
            scaled = csr_array(diags_array(scale) @ values)
            used = columns_of(scaled)
            if 2 * len(used) < width:
                self.used, scaled = torch.from_numpy(used), onto_columns(scaled, used)
            self.scaled = SparseMatrix(scaled, dtype)
            offsets = np.stack([ones, -mean * scale], axis=1)
        self.offsets = torch.from_numpy(offsets).to(dtype)
        """How much of β W, and of γ W, is added to each row of a product."""

    def mixed(self, matrix: SparseMatrix) -> StandardRows:
        """The rows of this matrix times these rows, which must be dense."""
        assert isinstance(self.scaled, Tensor)
        return self._with(matrix @ self.scaled, matrix @ self.offsets)

    def some(self, at: slice) -> StandardRows:
        """Some of these rows, which must be dense; nothing is copied."""
        assert isinstance(self.scaled, Tensor)
        return self._with(self.scaled[at], self.offsets[at])

    def _with(self, scaled: Tensor, offsets: Tensor) -> StandardRows:
        other = copy(self)
        other.scaled, other.offsets, other.rows = scaled, offsets, len(offsets)
        return other

    def times(self, weight: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
        """LayerNorm and the product after it as one step: W(γ ⊙ x̂ + β) = x̂ (γ ⊙ W) + Wβ."""
        product: Tensor = _NormalisedProduct.apply(weight, gamma, beta, self)  # type: ignore[no-untyped-call]
        return product


def _moments(values: Features, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean of each row, and one over its deviation."""
    mean = np.asarray(values.sum(axis=1)).ravel() / width
    square = np.asarray((values * values).sum(axis=1)).ravel() / width
    return mean, 1.0 / np.sqrt(np.maximum(square - mean**2, 0) + EPSILON)


class _NormalisedProduct(torch.autograd.Function):
    """The product with its gradient written out: W is large where features are many, so each pass over it counts."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, gamma: Tensor, beta: Tensor, x: StandardRows) -> Tensor:
        affine = torch.stack([beta, gamma][: x.offsets.shape[1]])
        used_gamma, used = (gamma, weight) if x.used is None else (gamma[x.used], weight[x.used])
        ctx.save_for_backward(weight, affine, used_gamma, used)
        ctx.x = x
        product: Tensor = x.scaled @ (used_gamma[:, None] * used)
        return product.addmm_(x.offsets, affine @ weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        weight, affine, used_gamma, used = ctx.saved_tensors
        x, slope = ctx.x, gradients[0]
        pulls = x.offsets.T @ slope
        of_beta, *of_shift = pulls @ weight.T
        inner = x.scaled.T @ slope
        of_gamma = torch.linalg.vecdot(inner, used)
        inner *= used_gamma[:, None]
        if x.used is None:
            of_weight = inner.addmm_(affine.T, pulls)
        else:
            of_weight = (affine.T @ pulls).index_add_(0, x.used, inner)
            of_gamma = torch.zeros_like(of_beta).index_copy_(0, x.used, of_gamma)
        return of_weight, sum(of_shift, of_gamma), of_beta, None


class NormalisedLinear(nn.Module):
    """LayerNorm and the Linear after it."""

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator, dtype: torch.dtype) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(inputs, dtype=dtype))
        self.beta = nn.Parameter(torch.zeros(inputs, dtype=dtype))
        self.weight = nn.Parameter(_uniform((inputs, outputs), inputs, generator, dtype))
        self.bias = nn.Parameter(_uniform((outputs,), inputs, generator, dtype))

    def forward(self, x: StandardRows | Tensor) -> Tensor:
        """Of features that stay as they are, made ready before; or of values that are themselves learned."""
        if isinstance(x, StandardRows):
            return x.times(self.weight, self.gamma, self.beta) + self.bias
        normal = nn.functional.layer_norm(x, self.gamma.shape, eps=EPSILON)
        return normal @ (self.gamma[:, None] * self.weight) + (self.beta @ self.weight + self.bias)


class MLP(nn.Module):
    """Hidden layers with ReLU and dropout, then logits."""

    def __init__(
        self,
        inputs: int,
        hidden: tuple[int, ...],
        classes: int,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.first = NormalisedLinear(inputs, hidden[0], generator, dtype)
        sizes = (*hidden, classes)
        self.weights = nn.ParameterList(_uniform((o, i), i, generator, dtype) for i, o in pairwise(sizes))
        self.biases = nn.ParameterList(_uniform((o,), i, generator, dtype) for i, o in pairwise(sizes))

    def forward(
        self,
        x: StandardRows | Tensor,
        rows: np.ndarray | None = None,
        rate: float = 0.0,
        when: tuple[int | str, ...] = (),
    ) -> Tensor:
        """Logits; with a rate, under dropout: `rows` names the rows to it, `when` the draws."""
        values = self.first(x)
        for depth, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = torch.relu(values) if rows is None else dropped_relu(values, rows, rate, *when, depth)
            values = nn.functional.linear(values, weight, bias)
        logits: Tensor = values
        return logits


def _uniform(shape: tuple[int, ...], fan_in: int, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """torch's default initialisation of a Linear, weight and bias, from a generator of our own."""
    bound = 1 / sqrt(max(fan_in, 1))
    # Drawn in one precision, so that float64 runs start at the numbers of float32 runs.
    return torch.empty(shape).uniform_(-bound, bound, generator=generator).to(dtype)
