"""Named protocols: how a graph is made ready and split, so that figures can be compared."""

from __future__ import annotations

from fedstruct.graph.graph import Graph
from fedstruct.graph.party_graph import draw_split
from fedstruct.graph.times import split_by_time
from fedstruct.seeds import stream

ICLR2025 = "fedstruct-iclr2025"
"""Undirected, no self loops; a uniform split over all nodes, new for each seed; fixed rounds, last model."""

PER_PARTY = "per-party-split"
"""Each party draws its split from its own nodes."""

TIME = "time-split"
"""As `fedstruct-iclr2025`, but the nodes that were seen earliest train, the next validate, the last test."""

GIVEN = "given-split"
"""The split that came with the graph."""


def prepared(graph: Graph) -> Graph:
    """The graph as the protocol `fedstruct-iclr2025` takes it.

    >>> from fedstruct.graph import generate
    >>> payments = generate.consortium(accounts=200).graph()
    >>> payments.directed, prepared(payments).directed
    (True, False)
    """
    return graph.undirected().without_self_loops()


def split(graph: Graph, seed: int, train: float = 0.1, validation: float = 0.1) -> Graph:
    """The split of one seed: the same for every method and partition.

    >>> from fedstruct.graph import generate
    >>> import numpy as np
    >>> np.bincount(split(generate.planted(nodes=100), seed=0).split)[1:].tolist()  # train, validation, test
    [10, 10, 80]
    """
    return graph.with_split(draw_split(graph.nodes, train, validation, stream(seed, "split")), _named(graph, ICLR2025))


def time_split(graph: Graph, seed: int, train: float = 0.1, validation: float = 0.1) -> Graph:
    """The split by time; the seed draws the order of nodes that were first seen at the same time."""
    drawn = split_by_time(graph, train, validation, stream(seed, "split", "time"))
    return graph.with_split(drawn, _named(graph, TIME))


def _named(graph: Graph, protocol: str) -> str | None:
    """A protocol's name is for graphs that are as it takes them: `prepared`."""
    return None if graph.directed or graph.adjacency.diagonal().any() else protocol
