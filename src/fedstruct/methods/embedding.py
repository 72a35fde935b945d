"""S, the structure embedding, as the coordinator holds it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedstruct.methods.optimiser import Optimiser


class Embedding:
    """Rows of S, of which `reached` are those that some training node reaches: only these ever have a gradient.

    Where S starts at zero and does not decay, the other rows stay zero, and only the reached ones are stepped: exactly
    what Adam over all rows would do. Where it decays, every row is stepped.
    """

    def __init__(self, start: Tensor, reached: np.ndarray, kind: str, rate: float, decay: float) -> None:
        self._whole = start
        self._reached = torch.from_numpy(np.flatnonzero(reached))
        self._decays = decay > 0
        self._held = start if self._decays else start[self._reached]
        self._optimiser = Optimiser(kind, (self._held, rate, decay))

    @property
    def rows(self) -> np.ndarray:
        """The reached rows."""
        values: np.ndarray = (self._held[self._reached] if self._decays else self._held).numpy()
        return values

    def step(self, gradient: Tensor) -> None:
        """Descend along a gradient of the reached rows."""
        if self._decays:
            gradient = torch.zeros_like(self._held).index_copy_(0, self._reached, gradient)
        self._optimiser.step(gradient)

    def everywhere(self) -> np.ndarray:
        """S, all rows."""
        if not self._decays:
            self._whole[self._reached] = self._held
        values: np.ndarray = self._whole.numpy()
        return values
