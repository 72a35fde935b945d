"""What the methods without structure share: messages that carry a model, and the sums that a step computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from fedstruct.federation.codec import Limits
from fedstruct.federation.message import EVERYTHING, Message, array
from fedstruct.federation.party import answers
from fedstruct.federation.stack import Stack
from fedstruct.graph.graph import TRAIN
from fedstruct.graph.party_graph import PartyGraph
from fedstruct.methods.divergence import must_be_finite
from fedstruct.methods.evaluation import Counts, counted
from fedstruct.methods.feature_model import Computation, GNNOptions, MLPOptions
from fedstruct.methods.opening import OPENING, OpeningParty
from fedstruct.methods.view import View
from fedstruct.models.flat import Flat

ModelOptions = MLPOptions | GNNOptions


@dataclass(frozen=True, eq=False)
class ModelGradient(Message):
    sources = EVERYTHING
    tells = "a party's gradient of the model, and its loss, summed over its training nodes"
    unit = "theta"
    loss: float
    theta: np.ndarray = array("f", "parameters")


@dataclass(frozen=True, eq=False)
class ModelWeights(Message):
    """The model: compute its gradient."""

    sources = EVERYTHING
    tells = "the model"
    reply = ModelGradient
    unit = "theta"
    round: int
    theta: np.ndarray = array("f", "parameters")


@dataclass(frozen=True, eq=False)
class EvaluateModel(Message):
    """The final model: count right and wrong."""

    sources = EVERYTHING
    tells = "the trained model"
    reply = Counts
    unit = "theta"
    theta: np.ndarray = array("f", "parameters")


TRAINING = OPENING | {ModelWeights, ModelGradient, EvaluateModel, Counts}


class ModelSums(Stack):
    """The sums over nodes side by side, of one party or of several."""

    steps = (ModelWeights, EvaluateModel)

    def __init__(self, parties: Sequence[ModelParty]) -> None:
        first = parties[0]
        self.options, self.draws = first.options, first.draws
        self.view = View.of([p.own for p in parties])
        self.model = Flat(self.options.module(self.view.features.shape[1], self.view.classes, first.start))
        weights = first.class_weights
        self.class_weights = None if weights is None else torch.from_numpy(weights).to(self.options.precision)
        self._training: tuple[Computation, torch.Tensor] | None = None

    def total(self, question: Message) -> Message:
        if isinstance(question, ModelWeights):
            return self.gradient(question)
        assert isinstance(question, EvaluateModel)
        return self.evaluate(question)

    def gradient(self, question: ModelWeights) -> ModelGradient:
        self.model.load(self._tensor(question.theta))
        loss, gradient = self.slope(question.round)
        return ModelGradient(loss, gradient.numpy())

    def slope(self, round: int) -> tuple[float, torch.Tensor]:
        """The loss and its gradient, summed over the training nodes."""
        if self._training is None:
            nodes = self.view.known(TRAIN)
            self._training = self.options.on(self.view, nodes), torch.from_numpy(self.view.labels[nodes])
        computation, labels = self._training
        logits = computation.logits(self.model.module, self.options.dropout, (self.draws, round))
        loss = torch.nn.functional.cross_entropy(logits, labels, self.class_weights, reduction="sum")
        must_be_finite(loss.item(), "the loss", round)
        (gradient,) = self.model.gradients(loss)
        must_be_finite(gradient, "the gradient", round)
        return loss.item(), gradient

    @torch.no_grad()
    def evaluate(self, question: EvaluateModel | None = None) -> Counts:
        """Count with the model of the question, or with the one that is there."""
        if question is not None:
            self.model.load(self._tensor(question.theta))
        nodes = self.view.judged
        logits = self.options.on(self.view, nodes).logits(self.model.module)
        return counted(logits, self.view.labels[nodes], self.view.split[nodes])

    def _tensor(self, values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.array(values)).to(self.options.precision)


class ModelParty(OpeningParty):
    """A party that computes gradients of a model on its own part of the graph."""

    def __init__(
        self, own: PartyGraph, parties: tuple[str, ...], options: ModelOptions, draws: int, start: int = 0
    ) -> None:
        super().__init__(own, parties)
        self.options = options
        self.draws = draws
        """Names this run's dropout."""
        self.start = start
        """Where a model is not sent but begun here: names its start."""
        self._sums: ModelSums | None = None

    def limits(self) -> Limits:
        known = super().limits()
        return replace(known, sizes={**known.sizes, "parameters": self._parameters})

    @cached_property
    def _parameters(self) -> int:
        model = self.options.module(self.own.features.shape[1], self.own.classes)
        return sum(p.numel() for p in model.parameters())

    @property
    def sums(self) -> ModelSums:
        if self._sums is None:
            self._sums = ModelSums([self])
        return self._sums

    @answers(ModelWeights)
    def gradient(self, question: ModelWeights) -> ModelGradient:
        return self.sums.gradient(question)

    @answers(EvaluateModel)
    def evaluate(self, question: EvaluateModel) -> Counts:
        return self.sums.evaluate(question)
