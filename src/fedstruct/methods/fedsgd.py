"""FedSGD: every party sends the gradient on its own part; the coordinator steps with the sum.

Reference: McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import torch

from fedstruct.federation.codec import Limits
from fedstruct.federation.federation import Federation
from fedstruct.federation.watch import Watch
from fedstruct.graph.party_graph import PartyGraph
from fedstruct.methods.evaluation import Counts
from fedstruct.methods.feature_model import start_of
from fedstruct.methods.method import Trained
from fedstruct.methods.opening import opened
from fedstruct.methods.optimiser import Optimiser
from fedstruct.methods.options import Options, WireOptions
from fedstruct.methods.training import TRAINING, EvaluateModel, ModelGradient, ModelParty, ModelSums, ModelWeights
from fedstruct.methods.variants import ModelMethod
from fedstruct.models.flat import Flat
from fedstruct.seeds import key


class FedSGD(ModelMethod):
    """FedSGD on inner edges; border edges are not used.

    >>> from fedstruct import generate, partition, run
    >>> parts = partition.random(generate.planted(nodes=200), parties=3)
    >>> run(FedSGD("mlp", rounds=2), parts).messages
    24
    """

    family = "fedsgd"
    more_options: ClassVar[type[Options] | None] = WireOptions
    kinds = TRAINING

    def party(self, own: PartyGraph, parties: tuple[str, ...], seed: int) -> FedSGDParty:
        return FedSGDParty(own, parties, self.options, key("dropout", seed))

    def train(self, federation: Federation, seed: int, watch: Watch) -> Trained:
        o = self.options
        with watch.phase("training"):
            first, labelled = opened(federation, balanced=o.class_weight == "balanced")
            theta = Flat(o.module(first.features, first.classes, start_of(seed))).vector
            optimiser = Optimiser(o.optimizer, (theta, o.lr, o.weight_decay))
            expected = Limits(sizes={"parameters": len(theta), "classes": first.classes})
            for t in range(o.rounds):
                gradient: ModelGradient = federation.sum(ModelWeights(t, theta.numpy()), limits=expected)  # type: ignore[assignment]
                optimiser.step(torch.from_numpy(gradient.theta) / labelled)
                watch.advance(t + 1, o.rounds, loss=gradient.loss / labelled)
        with watch.phase("evaluation"):
            counts: Counts = federation.sum(EvaluateModel(theta.numpy()), limits=expected)  # type: ignore[assignment]
        return Trained({"theta": theta.numpy()}, counts.confusion, counts.scores)


class FedSGDParty(ModelParty):
    """One owner's side of FedSGD; parties share weights, so they may step as one."""

    @classmethod
    def stack(cls, parties: Sequence[Self]) -> ModelSums:
        return ModelSums(parties)
