"""The coordinator's optimiser: one step for several groups of parameters, each at its own rate."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from fedstruct.methods.divergence import must_be_finite


class Optimiser:
    """Adam or gradient descent on groups of (parameters, rate, weight decay), in place.

    Weight decay is coupled: it is added to the gradient, as an L2 penalty. torch's functional forms do the arithmetic:
    the state stays in sight, and torch's optimiser classes take most of a second to import what they need.

    >>> w = torch.zeros(1)
    >>> Optimiser("sgd", (w, 0.5, 0.0)).step(torch.ones(1))
    >>> w
    tensor([-0.5000])
    """

    def __init__(self, kind: str, *groups: tuple[Tensor, float, float]) -> None:
        self.kind = kind
        self.groups = groups
        self.first = [torch.zeros_like(p) for p, _, _ in groups]
        self.second = [torch.zeros_like(p) for p, _, _ in groups]
        self.steps = [torch.zeros((), dtype=torch.float32) for _ in groups]

    def step(self, *gradients: Tensor) -> None:
        for g, (parameters, rate, decay) in enumerate(self.groups):
            if self.kind == "sgd":
                sgd(
                    [parameters], [gradients[g]], [None],
                    weight_decay=decay, lr=rate, momentum=0.0, dampening=0.0, nesterov=False, maximize=False,
                )  # fmt: skip
            else:
                adam(
                    [parameters], [gradients[g]], [self.first[g]], [self.second[g]], [], [self.steps[g]],
                    amsgrad=False, beta1=0.9, beta2=0.999, eps=1e-8, lr=rate, weight_decay=decay, maximize=False,
                    fused=True,
                )  # fmt: skip
            must_be_finite(parameters, "the model")
