"""Node structure features that do not depend on the task: degrees, and Fed★'s return probabilities.

Reference: Tan et al., "Federated Learning on Non-IID Graphs via Structural Knowledge Sharing", AAAI 2023; here the
return probabilities are the diagonals of the powers of Â that the structure exchange passes through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, hstack

from fedstruct.errors import RefusedMessage
from fedstruct.federation.federation import Federation
from fedstruct.federation.message import Done, Message, Source, array
from fedstruct.federation.party import answers
from fedstruct.methods.exchange import Collect, ExchangeParty, Multiply, Sizes
from fedstruct.structure.kernels import columns_of, compressed


@dataclass(frozen=True, eq=False)
class Wanted(Message):
    """The receiver's nodes that the sender's rows of Ā touch."""

    sources = Source.COUNTS | Source.STRUCTURE
    tells = "which of the receiver's nodes the sender's nodes reach"
    peer = True
    unit = "nodes_of"
    nodes_of: np.ndarray = array("i4", "wanted", below="own")


@dataclass(frozen=True, eq=False)
class StructureRows(Message):
    """Degree and return probabilities of the nodes that the receiver asked for, in its order."""

    sources = Source.COUNTS | Source.STRUCTURE
    tells = "the degree and the return probabilities of the sender's nodes that the receiver's nodes reach"
    peer = True
    unit = "degrees"
    degrees: np.ndarray = array("i4", "wanted")
    returns: np.ndarray = array("f8", "wanted", "steps")


@dataclass(frozen=True, eq=False)
class AskForRows(Message):
    """Ask your peers for the structure features of their nodes that you reach."""

    sources = Source.NOTHING
    tells = "that structure features are to be asked for"
    reply = Done


@dataclass(frozen=True, eq=False)
class SendRows(Message):
    """Send your peers the structure features that they asked for."""

    sources = Source.NOTHING
    tells = "that structure features are to be sent"
    reply = Done


@dataclass(frozen=True, eq=False)
class TakeRows(Message):
    """Take the structure features that came."""

    sources = Source.NOTHING
    tells = "that structure features have been sent"
    reply = Done


STRUCTURE_FEATURES = frozenset({AskForRows, SendRows, TakeRows, Wanted, StructureRows})


def share(federation: Federation) -> None:
    """Each party gets the structure features of the nodes that it reaches."""
    for question in (AskForRows(), SendRows(), TakeRows()):
        federation.ask(question)


def table(degrees: np.ndarray, returns: np.ndarray, width: int) -> csr_array:
    """The features as the model sees them: a one-hot degree, clipped, beside the return probabilities.

    >>> table(np.array([1, 9]), np.array([[0.5], [0.25]]), width=4).toarray().tolist()
    [[0.0, 1.0, 0.0, 0.5], [0.0, 0.0, 1.0, 0.25]]
    """
    bins = width - returns.shape[1]
    clipped = np.minimum(degrees, bins - 1)
    rows = np.arange(len(degrees) + 1)
    one_hot = compressed(np.ones(len(degrees)), clipped, rows, (len(degrees), bins))
    return csr_array(hstack([one_hot, csr_array(returns)], format="csr"))


class StructureFeatureParty(ExchangeParty):
    """A party that knows the structure features of its own nodes, and shares them with those who reach them."""

    return_steps: int = 0
    """How many return probabilities; 0 for degrees alone."""

    @answers(Sizes)
    def begin(self, question: Sizes) -> Done:
        done = super().begin(question)
        self._diagonals = [self._diagonal()] if self.return_steps else []
        return done

    @answers(Collect, after=Multiply)
    def collect(self, question: Collect) -> Done:
        done = super().collect(question)
        if question.hop <= self.return_steps:
            self._diagonals.append(self._diagonal())
        return done

    def _diagonal(self) -> np.ndarray:
        mine = slice(self.starts[self.me], self.starts[self.me + 1])
        return np.asarray(self.power[:, mine].diagonal())

    def own_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Degree and return probabilities of this party's nodes; self loops are no neighbours."""
        degrees = np.diff(self.rows.indptr).astype(np.int32) - 1
        if not self.return_steps:
            return degrees, np.zeros((self.own.nodes, 0))
        return degrees, np.stack(self._diagonals, axis=1)

    @answers(AskForRows, after=Sizes)
    def ask_for_rows(self, question: AskForRows) -> Done:
        self.wanted = columns_of(self.reach)
        for j, peer in enumerate(self.parties):
            nodes = self._of(j)
            if peer != self.own.name and len(nodes):
                self.post(peer, Wanted((nodes - self.starts[j]).astype(np.int32)))
        return Done()

    @answers(SendRows, after=AskForRows)
    def send_rows(self, question: SendRows) -> Done:
        degrees, returns = self.own_rows()
        for peer, wanted in self.inbox(Wanted):
            self.post(peer, StructureRows(degrees[wanted.nodes_of], returns[wanted.nodes_of]))
        return Done()

    @answers(TakeRows, after=SendRows)
    def take_rows(self, question: TakeRows) -> Done:
        own = self.own_rows()
        size = int(self.starts[-1])
        self.degrees_of = np.zeros(size, np.int32)
        self.returns_of = np.zeros((size, own[1].shape[1]))
        mine = slice(self.starts[self.me], self.starts[self.me + 1])
        self.degrees_of[mine], self.returns_of[mine] = own
        for peer, rows in self.inbox(StructureRows):
            nodes = self._of(self.parties.index(peer))
            if rows.returns.shape != (len(nodes), own[1].shape[1]):
                raise RefusedMessage(f"{peer} sent {self.own.name} structure features that it did not ask for")
            self.degrees_of[nodes], self.returns_of[nodes] = rows.degrees, rows.returns
        return Done()

    def _of(self, party: int) -> np.ndarray:
        """The nodes of one party that this party reaches."""
        first, last = np.searchsorted(self.wanted, self.starts[party : party + 2])
        nodes: np.ndarray = self.wanted[first:last]
        return nodes


def known_rows(parties: Sequence[StructureFeatureParty], width: int) -> csr_array:
    """The structure features of everybody's nodes, as far as these parties know them."""
    degrees = np.maximum.reduce([p.degrees_of for p in parties])
    returns = np.maximum.reduce([p.returns_of for p in parties])
    return table(degrees, returns, width)
