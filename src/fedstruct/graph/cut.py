"""One graph cut into what each of its owners has.

A party at a time, so that nothing is held of all edges but the result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array, issparse

from fedstruct.errors import FedstructError
from fedstruct.graph.graph import Features, Graph
from fedstruct.graph.party_graph import Border, PartyGraph
from fedstruct.seeds import stream

AT_ONCE = 1 << 16
"""Rows of features that are copied at once."""


def cut_up(graph: Graph, names: list[str], nodes: Sequence[np.ndarray]) -> tuple[PartyGraph, ...]:
    """What each party has, where `nodes` lists its nodes in its own numbering.

    In an undirected graph the edges that leave a party are those that enter it, and stand there once.
    """
    if not graph.directed:
        _check_both_ways(graph)
    starts = np.cumsum([0, *map(len, nodes)])
    place = np.empty(graph.nodes, np.int32)
    for mine, start in zip(nodes, starts, strict=False):
        place[mine] = np.arange(start, start + len(mine), dtype=np.int32)
    turned = graph.adjacency.T.tocsr() if graph.directed else None

    made = []
    for i, mine in enumerate(nodes):
        inner, outgoing = _parted(graph.adjacency, mine, place, starts, i)
        made.append(
            PartyGraph(
                name=names[i],
                peers=tuple(names[:i] + names[i + 1 :]),
                features=_rows(graph.features, mine),
                labels=graph.labels[mine],
                classes=graph.classes,
                inner=inner,
                outgoing=outgoing,
                incoming=outgoing if turned is None else _parted(turned, mine, place, starts, i)[1],
                directed=graph.directed,
                ids=None if graph.ids is None else graph.ids[mine],
                split=None if graph.split is None else graph.split[mine],
            )
        )
    return tuple(made)


def _check_both_ways(graph: Graph) -> None:
    """Refuse edges that go one way: A r and Aᵀ r differ for nearly every r if A and Aᵀ do, and take no transpose."""
    # Importing the compiler takes a while, and who only looks at a graph does without.
    from fedstruct.graph.compiled_cut import products_apart

    a = graph.adjacency
    values = np.zeros((graph.nodes, 2))
    values[:, 0] = stream(0, "cut", "both ways").uniform(1, 2, graph.nodes)
    apart, size = products_apart(a.indptr, a.indices, a.data, values)
    # Weights may differ by their own rounding, sums by that of as many numbers as a node has edges.
    size *= max(1e-9, 8 * np.finfo(a.data.dtype).eps) if a.data.dtype.kind == "f" else 1e-9
    if not (apart <= size).all():
        raise FedstructError(
            f"{graph.name}: its edges do not go both ways with the same weight; "
            "build it with Graph.from_edges or say directed=True"
        )


def _parted(
    matrix: csr_array, rows: np.ndarray, place: np.ndarray, starts: np.ndarray, me: int
) -> tuple[csr_array, Border]:
    """Party `me`'s rows of a matrix: its inner part, and its border."""
    from fedstruct.graph.compiled_cut import parted_rows, renumbered_rows

    sorted_rows = renumbered_rows(rows, place, matrix.indptr, matrix.indices, matrix.data)
    peer_kind = np.dtype(np.int16 if len(starts) <= 1 << 15 else np.int32)
    row_starts, columns, weights, *border = parted_rows(me, starts, *sorted_rows, peer_kind)
    # 32-bit positions wherever they fit; otherwise the columns, too, would be made 64-bit.
    positions = np.int32 if len(columns) <= np.iinfo(np.int32).max else np.int64
    inner = csr_array((weights, columns, row_starts.astype(positions)), shape=(len(rows), len(rows)))
    return inner, Border(*border)


def _rows(features: Features, nodes: np.ndarray) -> Features:
    """The features of these nodes, in this order, read in the order in which they lie in their file."""
    if issparse(features):
        return features[nodes]
    found = np.empty((len(nodes), features.shape[1]), features.dtype)
    ascending = np.argsort(nodes)
    for begin in range(0, len(nodes), AT_ONCE):
        some = ascending[begin : begin + AT_ONCE]
        found[some] = features[nodes[some]]
    return found
