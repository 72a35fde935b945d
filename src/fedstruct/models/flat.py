"""A model's parameters as one vector: what travels, and what the optimiser steps."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Flat:
    """A module whose parameters, and their gradients, are views of two flat vectors.

    >>> flat = Flat(nn.Linear(2, 1))
    >>> flat.load(torch.tensor([1.0, 2.0, 3.0]))
    >>> flat.module(torch.ones(2)).item()
    6.0
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        parameters = list(module.parameters())
        self.vector = torch.cat([p.detach().reshape(-1) for p in parameters])
        self.gradient = torch.zeros_like(self.vector)
        at = 0
        for p in parameters:
            size = p.numel()
            p.data = self.vector[at : at + size].view_as(p)
            p.grad = self.gradient[at : at + size].view_as(p)
            at += size

    def __len__(self) -> int:
        return self.vector.numel()

    def load(self, vector: Tensor) -> None:
        self.vector.copy_(vector)

    def clear(self) -> None:
        self.gradient.zero_()
