"""What parties compute in FedStruct by propagation, one of them or all side by side, from hop to hop.

Z = Σ β_l Â^l s is computed as Horner's rule has it: the value starts as β_L s and becomes Â value + β_l s at each
hop, for l = L-1 … 0. The slope of the loss goes the same way back, with Â's transpose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from fedstruct.errors import RefusedMessage
from fedstruct.federation.message import Done, Message
from fedstruct.federation.stack import Posts, Stack
from fedstruct.graph.graph import TRAIN
from fedstruct.methods.crossing import Way, ways
from fedstruct.methods.divergence import must_be_finite
from fedstruct.methods.evaluation import Counts, counted
from fedstruct.methods.feature_part import FeaturePart, FeaturesAtHome, FeaturesCarried
from fedstruct.methods.optimiser import Optimiser
from fedstruct.methods.propagated_messages import (
    Carry,
    CarryOn,
    CarryTrained,
    CountArrived,
    Gather,
    SlopeSums,
    Sums,
    TurnBack,
)
from fedstruct.methods.training import ModelGradient
from fedstruct.methods.view import View
from fedstruct.structure.border import GroupSizes

if TYPE_CHECKING:
    from fedstruct.methods.propagated import PropagatedParty


class PropagatedSums(Stack):
    """The values of nodes side by side, and the rows of S that belong to them.

    S starts at zero and never decays; each row is stepped where it is owned, and leaves its owner in sums alone.
    """

    steps = (Carry, CarryOn, TurnBack, Gather, CarryTrained, CountArrived)

    def __init__(self, parties: Sequence[PropagatedParty]) -> None:
        first = parties[0]
        self.parties = parties
        self.options, self.draws = first.options, first.draws
        self.dtype = self.options.precision
        self.view = View.of([p.own for p in parties])
        self.forward, self.backward = ways([p.shared for p in parties], self.dtype)
        kind: type[FeaturePart] = FeaturesAtHome if self.options.carry == "structure" else FeaturesCarried
        self.features = kind(self.options, self.view)
        self.structure = torch.zeros(len(self.view.labels), self.view.classes, dtype=self.dtype)
        self._optimiser = Optimiser(self.options.optimizer, (self.structure, self.options.lr_structure, 0.0))
        weights = first.class_weights
        self.class_weights = None if weights is None else torch.from_numpy(weights).to(self.dtype)
        self._nodes = self.view.known(TRAIN)
        self._labels = torch.from_numpy(self.view.labels[self._nodes])
        self._training = self.features.at(self._nodes) if self.options.local else None
        self._round, self._hop = 0, -1  # no hop is under way
        self._labelled = 0
        self._way: Way | None = None

    def total(self, question: Message) -> Message:
        self.check(question)
        return self.answer(question, None)

    def check(self, question: Message) -> None:
        """Refuse a question that does not come next."""
        # A party counts rounds and hops itself: what it tells, and what it says of that, is not for others to steer.
        o, last = self.options, self.options.layers_structure - 1
        idle = self._hop == -1
        arrived, trained = self._hop == last, self._round == o.rounds
        match question:
            case Carry():
                fits = idle and question.round == self._round < o.rounds
            case CarryTrained():
                fits = idle and trained
            case CarryOn():
                fits = not idle and question.hop == self._hop + 1 <= last
            case Gather():
                fits = self._way is self.backward and arrived
            case _:
                fits = self._way is self.forward and arrived and trained == isinstance(question, CountArrived)
        if not fits:
            names = " and ".join(p.own.name for p in self.parties)
            raise RefusedMessage(
                f"{names}: '{type(question).__name__}' does not belong here, in round {self._round} at hop {self._hop}"
            )

    def answer(self, question: Message, came: Tensor | None) -> Message:
        """Answer one question; `came` are the sums that it asks to be taken in."""
        if isinstance(question, Carry):
            when = (self.draws, question.round)
            self._labelled = question.labelled
            return self._carry(question.theta, self.options.dropout, when)
        if isinstance(question, CarryTrained):
            with torch.no_grad():
                return self._carry(question.theta, 0.0, ())
        self._take(came)
        if isinstance(question, CarryOn):
            return Done()
        if isinstance(question, TurnBack):
            return self._turn_back()
        if isinstance(question, Gather):
            return self._gather()
        return self._count()

    def told(self, question: Message) -> dict[str, Tensor]:
        """The sums that leave for each peer once this question is answered."""
        if self._way is None or isinstance(question, (Gather, CountArrived)):
            return {}
        told = self._way.told(self.values)
        for sums in told.values():
            must_be_finite(sums, "what nodes carry", self._round)
        return told

    @property
    def takes(self) -> dict[str, int]:
        """How many sums each peer must have told, for the next question."""
        return {} if self._way is None else self._way.takes

    @property
    def leaving(self) -> type[Sums | SlopeSums]:
        """What passes in the direction of this moment."""
        return Sums if self._way is self.forward else SlopeSums

    def posts(self, question: Message) -> Sequence[Posts]:
        if isinstance(question, (Gather, CountArrived)):
            return ()
        return self._posts[self._way is self.forward]

    @cached_property
    def _posts(self) -> tuple[Sequence[Posts], Sequence[Posts]]:
        """What parties post on the way back, and on the way there: the same in every hop and round."""
        like = np.zeros((1, self.view.classes), np.dtype(self.options.dtype))
        return (
            _posted(SlopeSums(like), {p.own.name: p.told.backward for p in self.parties}),
            _posted(Sums(like), {p.own.name: p.told.forward for p in self.parties}),
        )

    def _carry(self, theta: np.ndarray, rate: float, when: tuple[int | str, ...]) -> Done:
        predicted = self.features.begin(torch.from_numpy(np.array(theta)).to(self.dtype), rate, when)
        start = self.structure
        if predicted is not None:
            start = predicted + start if self.options.free else predicted
        self._begin(self.forward, start)
        return Done()

    def _begin(self, way: Way, start: Tensor) -> None:
        self._way, self._start, self._hop = way, start, 0
        self.values = start * self.options.beta(self.options.layers_structure)

    def _take(self, came: Tensor | None) -> None:
        assert self._way is not None
        self._hop += 1
        self.values = self._way.moved(self.values, came)
        beta = self.options.beta(self.options.layers_structure - self._hop)
        if beta:
            self.values.add_(self._start, alpha=beta)

    def _turn_back(self) -> Done:
        nodes = torch.from_numpy(self._nodes)
        z = self.values[nodes].requires_grad_()
        logits = z if self._training is None else self.features.logits(self._training) + z
        loss = torch.nn.functional.cross_entropy(logits, self._labels, self.class_weights, reduction="sum")
        must_be_finite(loss.item(), "the loss", self._round)
        self._loss = loss.item()
        slope = torch.zeros_like(self.values).index_copy_(0, nodes, self.features.slope(loss, z))
        self._begin(self.backward, slope)
        return Done()

    def _gather(self) -> ModelGradient:
        theta = self.features.gradient(self.values)
        must_be_finite(theta, "the gradient", self._round)
        if self.options.free:
            self._optimiser.step(self.values / self._labelled)
        self._round, self._hop, self._way = self._round + 1, -1, None
        return ModelGradient(self._loss, theta.numpy())

    @torch.no_grad()
    def _count(self) -> Counts:
        nodes, part = self.view.judged, self.options.inference
        logits = self.values[torch.from_numpy(nodes)]
        if self.options.local and part != "structure":
            local = self.features.logits(self.features.at(nodes))
            logits = local if part == "features" else logits + local
        self._round, self._hop, self._way = self._round + 1, -1, None
        return counted(logits, self.view.labels[nodes], self.view.split[nodes])


def _posted(like: Message, told: Mapping[str, Mapping[str, GroupSizes]]) -> Sequence[Posts]:
    pairs = [(name, peer, sizes.all) for name, each in told.items() for peer, sizes in each.items() if sizes.all]
    if not pairs:
        return ()
    senders, receivers, rows = zip(*pairs, strict=True)
    return (Posts(like, senders, receivers, np.array(rows)),)
