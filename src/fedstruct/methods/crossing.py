"""One hop of Z = Â s over the nodes of one party, or of all: what moves inside, what is told, what is taken in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from scipy.sparse import csr_array, eye_array
from torch import Tensor

from fedstruct.graph.party_graph import Border, PartyGraph
from fedstruct.models.adjacency import NormalisedAdjacency
from fedstruct.models.sparse import SparseMatrix
from fedstruct.structure.border import groups
from fedstruct.structure.kernels import divide_rows, from_entries, row_sums
from fedstruct.structure.neighbours import together


@dataclass(frozen=True, eq=False)
class Way:
    """Hops in one direction: forward, by Â, or backward, by its transpose."""

    inside: Callable[[Tensor], Tensor]
    """The product over own nodes."""
    give: SparseMatrix
    """The sums for peers' border nodes, peer after peer."""
    take: SparseMatrix
    """Where the sums that come, peer after peer, are added."""
    gives: dict[str, int]
    """How many sums each peer is told."""
    takes: dict[str, int]
    """How many sums each peer tells."""

    def moved(self, values: Tensor, came: Tensor | None) -> Tensor:
        """The values one hop further: own nodes first, then the peers' sums in federation order."""
        further = self.inside(values)
        return further if came is None else further + self.take @ came

    def told(self, values: Tensor) -> dict[str, Tensor]:
        """The sums for each peer."""
        bounds = np.cumsum([0, *self.gives.values()]).tolist()
        sums = self.give @ values if bounds[-1] else values[:0]
        return {peer: sums[a:b] for peer, (a, b) in zip(self.gives, pairwise(bounds), strict=True) if b > a}


def ways(owns: Sequence[PartyGraph], dtype: torch.dtype) -> tuple[Way, Way]:
    """Forward and backward, of one party or of all: then their rows side by side are Â, and nothing is told."""
    if len(owns) == 1:
        return _of_one(owns[0], dtype)
    whole = NormalisedAdjacency(together(owns), dtype)
    nobody = SparseMatrix(csr_array((0, 0)), dtype)
    return Way(whole.forward, nobody, nobody, {}, {}), Way(whole.backward, nobody, nobody, {}, {})


def _of_one(own: PartyGraph, dtype: torch.dtype) -> tuple[Way, Way]:
    out, into, n = own.outgoing, own.incoming, own.nodes
    looped = (own.inner + eye_array(n, format="csr")).tocsr()
    degrees = row_sums(looped) + np.bincount(out.own, out.weight, minlength=n)
    inside = SparseMatrix(divide_rows(looped, degrees), dtype)
    gives, takes = _counts(own, into.node, into), _counts(own, out.own, out)
    back_gives, back_takes = _counts(own, out.node, out), _counts(own, into.own, into)
    forward = Way(
        inside.forward.matmul,
        SparseMatrix(_told(into, into.weight, n), dtype),
        SparseMatrix(_taken(out, 1 / degrees), dtype),
        gives,
        takes,
    )
    backward = Way(
        inside.T.matmul,
        SparseMatrix(_told(out, out.weight / degrees[out.own], n), dtype),
        SparseMatrix(_taken(into, np.ones(n)), dtype),
        back_gives,
        back_takes,
    )
    return forward, backward


def _counts(own: PartyGraph, node: np.ndarray, border: Border) -> dict[str, int]:
    peer, _, _ = groups(border.peer, node)
    return dict(zip(own.peers, np.bincount(peer, minlength=len(own.peers)).tolist(), strict=True))


def _told(border: Border, weight: np.ndarray, nodes: int) -> csr_array:
    """A row for each peer's node at the border, over the own nodes that it has edges with."""
    peer, _, group = groups(border.peer, border.node)
    return from_entries(weight, group, border.own, (len(peer), nodes))


def _taken(border: Border, share: np.ndarray) -> csr_array:
    """For each own node at the border with a peer, the place of that peer's sum for it."""
    peer, node, _ = groups(border.peer, border.own)
    return from_entries(share[node], node, np.arange(len(peer)), (len(share), len(peer)))
