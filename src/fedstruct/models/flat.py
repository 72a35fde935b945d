"""A model's parameters as one vector: what travels, and what the optimiser steps."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Flat:
    """A module whose parameters are views of one flat vector, each as it lies in memory.

    >>> flat = Flat(nn.Linear(2, 1))
    >>> flat.load(torch.tensor([1.0, 2.0, 3.0]))
    >>> flat.module(torch.ones(2)).item()
    6.0
    >>> flat.gradients(flat.module(torch.tensor([5.0, 7.0])).sum())
    [tensor([5., 7., 1.])]
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self._parameters = list(module.parameters())
        self.vector = torch.cat([p.detach().as_strided((p.numel(),), (1,)) for p in self._parameters])
        for p, view in zip(self._parameters, self._views(self.vector), strict=True):
            p.data = view

    def __len__(self) -> int:
        return self.vector.numel()

    def load(self, vector: Tensor) -> None:
        self.vector.copy_(vector)

    def gradients(self, loss: Tensor, *others: Tensor) -> list[Tensor]:
        """The gradient of a loss by the vector, and by other tensors; zero where it does not depend on them."""
        slopes = torch.autograd.grad(loss, [*self._parameters, *others], materialize_grads=True)
        vector = torch.empty_like(self.vector)
        for view, slope in zip(self._views(vector), slopes, strict=False):
            view.copy_(slope)
        return [vector, *slopes[len(self._parameters) :]]

    def _views(self, vector: Tensor) -> list[Tensor]:
        sizes = [p.numel() for p in self._parameters]
        parts = zip(torch.split(vector, sizes), self._parameters, strict=True)
        return [part.as_strided(p.shape, p.stride()) for part, p in parts]
