"""What parties and coordinator tell each other in Algorithm 2, once Ā has been exchanged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedstruct.federation.message import EVERYTHING, Message, Source, array
from fedstruct.methods.evaluation import Counts


@dataclass(frozen=True, eq=False)
class Columns(Message):
    sources = Source.COUNTS | Source.STRUCTURE | Source.LABELS
    tells = "which nodes of the federation a party's training nodes reach"
    unit = "columns"
    columns: np.ndarray = array("i4", "reached", below="nodes")


@dataclass(frozen=True, eq=False)
class Reach(Message):
    """Which columns do your training rows of Ā touch?"""

    sources = Source.NOTHING
    tells = "that the reach is asked for"
    reply = Columns


@dataclass(frozen=True, eq=False)
class AllColumns(Message):
    sources = Source.COUNTS | Source.STRUCTURE
    tells = "which nodes of the federation a party's nodes reach"
    unit = "columns"
    columns: np.ndarray = array("i4", "reached", below="nodes")


@dataclass(frozen=True, eq=False)
class ReachAll(Message):
    """Which columns do all your rows of Ā touch?"""

    sources = Source.NOTHING
    tells = "that the reach of all nodes is asked for"
    reply = AllColumns


@dataclass(frozen=True, eq=False)
class Gradient(Message):
    sources = EVERYTHING
    tells = (
        "a party's gradient of the model and of the structure embedding, and its loss, summed over its training nodes"
    )
    unit = "structure"
    loss: float
    theta: np.ndarray = array("f", "parameters")
    structure: np.ndarray = array("f", "reach", "width", by_row=True)


@dataclass(frozen=True, eq=False)
class Weights(Message):
    """The model and the rows of S that a party's training nodes reach: compute the gradient."""

    sources = EVERYTHING
    tells = "the model, and the structure embedding of the nodes that a party's training nodes reach"
    reply = Gradient
    unit = "structure"
    round: int
    theta: np.ndarray = array("f", "parameters")
    structure: np.ndarray = array("f", "reach", "width", by_row=True)


@dataclass(frozen=True, eq=False)
class Evaluate(Message):
    """The final model and the rows of S that a party's nodes reach: count right and wrong."""

    sources = EVERYTHING
    tells = "the trained model, and the structure embedding of the nodes that a party's nodes reach"
    reply = Counts
    unit = "structure"
    theta: np.ndarray = array("f", "parameters")
    structure: np.ndarray = array("f", "touched", "width", by_row=True)
