"""FedStruct by propagation: Ā is multiplied with, over the border, and neither Ā nor a row of S is ever shared.

Z = Ā s is linear and short. In every round each party tells each neighbour sums of what its nodes carry, hop after
hop; the slopes of the loss come back the same way. The model is that of an exchange which prunes nothing.

Reference: Aliakbari, Östman and Graell i Amat, "Decoupled Subgraph Federated Learning", ICLR 2025, for the model; with
`teleport`, the weights of Gasteiger, Bojchevski and Günnemann, "Predict then Propagate", ICLR 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from fedstruct.errors import RefusedMessage
from fedstruct.federation.codec import Limits
from fedstruct.federation.federation import Federation
from fedstruct.federation.message import Message
from fedstruct.federation.party import answers
from fedstruct.federation.watch import Watch
from fedstruct.graph.party_graph import PartyGraph
from fedstruct.methods.evaluation import Counts
from fedstruct.methods.feature_model import start_of
from fedstruct.methods.fedstruct import FedStruct
from fedstruct.methods.method import Trained
from fedstruct.methods.opening import BALANCING, OPENING, OpeningParty, opened
from fedstruct.methods.optimiser import Optimiser
from fedstruct.methods.propagated_messages import (
    PROPAGATION,
    Carry,
    CarryOn,
    CarryTrained,
    CountArrived,
    Gather,
    TurnBack,
)
from fedstruct.methods.propagated_options import PropagatedOptions
from fedstruct.methods.propagated_sums import PropagatedSums
from fedstruct.methods.training import ModelGradient
from fedstruct.models.flat import Flat
from fedstruct.seeds import key
from fedstruct.structure.border import told, with_groups_of


class PropagatedFedStruct(FedStruct):
    """ŷ_v = softmax(Σ_u Ā_vu s_u + f_θ(v)), with S stepped by its owners and θ by the coordinator.

    >>> from fedstruct import generate, partition, run
    >>> parts = partition.random(generate.planted(nodes=200), parties=3)
    >>> result = run(FedStruct(structure="propagated", layers_structure=3, rounds=2), parts)
    >>> sums = result.ledger.frame().filter(kind="Sums", entry="sent")
    >>> len(sums), list(result.trained.parameters)
    (54, ['theta'])
    """

    name = "fedstruct-propagated"
    options_type: type[Any] = PropagatedOptions
    options: Any

    @property
    def sends(self) -> frozenset[type[Message]]:
        kinds = OPENING | PROPAGATION | {ModelGradient, Counts}
        return kinds | (BALANCING if self.options.class_weight == "balanced" else frozenset())

    def party(self, own: PartyGraph, parties: tuple[str, ...], seed: int) -> PropagatedParty:  # type: ignore[override]
        return PropagatedParty(own, parties, self.options, key("dropout", seed))

    def train(self, federation: Federation, seed: int, watch: Watch) -> Trained:
        o = self.options
        with watch.phase("training"):
            first, labelled = opened(federation, balanced=o.class_weight == "balanced")
            theta = Flat(o.module(first.features, first.classes, start_of(seed))).vector
            optimiser = Optimiser(o.optimizer, (theta, o.lr, o.weight_decay))
            expected = Limits(sizes={"parameters": len(theta), "classes": first.classes})
            for t in range(o.rounds):
                federation.sum(Carry(t, labelled, theta.numpy()))
                self._hops(federation)
                federation.sum(TurnBack())
                self._hops(federation)
                gradient: ModelGradient = federation.sum(Gather(), limits=expected)  # type: ignore[assignment]
                optimiser.step(torch.from_numpy(gradient.theta) / labelled)
                watch.advance(t + 1, o.rounds, loss=gradient.loss / labelled)

        with watch.phase("evaluation"):
            federation.sum(CarryTrained(theta.numpy()))
            self._hops(federation)
            counts: Counts = federation.sum(CountArrived(), limits=expected)  # type: ignore[assignment]
        return Trained({"theta": theta.numpy()}, counts.confusion, counts.scores)

    def _hops(self, federation: Federation) -> None:
        """The hops between the first sums and the last."""
        for hop in range(1, self.options.layers_structure):
            federation.sum(CarryOn(hop))


class PropagatedParty(OpeningParty):
    """One owner's side: its rows of S stay here, and what it tells of them are sums."""

    def __init__(self, own: PartyGraph, parties: tuple[str, ...], options: PropagatedOptions, draws: int) -> None:
        super().__init__(own, parties)
        self.options = options
        self.draws = draws
        self.shared = with_groups_of(own, options.min_group)
        """What it owns, with those border edges that count."""
        self.told = told(self.shared)
        """How many sums it tells each peer in a hop, and over how many nodes; known before anything is sent."""

    def limits(self) -> Limits:
        known = super().limits()
        return replace(known, sizes={**known.sizes, "parameters": self._parameters})

    @cached_property
    def _parameters(self) -> int:
        model = self.options.module(self.own.features.shape[1], self.own.classes)
        return sum(p.numel() for p in model.parameters())

    @cached_property
    def sums(self) -> PropagatedSums:
        return self.stack([self])

    @classmethod
    def stack(cls, parties: Sequence[Self]) -> PropagatedSums:
        """The parties stepping as one; of one party, its own steps."""
        return PropagatedSums(parties)

    @answers(Carry)
    def carry(self, question: Carry) -> Message:
        return self._step(question)

    @answers(CarryTrained)
    def carry_trained(self, question: CarryTrained) -> Message:
        return self._step(question)

    @answers(CarryOn)
    def carry_on(self, question: CarryOn) -> Message:
        return self._step(question)

    @answers(TurnBack)
    def turn_back(self, question: TurnBack) -> Message:
        return self._step(question)

    @answers(Gather)
    def gather(self, question: Gather) -> Message:
        return self._step(question)

    @answers(CountArrived)
    def count_arrived(self, question: CountArrived) -> Message:
        return self._step(question)

    def _step(self, question: Message) -> Message:
        self.sums.check(question)
        reply = self.sums.answer(question, self._came())
        for peer, values in self.sums.told(question).items():
            self.post(peer, self.sums.leaving(values.numpy()))
        return reply

    def _came(self) -> Tensor | None:
        """The sums of the step before, peer after peer; each must be there, for just the nodes at its border."""
        takes = self.sums.takes
        came: dict[str, Any] = {peer: posted.values for peer, posted in self.inbox(self.sums.leaving)}
        for peer, nodes in takes.items():
            if (found := len(came.get(peer, ()))) != nodes:
                raise RefusedMessage(
                    f"{peer} told {self.own.name} {found} sums, but its border with it has {nodes} nodes; do the "
                    "two have the same edges between them, and the same min_group?"
                )
        if not any(takes.values()):
            return None
        arrived = np.concatenate([came[peer] for peer, nodes in takes.items() if nodes])
        return torch.from_numpy(arrived).to(self.options.precision)
