"""A model over many rows, some at a time: hidden units never leave the cache, and are computed anew on the way back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fedstruct.models.feature_rows import FeatureRows
from fedstruct.models.mlp import StandardRows

SOME = 1 << 13
"""Rows at a time; with 64 hidden units these take 2 MB."""

MANY = 1 << 16
"""Rows from which on to read and write the hidden units of all takes longer than to compute them twice."""


class NodeFeatures:
    """The features of some nodes, for a model to be applied to, in round after round or once."""

    def __init__(self, features: FeatureRows, nodes: np.ndarray, keys: np.ndarray, dtype: torch.dtype) -> None:
        """`keys` names these nodes to dropout."""
        self._features, self._nodes, self._keys, self._dtype = features, nodes, keys, dtype

    @cached_property
    def _rows(self) -> StandardRows:
        return StandardRows(self._features[self._nodes], self._dtype)

    def logits(self, module: nn.Module, rate: float = 0.0, when: tuple[int | str, ...] = ()) -> Tensor:
        """With a rate, under dropout; outside autograd without it, and then nothing is kept."""
        if torch.is_grad_enabled():
            return in_pieces(module, self._rows, self._keys, rate, when)
        # What judges all nodes, once, holds the features and hidden units of some of them at a time.
        pieces = [self._nodes[at : at + SOME] for at in range(0, max(len(self._nodes), 1), SOME)]
        return torch.cat([module(StandardRows(self._features[piece], self._dtype)) for piece in pieces])


def in_pieces(
    module: nn.Module, rows: StandardRows, keys: np.ndarray, rate: float, when: tuple[int | str, ...]
) -> Tensor:
    """The logits of these rows; `keys`, `rate` and `when` are what dropout takes."""
    logits: Tensor
    if rows.dense and rows.rows >= MANY:
        logits = _InPieces.apply(module, rows, keys, rate, when, *module.parameters())  # type: ignore[no-untyped-call]
    else:
        logits = module(rows, keys, rate, when)
    return logits


class _InPieces(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, module: nn.Module, rows: StandardRows, *more: Any) -> Tensor:
        ctx.given = module, rows, *more[:3]
        return torch.cat([module(*given) for _, given in _pieces(rows, *more[:3])])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        module, rows, *more = ctx.given
        parameters = list(module.parameters())
        sums = [torch.zeros_like(p) for p in parameters]
        for at, given in _pieces(rows, *more):
            with torch.enable_grad():
                logits = module(*given)
            for total, slope in zip(sums, torch.autograd.grad(logits, parameters, gradients[0][at]), strict=True):
                total += slope
        return None, None, None, None, None, *sums


def _pieces(
    rows: StandardRows, keys: np.ndarray, rate: float, when: tuple[int | str, ...]
) -> Iterator[tuple[slice, tuple[Any, ...]]]:
    for begin in range(0, rows.rows, SOME):
        at = slice(begin, begin + SOME)
        yield at, (rows.some(at), keys[at], rate, when)
