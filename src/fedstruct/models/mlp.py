"""The feature model: LayerNorm → Linear → ReLU → Dropout → Linear, on features that may be sparse."""

from __future__ import annotations

from math import sqrt

import numpy as np
import torch
from scipy.sparse import csr_array, diags_array, issparse
from torch import Tensor, nn

from fedstruct.graph.graph import Features
from fedstruct.models.sparse import SparseMatrix

EPSILON = 1e-5
"""torch's LayerNorm adds this to the variance."""


class StandardRows:
    """Rows of features, each shifted and scaled to mean 0 and variance 1, without making sparse ones dense.

    A sparse row x becomes x/σ, kept sparse, and the number μ/σ that is to be taken from every entry.
    """

    def __init__(self, features: Features, dtype: torch.dtype) -> None:
        width = max(features.shape[1], 1)
        values = features.astype(np.float64)
        mean = np.asarray(values.sum(axis=1)).ravel() / width
        square = np.asarray((values * values).sum(axis=1)).ravel() / width
        scale = 1.0 / np.sqrt(np.maximum(square - mean**2, 0) + EPSILON)
        self.rows = features.shape[0]
        self.scaled: SparseMatrix | Tensor
        self.shift: Tensor | None = None
        if issparse(features):
            self.scaled = SparseMatrix(csr_array(diags_array(scale) @ values), dtype)
            self.shift = torch.from_numpy(mean * scale).to(dtype)[:, None]
        else:
            self.scaled = torch.from_numpy((values - mean[:, None]) * scale[:, None]).to(dtype)


class NormalisedLinear(nn.Module):
    """LayerNorm and the Linear after it as one step: W(γ ⊙ x̂ + β) + b = x̂ (γ ⊙ W) + Wβ + b."""

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator, dtype: torch.dtype) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(inputs, dtype=dtype))
        self.beta = nn.Parameter(torch.zeros(inputs, dtype=dtype))
        self.weight = nn.Parameter(_uniform((inputs, outputs), inputs, generator, dtype))
        self.bias = nn.Parameter(_uniform((outputs,), inputs, generator, dtype))

    def forward(self, x: StandardRows) -> Tensor:
        weight = self.gamma[:, None] * self.weight
        out = x.scaled @ weight + (self.beta @ self.weight + self.bias)
        if x.shift is not None:
            out = out - x.shift * weight.sum(0)
        return out


class MLP(nn.Module):
    """Hidden layers with ReLU and dropout, then logits."""

    def __init__(
        self,
        inputs: int,
        hidden: int,
        classes: int,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.first = NormalisedLinear(inputs, hidden, generator, dtype)
        self.weight = nn.Parameter(_uniform((classes, hidden), hidden, generator, dtype))
        self.bias = nn.Parameter(_uniform((classes,), hidden, generator, dtype))

    def forward(self, x: StandardRows, keep: Tensor | None = None, rate: float = 0.0) -> Tensor:
        """Logits; `keep` masks the hidden units that dropout leaves at this `rate`."""
        hidden = torch.relu(self.first(x))
        if keep is not None:
            hidden = hidden * keep / (1 - rate)
        return nn.functional.linear(hidden, self.weight, self.bias)


def _uniform(shape: tuple[int, ...], fan_in: int, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """torch's default initialisation of a Linear, weight and bias, from a generator of our own."""
    bound = 1 / sqrt(max(fan_in, 1))
    # Drawn in one precision, so that float64 runs start at the numbers of float32 runs.
    return torch.empty(shape).uniform_(-bound, bound, generator=generator).to(dtype)
