"""How every conversation opens: the parties announce themselves, and the coordinator sees whether they fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedstruct.errors import FedstructError
from fedstruct.federation.codec import Limits
from fedstruct.federation.federation import Federation
from fedstruct.federation.message import Done, Message, Source, array
from fedstruct.federation.party import Party, answers
from fedstruct.graph.graph import TRAIN
from fedstruct.graph.party_graph import PartyGraph

MOST_NODES = 2**31 - 1
"""Nodes of a federation: their numbers travel in 32 bits."""


MOST_CLASSES = 4096
"""Classes of a federation: evaluation counts classes × classes."""


@dataclass(frozen=True, eq=False)
class Announcement(Message):
    sources = Source.COUNTS | Source.LABELS
    tells = "how many nodes, training nodes, features and classes a party has"
    nodes: int
    labelled: int
    features: int
    classes: int

    def complaint(self) -> str | None:
        counts = (self.nodes, self.labelled, self.features, self.classes)
        if min(counts) < 0 or max(counts) > MOST_NODES or self.labelled > self.nodes:
            return "nobody can have such counts"
        return None


@dataclass(frozen=True, eq=False)
class Start(Message):
    """Announce yourself."""

    sources = Source.NOTHING
    tells = "that a run begins"
    reply = Announcement


@dataclass(frozen=True, eq=False)
class ClassCounts(Message):
    sources = Source.LABELS
    tells = "how many training nodes of each class a party has"
    counts: np.ndarray = array("i8", "classes")


@dataclass(frozen=True, eq=False)
class CountClasses(Message):
    """How many training nodes of each class do you have?"""

    sources = Source.NOTHING
    tells = "that classes are to be balanced"
    reply = ClassCounts


@dataclass(frozen=True, eq=False)
class Balance(Message):
    """The training nodes of each class in the federation: weigh each class by its rarity."""

    sources = Source.LABELS
    tells = "how many training nodes of each class the federation has"
    reply = Done
    counts: np.ndarray = array("i8", "classes")


OPENING = frozenset({Start, Announcement})
BALANCING = frozenset({CountClasses, ClassCounts, Balance, Done})


def announced(federation: Federation) -> dict[str, Announcement]:
    """Ask who takes part, and make sure that they can train together."""
    parties: Mapping[str, Announcement] = federation.ask(Start())  # type: ignore[assignment]
    for what in ("features", "classes"):
        said = {name: getattr(a, what) for name, a in parties.items()}
        if len(set(said.values())) > 1:
            listed = ", ".join(f"{name} {number}" for name, number in said.items())
            raise FedstructError(f"the parties disagree on the number of {what}: {listed}")
    if max(a.classes for a in parties.values()) > MOST_CLASSES:
        raise FedstructError(f"there are more than {MOST_CLASSES:,} classes; confusion is counted in classes × classes")
    if sum(a.labelled for a in parties.values()) == 0:
        raise FedstructError("nobody has a labelled node to train on; give at least one party's split training nodes")
    return dict(parties)


def balance(federation: Federation, classes: int) -> None:
    """Tell every party how rare each class is among everybody's training nodes."""
    counts: ClassCounts = federation.sum(CountClasses(), limits=Limits(sizes={"classes": classes}))  # type: ignore[assignment]
    federation.ask(Balance(counts.counts))


def opened(federation: Federation, balanced: bool) -> tuple[Announcement, int]:
    """How training begins: what all parties have in common, and the federation's number of training nodes."""
    parties = announced(federation)
    first = next(iter(parties.values()))
    if balanced:
        balance(federation, first.classes)
    return first, sum(a.labelled for a in parties.values())


def rarity(counts: np.ndarray) -> np.ndarray:
    """A weight per class, inverse to its frequency, so that the weights of all training nodes add up to their number.

    >>> rarity(np.array([30, 10, 0])).round(3).tolist()
    [0.667, 2.0, 1.0]
    """
    present = counts > 0
    return np.where(present, counts.sum() / (present.sum() * np.maximum(counts, 1)), 1.0)


class OpeningParty(Party):
    """A party that can announce itself, and learn how rare each class is."""

    def __init__(self, own: PartyGraph, parties: tuple[str, ...]) -> None:
        super().__init__(own, parties)
        self.class_weights: np.ndarray | None = None

    def limits(self) -> Limits:
        own = self.own
        return Limits(sizes={"parties": len(self.parties), "classes": own.classes, "features": own.features.shape[1]})

    @answers(Start)
    def announce(self, question: Start) -> Announcement:
        return Announcement(
            nodes=self.own.nodes,
            labelled=len(self.own.known(TRAIN)),
            features=self.own.features.shape[1],
            classes=self.own.classes,
        )

    @answers(CountClasses)
    def count_classes(self, question: CountClasses) -> ClassCounts:
        return ClassCounts(np.bincount(self.own.labels[self.own.known(TRAIN)], minlength=self.own.classes))

    @answers(Balance)
    def weigh_classes(self, question: Balance) -> Done:
        self.class_weights = rarity(question.counts)
        return Done()
