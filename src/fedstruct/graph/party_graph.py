"""What one party owns, and all that it may know of the graph."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from fedstruct.errors import FedstructError
from fedstruct.graph.graph import TEST, TRAIN, VALIDATION, Features, check_nodes
from fedstruct.seeds import stream


@dataclass(frozen=True, eq=False)
class Border:
    """Edges between own nodes and nodes of peers, of which nothing is known but their numbers."""

    own: np.ndarray
    peer: np.ndarray
    """Position of the node's owner in `PartyGraph.peers`."""
    node: np.ndarray
    """The number that the owner gave the node."""
    weight: np.ndarray

    def __len__(self) -> int:
        return len(self.own)


@dataclass(frozen=True, eq=False)
class PartyGraph:
    """One party's nodes, its inner edges and its border edges in both directions.

    Nodes carry the party's own numbers, 0 to `nodes` - 1. `inner` is the paper's A_i^[i], `outgoing` its A_j^[i]
    for all j, `incoming` its A_i^[j]: the same object where edges have no direction. Neither features nor labels nor
    inner edges of anybody else are here.

    >>> from fedstruct.graph import generate, partition
    >>> north = partition.random(generate.planted(nodes=60), parties=3).parties[0]
    >>> north.peers, north.inner.shape == (north.nodes, north.nodes), len(north.outgoing) == len(north.incoming)
    (('party-2', 'party-3'), True, True)
    """

    name: str
    peers: tuple[str, ...]
    features: Features
    labels: np.ndarray
    classes: int
    inner: csr_array
    outgoing: Border
    incoming: Border
    directed: bool = False
    ids: np.ndarray | None = None
    split: np.ndarray | None = None

    def __post_init__(self) -> None:
        n = self.inner.shape[0]
        check_nodes(self.name, n, self.features, self.labels, self.classes, self.ids, self.split)
        for way, border in (("outgoing", self.outgoing), ("incoming", self.incoming)):
            if len(border) == 0:
                continue
            if border.own.min() < 0 or border.own.max() >= n:
                raise FedstructError(f"{self.name}: an {way} border edge names an own node that does not exist")
            if border.peer.min() < 0 or border.peer.max() >= len(self.peers) or border.node.min() < 0:
                raise FedstructError(f"{self.name}: an {way} border edge names a peer that does not exist")

    @property
    def nodes(self) -> int:
        return int(self.inner.shape[0])

    def known(self, split: int) -> np.ndarray:
        """The nodes of one split whose label is known."""
        if self.split is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero((self.split == split) & (self.labels >= 0))

    def with_own_split(self, seed: int, train: float, validation: float) -> PartyGraph:
        """Draw this party's split from its own nodes alone."""
        return replace(self, split=draw_split(self.nodes, train, validation, stream(seed, "split", self.name)))


def draw_split(nodes: int, train: float, validation: float, random: np.random.Generator) -> np.ndarray:
    """A uniform split of the nodes: shares for training and validation, the rest for testing.

    >>> [int(n) for n in np.bincount(draw_split(100, 0.1, 0.2, stream(0, "split")))]
    [0, 10, 20, 70]
    """
    first, second = bounds(nodes, train, validation)
    order = random.permutation(nodes)
    split = np.full(nodes, TEST, np.int8)
    split[order[:first]] = TRAIN
    split[order[first:second]] = VALIDATION
    return split


def bounds(nodes: int, train: float, validation: float) -> tuple[int, int]:
    """Where training ends and where validation ends, of so many nodes in some order; the rest is for testing."""
    if not (train > 0 and validation >= 0 and train + validation < 1):
        raise FedstructError(
            f"train = {train} and validation = {validation} do not leave a test set: "
            "both are shares of the nodes, train above 0, and their sum must be below 1"
        )
    # In a small graph, one node each rather than none.
    first = max(round(train * nodes), min(1, nodes))
    return first, max(round((train + validation) * nodes), first + (validation > 0 and nodes > 2))
