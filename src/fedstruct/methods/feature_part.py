"""The feature model f in FedStruct by propagation: at home, or carried over the border too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedstruct.methods.feature_model import Computation
from fedstruct.methods.propagated_options import PropagatedOptions
from fedstruct.methods.view import View
from fedstruct.models.decoupled import LocalHops
from fedstruct.models.flat import Flat
from fedstruct.models.pieces import NodeFeatures
from fedstruct.structure.kernels import normalised

When = tuple[int | str, ...]


class FeaturePart(ABC):
    """f_θ over the nodes of a view, in one round after the other."""

    def __init__(self, options: PropagatedOptions, view: View) -> None:
        self.options, self.view = options, view
        self.model = Flat(options.module(view.features.shape[1], view.classes))

    @abstractmethod
    def begin(self, theta: Tensor, rate: float, when: When) -> Tensor | None:
        """With these weights and these draws of dropout: what the nodes carry of f, if anything.

        Outside autograd, nothing is kept for a gradient.
        """

    @abstractmethod
    def at(self, nodes: np.ndarray) -> Any:
        """What `logits` needs for these nodes, made ready once."""

    @abstractmethod
    def logits(self, at: Any) -> Tensor:
        """h, the logits over inner edges."""

    @abstractmethod
    def slope(self, loss: Tensor, z: Tensor) -> Tensor:
        """The loss's slope by z."""

    @abstractmethod
    def gradient(self, carried: Tensor) -> Tensor:
        """The loss's gradient by θ, given its slope by what nodes carry."""


class FeaturesAtHome(FeaturePart):
    """f is added to the logits, and that is all; it is computed where training nodes need it."""

    def begin(self, theta: Tensor, rate: float, when: When) -> None:
        self.model.load(theta)
        self._draws = rate, when

    def at(self, nodes: np.ndarray) -> Computation:
        return self.options.on(self.view, nodes)

    def logits(self, at: Computation) -> Tensor:
        return at.logits(self.model.module, *self._draws)

    def slope(self, loss: Tensor, z: Tensor) -> Tensor:
        self._gradient, by_z = self.model.gradients(loss, z)
        return by_z

    def gradient(self, carried: Tensor) -> Tensor:
        return self._gradient


class FeaturesCarried(FeaturePart):
    """Every node carries its own prediction f_θ(x); the same f over inner edges may be added to the logits."""

    def __init__(self, options: PropagatedOptions, view: View) -> None:
        super().__init__(options, view)
        self._features = NodeFeatures(view.features, np.arange(len(view.labels)), view.keys, options.precision)

    def begin(self, theta: Tensor, rate: float, when: When) -> Tensor:
        self.model.load(theta)
        self._predicted = self._features.logits(self.model.module, rate, when)
        # What is carried is cut off here: its slope comes back over the border, and not through autograd.
        carried: Tensor = self._predicted.detach()
        self._leaf: Tensor = carried.clone().requires_grad_()
        return carried

    def at(self, nodes: np.ndarray) -> LocalHops:
        return LocalHops(normalised(self.view.inner), nodes, self.options.hops, self.options.precision)

    def logits(self, at: LocalHops) -> Tensor:
        logits: Tensor = at @ self._leaf[torch.from_numpy(at.used)]
        return logits

    def slope(self, loss: Tensor, z: Tensor) -> Tensor:
        slopes: tuple[Tensor, ...] = torch.autograd.grad(loss, (z, self._leaf), materialize_grads=True)
        by_z, self._by_leaf = slopes
        return by_z

    def gradient(self, carried: Tensor) -> Tensor:
        (gradient,) = self.model.gradients((self._predicted * (carried + self._by_leaf)).sum())
        return gradient
