"""When nodes were first seen, and a split that follows it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedstruct.errors import FedstructError
from fedstruct.graph.graph import TEST, TRAIN, UNUSED, VALIDATION, Graph
from fedstruct.graph.party_graph import bounds


def first_seen(edge_index: Any, times: Any, nodes: int, name: str = "graph") -> np.ndarray:
    """The time of the first edge at each node, in either direction; NaN where there is none.

    >>> first_seen([[0, 1], [1, 2]], [5, 3], nodes=4)
    array([ 5.,  3.,  3., nan])
    """
    edges, when = np.asarray(edge_index), np.asarray(times)
    if edges.ndim != 2 or edges.dtype.kind not in "iu" or when.shape != edges.shape[1:] or when.dtype.kind not in "fiu":
        raise FedstructError(f"{name}: the times of edges must be numbers, one for each column of edge_index")
    first = np.full(nodes, np.inf)
    sound = ((edges >= 0) & (edges < nodes)).all(axis=0)  # other edges are refused where the graph is built
    for ends in edges:
        np.minimum.at(first, ends[sound], when[sound].astype(np.float64))
    return np.where(np.isfinite(first), first, np.nan)


def split_by_time(graph: Graph, train: float, validation: float, random: np.random.Generator) -> np.ndarray:
    """Nodes that were seen earliest train, the next validate, the last test; of one time, the order is drawn.

    The shares are those of the nodes that have a time; the others are not used.

    >>> graph = Graph.from_edges([[0, 1], [1, 2]], features=np.eye(4), labels=[0, 1, 0, 1],
    ...     attributes={"first": first_seen([[0, 1], [1, 2]], [5, 3], 4)}, time_attribute="first")
    >>> split_by_time(graph, 0.4, 0.3, np.random.default_rng(0))[[0, 3]].tolist()
    [3, 0]
    """
    if graph.time_attribute is None:
        raise FedstructError(
            f"{graph.name} does not say when its nodes were first seen, so it cannot be split by time; take --split "
            "random, or a file with an array edge_time"
        )
    times = np.asarray(graph.attributes[graph.time_attribute], np.float64)
    timed = int((~np.isnan(times)).sum())
    order = np.lexsort((random.permutation(graph.nodes), times))[:timed]  # NaN sorts last
    first, second = bounds(timed, train, validation)
    split = np.full(graph.nodes, UNUSED, np.int8)
    for part, value in ((order[:first], TRAIN), (order[first:second], VALIDATION), (order[second:], TEST)):
        split[part] = value
    return split
