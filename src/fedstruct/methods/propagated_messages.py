"""What passes in FedStruct by propagation: sums over the border, hop by hop, and back again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedstruct.federation.message import EVERYTHING, Done, Message, Source, array
from fedstruct.methods.evaluation import Counts
from fedstruct.methods.opening import MOST_NODES
from fedstruct.methods.training import ModelGradient


@dataclass(frozen=True, eq=False)
class Sums(Message):
    """For each of the receiver's nodes that points to the sender's, in order: the weighted sum of what these carry."""

    sources = EVERYTHING
    tells = "sums of what the sender's nodes carry, one for each of the receiver's nodes that points to them"
    peer = True
    unit = "values"
    values: np.ndarray = array("f", "border", "classes", by_row=True)


@dataclass(frozen=True, eq=False)
class SlopeSums(Message):
    """For each of the receiver's nodes that the sender's point to, in order: the weighted sum of their slopes."""

    sources = EVERYTHING
    tells = "sums of the loss's slopes at the sender's nodes, one for each of the receiver's nodes that they point to"
    peer = True
    unit = "values"
    values: np.ndarray = array("f", "border", "classes", by_row=True)


@dataclass(frozen=True, eq=False)
class Carry(Message):
    """The model, and everybody's number of training nodes: compute what your nodes carry, and post the first sums."""

    sources = EVERYTHING
    tells = "the model"
    reply = Done
    unit = "theta"
    round: int
    labelled: int
    theta: np.ndarray = array("f", "parameters")

    def complaint(self) -> str | None:
        return None if 0 < self.labelled <= MOST_NODES else "no federation can have so many training nodes"


@dataclass(frozen=True, eq=False)
class CarryTrained(Message):
    """The final model: compute what your nodes carry without dropout, and post the first sums."""

    sources = EVERYTHING
    tells = "the trained model"
    reply = Done
    unit = "theta"
    theta: np.ndarray = array("f", "parameters")


@dataclass(frozen=True, eq=False)
class CarryOn(Message):
    """Take in the sums that came, and post those of the next hop, in the same direction."""

    sources = Source.NOTHING
    tells = "that a hop ends and another begins"
    reply = Done
    hop: int


@dataclass(frozen=True, eq=False)
class TurnBack(Message):
    """Take in the last sums, compute the loss at your training nodes, and post the first sums of its slope."""

    sources = Source.NOTHING
    tells = "that the values have arrived, and their slopes go back"
    reply = Done


@dataclass(frozen=True, eq=False)
class Gather(Message):
    """Take in the last sums of slopes, step your own rows of S, and answer with the gradient of the model."""

    sources = Source.NOTHING
    tells = "that the slopes have arrived"
    reply = ModelGradient


@dataclass(frozen=True, eq=False)
class CountArrived(Message):
    """Take in the last sums, and count right and wrong."""

    sources = Source.NOTHING
    tells = "that the trained model's values have arrived"
    reply = Counts


PROPAGATION = frozenset({Carry, CarryOn, TurnBack, Gather, CarryTrained, CountArrived, Sums, SlopeSums, Done})
