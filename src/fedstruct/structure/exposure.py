"""What the second hop of Algorithm 3 gives away, computed by the party before it sends anything.

Party k sends party i the rows of Ã^[i]_k Â^[k]. Where a node v of party i has exactly one edge to party k, its row is
a multiple, which i knows, of the row of Â that belongs to the one node u behind that edge: every entry that pruning
leaves names a neighbour of u. These edges are read off exactly; nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from fedstruct.structure.kernels import entry_rows


@dataclass(frozen=True)
class Exposure:
    """How many of a party's edges each neighbour reads off exactly.

    Inner edges count once in an undirected graph. Border edges are those to third parties: a neighbour's own
    edges are no news to it.
    """

    party: str
    inner_edges: int
    border_edges: int
    inner: dict[str, int]
    """Inner edges that each neighbour reads."""
    border: dict[str, int]
    """Border edges to third parties that each neighbour reads."""
    third: dict[str, int]
    """Border edges to third parties, seen from each neighbour."""
    inner_by_any: int
    border_by_any: int


def read_off(sent: csr_array, known: csr_array, owner: np.ndarray, me: int) -> np.ndarray:
    """Who reads which of party `me`'s edges off what it sends: rows (reader, u, w), each once, in order.

    `sent` holds everybody's rows of B over all nodes, `known` everybody's rows of Ã towards party `me` over its own
    nodes; `owner` says to whom each node belongs, in federation order.
    """
    start = int(np.searchsorted(owner, me))
    single = (np.diff(known.indptr) == 1) & (owner != me)
    rows = entry_rows(sent)
    at = np.flatnonzero(single[rows])
    reader = owner[rows[at]]
    source = known.indices[known.indptr[rows[at]]] + start
    target = sent.indices[at]
    news = (target != source) & (owner[target] != reader)
    return _distinct(reader[news], source[news], target[news])


def count(
    party: str, parties: tuple[str, ...], rows: csr_array, read: np.ndarray, owner: np.ndarray, directed: bool
) -> Exposure:
    """Count a party's edges (`rows`, its rows of Â) and those that `read_off` says each neighbour reads."""
    me = parties.index(party)
    start = int(np.searchsorted(owner, me))
    own = _distinct(np.full(rows.nnz, me), entry_rows(rows) + start, rows.indices)
    own = own[own[:, 1] != own[:, 2]]

    def inner(edges: np.ndarray) -> np.ndarray:
        edges = edges[owner[edges[:, 2]] == me]
        if directed:
            return edges
        return _distinct(edges[:, 0], edges[:, 1:].min(axis=1), edges[:, 1:].max(axis=1))

    def border(edges: np.ndarray) -> np.ndarray:
        outside: np.ndarray = edges[owner[edges[:, 2]] != me]
        return outside

    def by_reader(edges: np.ndarray) -> dict[str, int]:
        counts = np.bincount(edges[:, 0], minlength=len(parties))
        return {name: int(c) for name, c in zip(parties, counts, strict=True) if name != party}

    def by_any(edges: np.ndarray) -> int:
        return len(np.unique(edges[:, 1:], axis=0))

    to_each = np.bincount(owner[border(own)[:, 2]], minlength=len(parties))
    return Exposure(
        party=party,
        inner_edges=len(inner(own)),
        border_edges=len(border(own)),
        inner=by_reader(inner(read)),
        border=by_reader(border(read)),
        third={n: len(border(own)) - int(c) for n, c in zip(parties, to_each, strict=True) if n != party},
        inner_by_any=by_any(inner(read)),
        border_by_any=by_any(border(read)),
    )


def _distinct(*columns: np.ndarray) -> np.ndarray:
    table = np.stack(columns, axis=1).astype(np.int64)
    order = np.lexsort(table.T[::-1])
    table = table[order]
    new = np.ones(len(table), bool)
    new[1:] = (table[1:] != table[:-1]).any(axis=1)
    distinct: np.ndarray = table[new]
    return distinct
