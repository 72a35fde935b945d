"""FedAvg: every party trains for some epochs on its own part; the coordinator averages the models.

Reference: McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from pydantic import Field

from fedstruct.federation.codec import Limits
from fedstruct.federation.federation import Federation
from fedstruct.federation.message import EVERYTHING, Message, array
from fedstruct.federation.party import answers
from fedstruct.federation.watch import Watch
from fedstruct.graph.graph import TRAIN
from fedstruct.graph.party_graph import PartyGraph
from fedstruct.methods.evaluation import Counts
from fedstruct.methods.feature_model import start_of
from fedstruct.methods.method import Trained
from fedstruct.methods.opening import OPENING, opened
from fedstruct.methods.optimiser import Optimiser
from fedstruct.methods.options import WireOptions
from fedstruct.methods.training import EvaluateModel, ModelParty
from fedstruct.methods.variants import ModelMethod
from fedstruct.models.flat import Flat
from fedstruct.seeds import key


class FedAvgOptions(WireOptions):
    local_epochs: int = Field(1, ge=1, description="full-batch steps of each party per round")


@dataclass(frozen=True, eq=False)
class LocalModel(Message):
    sources = EVERYTHING
    tells = "a party's model after training on its own part, times its training nodes, and its loss summed over them"
    unit = "theta"
    loss: float
    theta: np.ndarray = array("f8", "parameters")


@dataclass(frozen=True, eq=False)
class TrainModel(Message):
    """The averaged model: train it on your own part."""

    sources = EVERYTHING
    tells = "the averaged model"
    reply = LocalModel
    unit = "theta"
    round: int
    theta: np.ndarray = array("f", "parameters")


class FedAvg(ModelMethod):
    """Weights are the parties' training nodes. A party keeps its optimiser's state; it is never averaged.

    >>> from fedstruct import generate, partition, run
    >>> parts = partition.random(generate.planted(nodes=200), parties=3)
    >>> run(FedAvg("mlp", rounds=2, local_epochs=3), parts).messages
    24
    """

    family = "fedavg"
    more_options = FedAvgOptions
    kinds = OPENING | {TrainModel, LocalModel, EvaluateModel, Counts}

    def party(self, own: PartyGraph, parties: tuple[str, ...], seed: int) -> FedAvgParty:
        return FedAvgParty(own, parties, self.options, key("dropout", seed))

    def train(self, federation: Federation, seed: int, watch: Watch) -> Trained:
        o = self.options
        with watch.phase("training"):
            first, labelled = opened(federation, balanced=o.class_weight == "balanced")
            theta = Flat(o.module(first.features, first.classes, start_of(seed))).vector
            expected = Limits(sizes={"parameters": len(theta), "classes": first.classes})
            for t in range(o.rounds):
                total: LocalModel = federation.sum(TrainModel(t, theta.numpy()), limits=expected)  # type: ignore[assignment]
                theta.copy_(torch.from_numpy(total.theta / labelled))
                watch.advance(t + 1, o.rounds, loss=total.loss / labelled)
        with watch.phase("evaluation"):
            counts: Counts = federation.sum(EvaluateModel(theta.numpy()), limits=expected)  # type: ignore[assignment]
        return Trained({"theta": theta.numpy()}, counts.confusion, counts.scores)


class FedAvgParty(ModelParty):
    """One owner's side of FedAvg."""

    options: Any
    _optimiser: Optimiser | None = None

    @answers(TrainModel)
    def train(self, question: TrainModel) -> LocalModel:
        o, sums = self.options, self.sums
        labelled = len(self.own.known(TRAIN))
        sums.model.load(torch.from_numpy(np.array(question.theta)))
        if self._optimiser is None:
            self._optimiser = Optimiser(o.optimizer, (sums.model.vector, o.lr, o.weight_decay))
        loss = 0.0
        for epoch in range(o.local_epochs if labelled else 0):
            last, gradient = sums.slope(question.round * o.local_epochs + epoch)
            loss = loss if epoch else last
            self._optimiser.step(gradient.div_(labelled))
        return LocalModel(loss, sums.model.vector.numpy().astype(np.float64) * labelled)
