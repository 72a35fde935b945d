"""What every method offers: its messages, its parties' side and its coordinator's side."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedstruct.federation.federation import Federation
from fedstruct.federation.message import Message, Wire
from fedstruct.federation.party import Party
from fedstruct.federation.watch import Watch
from fedstruct.graph.party_graph import PartyGraph
from fedstruct.methods.options import Options, WireOptions


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, and how often it took each class for each: confusion[split, true, predicted]."""

    parameters: dict[str, np.ndarray]
    confusion: np.ndarray
    scores: np.ndarray
    """Two classes: scores[split, true, bin] counts nodes by their probability of class 1, in 1,024 bins."""


class Method(ABC):
    """A way to train one classifier over the parts of a graph; holds both sides of the conversation.

    The same options are agreed at every site, so that messages carry data and never instructions.
    """

    name: str
    pooled: ClassVar[bool] = False
    """Trained on the whole graph by one party: a bound, not a federation."""
    options_type: type[Options]

    def __init__(self, **options: Any) -> None:
        self.options = self.options_type.of(**options)

    @property
    def wire(self) -> Wire:
        """How floating arrays travel."""
        return self.options.wire if isinstance(self.options, WireOptions) else "full"

    @property
    @abstractmethod
    def sends(self) -> frozenset[type[Message]]:
        """Every kind of message of the conversation: a party's own policy admits these, or refuses the run."""

    @abstractmethod
    def party(self, own: PartyGraph, parties: tuple[str, ...], seed: int) -> Party:
        """One owner's side; `parties` names everybody in federation order."""

    @abstractmethod
    def train(self, federation: Federation, seed: int, watch: Watch) -> Trained:
        """The coordinator's side: straight-line Python, the same on any transport."""
