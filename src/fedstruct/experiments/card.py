"""The card of a partition: how large the parts are, what they share, how they differ, and what peers would read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from fedstruct.federation.local import LocalFederation
from fedstruct.graph.graph import UNKNOWN, count_edges, edge_pieces
from fedstruct.graph.partition import Partition
from fedstruct.graph.party_graph import PartyGraph
from fedstruct.methods.exchange import EXCHANGE, ExchangeParty, Multiply, Sizes, StructureOptions
from fedstruct.structure.exposure import Exposure


@dataclass(frozen=True)
class Part:
    """One party's part; undirected edges count once."""

    party: str
    nodes: int
    inner_edges: int
    border_edges: int
    neighbours: int
    """Parties with which it shares border edges."""
    classes: list[int]
    """How many nodes of each class, as far as labels are known."""
    read_off: float | None
    """The share of its inner edges that some peer reads off; None where it has none, and without an exchange."""

    @classmethod
    def of(cls, own: PartyGraph, exposure: Exposure | None) -> Self:
        borders = (own.outgoing, own.incoming) if own.directed else (own.outgoing,)
        return cls(
            party=own.name,
            nodes=own.nodes,
            inner_edges=count_edges(own.inner, own.directed),
            border_edges=sum(len(border) for border in borders),
            neighbours=int(np.count_nonzero(sum(np.bincount(b.peer, minlength=len(own.peers)) for b in borders))),
            classes=np.bincount(own.labels[own.labels != UNKNOWN], minlength=own.classes).tolist(),
            read_off=None if exposure is None else _share(exposure.inner_by_any, exposure.inner_edges),
        )


LARGEST = 4_000_000
"""Entries of an adjacency up to which the exchange is worth the wait to who only looks at a partition."""


@dataclass(frozen=True)
class Card:
    """A partition at a glance. Shares are None where there is nothing to take a share of."""

    graph: str
    partition: str
    nodes: int
    edges: int
    parties: list[Part]
    classes: list[int]
    border_share: float | None
    """The share of edges that cross a border."""
    homophily_inside: float | None
    """The share of inner edges with both ends of one class, where both are known."""
    homophily_across: float | None
    label_skew: float | None
    """The mean total variation distance between a party's class shares and the federation's."""
    read_off: float | None
    """The share of inner edges that some peer reads off exactly, at the second hop of the structure exchange."""
    prune: int | None
    """p of that exchange, the entries kept per node; None without an exchange."""

    @classmethod
    def of(cls, parts: Partition, exchange: bool = True) -> Self:
        """Look at a partition from above; what peers read off is found by the parties themselves, in an exchange.

        Without an exchange, which takes the longest, all else is known just as well.

        >>> from fedstruct.graph import generate, partition
        >>> found = Card.of(partition.random(generate.planted(nodes=200), parties=4))
        >>> sum(p.inner_edges for p in found.parties) + sum(p.border_edges for p in found.parties) // 2 == found.edges
        True
        """
        graph = parts.graph
        options = StructureOptions.of(layers_structure=2)
        exposed = exposures(parts, options) if exchange else []
        parties = [Part.of(own, exposed[i] if exposed else None) for i, own in enumerate(parts.parties)]
        classes = np.array([p.classes for p in parties])

        same, known = np.zeros((2, 2), np.int64)  # each across and inside
        for u, v in edge_pieces(graph.adjacency):
            told = (graph.labels[u] != UNKNOWN) & (graph.labels[v] != UNKNOWN) & (graph.directed | (u <= v))
            inside = parts.owner[u] == parts.owner[v]
            known += np.bincount(inside[told], minlength=2)
            same += np.bincount(inside[told & (graph.labels[u] == graph.labels[v])], minlength=2)
        return cls(
            graph=graph.name,
            partition=parts.name,
            nodes=graph.nodes,
            edges=graph.edges,
            parties=parties,
            classes=classes.sum(axis=0).tolist(),
            border_share=_share(sum(p.border_edges for p in parties) // 2, graph.edges),
            homophily_inside=_share(int(same[1]), int(known[1])),
            homophily_across=_share(int(same[0]), int(known[0])),
            label_skew=label_skew(classes),
            read_off=_share(sum(e.inner_by_any for e in exposed), sum(e.inner_edges for e in exposed)),
            prune=options.prune if exchange else None,
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def label_skew(classes: np.ndarray) -> float | None:
    """The mean total variation distance between a party's class shares and the federation's, of parties with labels.

    It is the share of a party's labelled nodes that would need another class for its mixture to be everybody's.

    >>> label_skew(np.array([[5, 5], [10, 10]])), label_skew(np.array([[4, 0], [0, 4]]))
    (0.0, 0.5)
    """
    classes = classes[classes.sum(axis=1) > 0]
    if len(classes) == 0:
        return None
    shares = classes / classes.sum(axis=1, keepdims=True)
    everybody = classes.sum(axis=0) / classes.sum()
    return float(abs(shares - everybody).sum(axis=1).mean() / 2)


def exposures(parts: Partition, options: StructureOptions) -> list[Exposure]:
    """What each party finds that its peers read off the blocks of the second hop, as it posts these."""
    names = tuple(own.name for own in parts.parties)
    parties = [ExchangeParty(own, names, options) for own in parts.parties]
    federation = LocalFederation(parties, EXCHANGE, run="card")
    federation.ask(Sizes(np.array([own.nodes for own in parts.parties])))
    federation.ask(Multiply(2))
    return [p.exposure for p in parties if p.exposure is not None]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
