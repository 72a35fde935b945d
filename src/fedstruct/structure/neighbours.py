"""Who is next to whom in the whole graph, put together from what the parties own, in little memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from fedstruct.graph.party_graph import PartyGraph
from fedstruct.structure.kernels import compressed, normalised, row_sums


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The rows of A, as CSR positions: each node's inner neighbours, then those at peers, in federation order."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None
    """None where every edge weighs 1."""
    symmetric: bool

    @property
    def nodes(self) -> int:
        return len(self.indptr) - 1

    def degrees(self) -> np.ndarray:
        """D̃: the weights of a node's edges and of its self loop."""
        if self.weights is None:
            return np.diff(self.indptr) + 1.0
        return row_sums(self._matrix()) + 1.0

    def transposed(self) -> Neighbours:
        """The rows of Aᵀ."""
        if self.symmetric:
            return self
        turned = self._matrix().T.tocsr()
        weights = None if self.weights is None else turned.data
        return Neighbours(turned.indptr, turned.indices, weights, symmetric=False)

    def normalised(self) -> csr_array:
        """Â = D̃⁻¹ (A + I)."""
        return normalised(self._matrix())

    def _matrix(self) -> csr_array:
        weights = np.ones(len(self.indices), np.int8) if self.weights is None else self.weights
        return compressed(weights, self.indices, self.indptr, (self.nodes, self.nodes))


def together(owns: Sequence[PartyGraph]) -> Neighbours:
    """The neighbours of everybody's nodes, in federation order.

    >>> from fedstruct.graph import generate, partition
    >>> parts = partition.random(generate.planted(nodes=60), parties=3)
    >>> len(together(parts.parties).indices) == parts.graph.adjacency.nnz
    True
    """
    starts = np.concatenate([[0], np.cumsum([own.nodes for own in owns])])
    first = dict(zip((own.name for own in owns), starts.tolist(), strict=False))
    lengths = [(np.diff(own.inner.indptr), np.bincount(own.outgoing.own, minlength=own.nodes)) for own in owns]
    whole = np.concatenate([inside + outside for inside, outside in lengths])
    indptr = np.concatenate([[0], np.cumsum(whole, dtype=np.int64)])
    indices = np.empty(indptr[-1], np.int32)
    weights = np.empty(indptr[-1]) if any(map(_weighted, owns)) else None
    # Party by party: what is made on the way is of the size of one.
    for own, start, (inside, outside) in zip(owns, starts.tolist(), lengths, strict=False):
        inner, out = own.inner, own.outgoing
        row = indptr[start : start + own.nodes]
        order = np.argsort(out.own, kind="stable")
        peers = np.array([first[peer] for peer in own.peers], np.int64)
        at = _places(row, inside), _places(row + inside, outside)
        indices[at[0]] = inner.indices + start
        indices[at[1]] = (peers[out.peer] + out.node)[order]
        if weights is not None:
            weights[at[0]], weights[at[1]] = inner.data, out.weight[order]
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    return Neighbours(indptr, indices, weights, symmetric=not any(own.directed for own in owns))


def _places(start: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Where so many entries go, that begin at `start`, row after row."""
    before = np.cumsum(lengths, dtype=np.int64) - lengths
    places: np.ndarray = np.repeat(start - before, lengths) + np.arange(int(lengths.sum()))
    return places


def _weighted(own: PartyGraph) -> bool:
    return bool((own.inner.data != 1).any() or (own.outgoing.weight != 1).any())
