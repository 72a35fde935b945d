"""The border between two parties: groups of edges whose values are told only as a sum, and how large these are.

A sum over the border is over a *group*: the edges between one node and all the nodes of one other party.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedstruct.graph.party_graph import Border, PartyGraph


def core(left: np.ndarray, right: np.ndarray, least: int) -> np.ndarray:
    """Which edges of a bipartite graph remain once every node has at least so many, or none.

    Both parties know all edges between them, so both find the same ones, and need not tell each other.

    >>> core(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 1]), least=2).tolist()
    [True, True, True, True, False]
    """
    kept = np.ones(len(left), bool)
    ends = [np.unique(end, return_inverse=True)[1] for end in (left, right)]
    while kept.any():
        few = np.zeros(len(kept), bool)
        for end in ends:
            few |= np.bincount(end[kept], minlength=len(kept))[end] < least
        if not (few & kept).any():
            break
        kept &= ~few
    return kept


def with_groups_of(own: PartyGraph, least: int) -> PartyGraph:
    """What a party owns, without the border edges whose ends would be told in a sum over fewer nodes than this."""
    if least == 1:
        return own
    outgoing = _kept(own.outgoing, least)
    incoming = outgoing if own.incoming is own.outgoing else _kept(own.incoming, least)
    return replace(own, outgoing=outgoing, incoming=incoming)


def _kept(border: Border, least: int) -> Border:
    kept = core(_named(border.peer, border.own), _named(border.peer, border.node), least)
    return Border(border.own[kept], border.peer[kept], border.node[kept], border.weight[kept])


def _named(peer: np.ndarray, node: np.ndarray) -> np.ndarray:
    """One number for each node of each peer's border."""
    numbers: np.ndarray = peer.astype(np.int64) << 32 | node
    return numbers


def groups(peer: np.ndarray, node: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The groups that border edges fall into: peer and node of each, in their order, and each edge's group."""
    names, group = np.unique(_named(peer, node), return_inverse=True)
    return names >> 32, names & 0xFFFFFFFF, group


@dataclass(frozen=True)
class GroupSizes:
    """How many sums are over a single node, over two, and over more."""

    one: int = 0
    two: int = 0
    more: int = 0

    @property
    def all(self) -> int:
        return self.one + self.two + self.more


@dataclass(frozen=True)
class Told:
    """The sums that a party tells each neighbour in every hop."""

    party: str
    forward: dict[str, GroupSizes]
    """Of what its nodes carry, on the way to the loss: one for each of the neighbour's nodes that points to them."""
    backward: dict[str, GroupSizes]
    """Of the loss's slopes, on the way back: one for each of the neighbour's nodes that its own point to."""


def told(own: PartyGraph) -> Told:
    """Count them from the border alone."""
    forward = _sizes(own.peers, own.incoming)
    backward = forward if own.outgoing is own.incoming else _sizes(own.peers, own.outgoing)
    return Told(own.name, forward, backward)


def _sizes(peers: tuple[str, ...], border: Border) -> dict[str, GroupSizes]:
    sizes = {}
    for i, name in enumerate(peers):
        over = np.bincount(border.node[border.peer == i])
        one, two, more = (int(np.count_nonzero(found)) for found in (over == 1, over == 2, over > 2))
        sizes[name] = GroupSizes(one, two, more)
    return sizes
