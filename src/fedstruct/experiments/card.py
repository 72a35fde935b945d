"""The card of a partition: how large the parts are, what they share, how they differ, and what peers would read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fedstruct.experiments.result import exposures
from fedstruct.federation.local import LocalFederation
from fedstruct.graph.graph import UNKNOWN
from fedstruct.graph.partition import Partition
from fedstruct.methods.exchange import EXCHANGE, ExchangeParty, Multiply, Sizes, StructureOptions


@dataclass(frozen=True)
class PartCard:
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
    """The share of its inner edges that some peer reads off; None where it has none."""


@dataclass(frozen=True)
class Card:
    """A partition at a glance. Shares are None where there is nothing to take a share of."""

    graph: str
    partition: str
    nodes: int
    edges: int
    parties: list[PartCard]
    classes: list[int]
    border_share: float | None
    """The share of edges that cross a border."""
    homophily_inside: float | None
    """The share of inner edges whose ends carry the same label."""
    homophily_across: float | None
    label_skew: float | None
    """The mean total variation distance between a party's class shares and the federation's."""
    read_off: float | None
    """The share of inner edges that some peer reads off exactly, at the second hop of the structure exchange."""
    prune: int
    """p of that exchange, the entries kept per node."""

    @classmethod
    def of(cls, parts: Partition) -> Card:
        """Look at a partition from above; what peers read off is found by the parties themselves, in an exchange.

        >>> from fedstruct.graph import generate, partition
        >>> found = Card.of(partition.random(generate.planted(nodes=200), parties=4))
        >>> sum(p.inner_edges for p in found.parties) + sum(p.border_edges for p in found.parties) // 2 == found.edges
        True
        """
        graph, owner, parties = parts.graph, parts.owner, len(parts)
        u, v = graph.adjacency.tocoo().coords
        once = graph.directed | (u <= v)
        u, v = u[once], v[once]
        here, there = owner[u], owner[v]
        inside = here == there
        same = graph.labels[u] == graph.labels[v]
        labelled = (graph.labels[u] != UNKNOWN) & (graph.labels[v] != UNKNOWN)

        inner = np.bincount(here[inside], minlength=parties)
        border = np.bincount(np.concatenate([here[~inside], there[~inside]]), minlength=parties)
        pairs = np.unique(np.stack([np.minimum(here, there), np.maximum(here, there)])[:, ~inside], axis=1)
        neighbours = np.bincount(pairs.ravel(), minlength=parties)
        known = graph.labels != UNKNOWN
        classes = np.zeros((parties, graph.classes), np.int64)
        np.add.at(classes, (owner[known], graph.labels[known]), 1)

        options = StructureOptions.of(layers_structure=2)
        exposed = _exposure(parts, options)
        read = {e["party"]: e["inner_by_any"] for e in exposed["parties"]}
        return cls(
            graph=graph.name,
            partition=parts.name,
            nodes=graph.nodes,
            edges=graph.edges,
            parties=[
                PartCard(
                    party=p.name,
                    nodes=p.nodes,
                    inner_edges=int(inner[i]),
                    border_edges=int(border[i]),
                    neighbours=int(neighbours[i]),
                    classes=classes[i].tolist(),
                    read_off=read[p.name] / int(inner[i]) if inner[i] else None,
                )
                for i, p in enumerate(parts.parties)
            ],
            classes=classes.sum(axis=0).tolist(),
            border_share=_share(~inside),
            homophily_inside=_share(same[inside & labelled]),
            homophily_across=_share(same[~inside & labelled]),
            label_skew=label_skew(classes),
            read_off=exposed["inner_share"] if inner.any() else None,
            prune=options.prune,
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


def _exposure(parts: Partition, options: StructureOptions) -> dict[str, Any]:
    """What the parties find that their peers read off the blocks of the second hop, as they post these."""
    names = tuple(p.name for p in parts.parties)
    parties = [ExchangeParty(own, names, options) for own in parts.parties]
    federation = LocalFederation(parties, EXCHANGE, run="card")
    federation.ask(Sizes(np.array([p.nodes for p in parts.parties])))
    federation.ask(Multiply(2))
    found = exposures([p.exposure for p in parties if p.exposure is not None])
    assert found is not None
    return found


def _share(true: np.ndarray) -> float | None:
    return float(true.mean()) if true.size else None
