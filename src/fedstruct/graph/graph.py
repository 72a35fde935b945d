"""The graph: what the federation would know if it were one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array, issparse

from fedstruct.errors import FedstructError

if TYPE_CHECKING:
    from torch_geometric.data import Data

UNKNOWN = -1
"""The label of a node whose class nobody told."""

UNUSED, TRAIN, VALIDATION, TEST = 0, 1, 2, 3
"""What `split` holds."""

EDGES_AT_ONCE = 1 << 16
"""Edges that are looked at together."""

Features: TypeAlias = Any
"""A dense array or a CSR array, one row per node; scipy tells its types to nobody."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes with features and labels, and the edges between them.

    `adjacency[u, v]` is the weight of the edge from u to v; an undirected graph stores each edge both ways, at one
    weight.

    >>> triangle = Graph.from_edges([[0, 1, 2], [1, 2, 0]], features=np.eye(3), labels=[0, 1, 0])
    >>> triangle.nodes, triangle.edges, triangle.classes, triangle.directed
    (3, 3, 2, False)
    """

    adjacency: csr_array
    features: Features
    labels: np.ndarray
    classes: int
    directed: bool = False
    ids: np.ndarray | None = None
    split: np.ndarray | None = None
    attributes: Mapping[str, np.ndarray] = field(default_factory=dict)
    owner_attribute: str | None = None
    """The attribute that says who owns a node, if one does."""
    time_attribute: str | None = None
    """The attribute that says when a node was first seen, if one does: a number, NaN for a node that never was."""
    name: str = "graph"
    protocol: str | None = None
    """The name of the protocol that drew the split, if one did."""

    def __post_init__(self) -> None:
        n = self.adjacency.shape[0]
        check_nodes(self.name, n, self.features, self.labels, self.classes, self.ids, self.split)
        for key, values in self.attributes.items():
            if len(values) != n:
                raise FedstructError(f"{self.name}: attribute '{key}' has {len(values)} values for {n} nodes")
        for what in (self.owner_attribute, self.time_attribute):
            if what is not None and what not in self.attributes:
                raise FedstructError(f"{self.name}: there is no attribute '{what}' to tell owners or times")
        if self.time_attribute is not None and self.attributes[self.time_attribute].dtype.kind not in "fiu":
            raise FedstructError(f"{self.name}: attribute '{self.time_attribute}' tells times, so it must hold numbers")

    @classmethod
    def from_edges(
        cls,
        edge_index: Any,
        *,
        features: Any,
        labels: Any,
        weights: Any = None,
        directed: bool = False,
        classes: int | None = None,
        **more: Any,
    ) -> Graph:
        """Build a graph from a 2 × E array of node numbers.

        Repeated edges count once; where weights are given, their weights add up.
        """
        name = more.get("name", "graph")
        labels = as_labels(labels, name)
        features = as_features(features, name)
        adjacency = _adjacency(edge_index, weights, len(labels), directed, name)
        if classes is None:
            classes = int(labels.max(initial=UNKNOWN)) + 1
            if classes > max(len(labels), 1000):
                raise FedstructError(
                    f"{name}: label {classes - 1} of node {labels.argmax()} is out of range for {len(labels)} nodes; "
                    "labels are 0, 1, 2, …, or give the number of classes"
                )
        return cls(adjacency, features, labels, classes, directed, **more)

    @property
    def nodes(self) -> int:
        return int(self.adjacency.shape[0])

    @property
    def edges(self) -> int:
        """How many edges there are; an undirected one counts once."""
        return count_edges(self.adjacency, self.directed)

    @property
    def weighted(self) -> bool:
        weights = self.adjacency.data
        return bool(weights.size) and not weights.min() == weights.max() == 1

    @property
    def homophily(self) -> float:
        """The share of edges whose two ends carry the same known label."""
        same, known = 0, 0
        for source, target in edge_pieces(self.adjacency):
            u, v = self.labels[source], self.labels[target]
            both = (u != UNKNOWN) & (v != UNKNOWN) & (self.directed | (source <= target))
            same, known = same + int(((u == v) & both).sum()), known + int(both.sum())
        return same / known if known else float("nan")

    def undirected(self) -> Graph:
        """Every edge both ways; the weights of opposite edges add up, unweighted ones stay 1."""
        if not self.directed:
            return self
        turned = self.adjacency.T.tocsr()
        if self.weighted:
            both = self.adjacency + turned - diags_array(self.adjacency.diagonal())
        else:
            both = self.adjacency.maximum(turned)
        both = both.tocsr()
        both.eliminate_zeros()
        return replace(self, adjacency=both, directed=False)

    def without_self_loops(self) -> Graph:
        loops = self.adjacency.diagonal()
        if not loops.any():
            return self
        rest = (self.adjacency - diags_array(loops)).tocsr()
        rest.eliminate_zeros()
        return replace(self, adjacency=rest)

    def with_split(self, split: np.ndarray, protocol: str | None = None) -> Graph:
        return replace(self, split=split, protocol=protocol)

    @classmethod
    def from_pyg(cls, data: Data, name: str = "graph") -> Graph:
        """Read a `torch_geometric.data.Data`; its masks, if one-dimensional, become the split."""
        n = int(data.num_nodes)
        split = None
        masks = {TRAIN: "train_mask", VALIDATION: "val_mask", TEST: "test_mask"}
        if all(getattr(data, m, None) is not None and getattr(data, m).dim() == 1 for m in masks.values()):
            split = np.zeros(n, np.int8)
            for value, mask in masks.items():
                split[getattr(data, mask).numpy()] = value
        graph = cls.from_edges(
            data.edge_index.numpy(),
            features=np.zeros((n, 0)) if data.x is None else data.x.numpy(),
            labels=np.full(n, UNKNOWN) if data.y is None else data.y.numpy(),
            weights=data.edge_weight.numpy() if getattr(data, "edge_weight", None) is not None else None,
            directed=True,
            split=split,
            name=name,
        )
        # Directed, unless every edge stands there both ways, at the same weight.
        return replace(graph, directed=(graph.adjacency != graph.adjacency.T).nnz > 0)

    def to_pyg(self) -> Data:
        """The same graph as a `torch_geometric.data.Data`."""
        import torch
        from torch_geometric.data import Data

        a = self.adjacency.tocoo()
        x = self.features.toarray() if issparse(self.features) else self.features
        data = Data(
            x=torch.from_numpy(np.array(x)),
            edge_index=torch.from_numpy(np.stack(a.coords).astype(np.int64)),
            y=torch.from_numpy(self.labels.copy()),
            num_nodes=self.nodes,
        )
        if self.weighted:
            data.edge_weight = torch.from_numpy(a.data.astype(np.float32))
        if self.split is not None:
            data.train_mask = torch.from_numpy(self.split == TRAIN)
            data.val_mask = torch.from_numpy(self.split == VALIDATION)
            data.test_mask = torch.from_numpy(self.split == TEST)
        return data


def edge_pieces(adjacency: csr_array, at_once: int = EDGES_AT_ONCE) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The two ends of each stored edge, some rows at a time, so that no array has a number for each edge."""
    rows, at = adjacency.shape[0], adjacency.indptr
    piece = at[:-1] // at_once
    for begin, end in pairwise([0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), rows]):
        source = np.repeat(np.arange(begin, end), np.diff(at[begin : end + 1]))
        yield source, adjacency.indices[at[begin] : at[end]]


def count_edges(adjacency: csr_array, directed: bool) -> int:
    """How many edges an adjacency holds; an undirected one counts once."""
    loops = np.count_nonzero(adjacency.diagonal())
    return int(adjacency.nnz if directed else (adjacency.nnz + loops) // 2)


def as_labels(labels: Any, name: str) -> np.ndarray:
    """Labels as whole numbers; NaN and negative numbers mean unknown."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise FedstructError(f"{name}: labels must be one number per node, not an array of shape {array.shape}")
    if array.dtype.kind == "f":
        array = array.astype(np.float64)  # 2**53 is infinite in half precision
        array = np.where(np.isnan(array), UNKNOWN, array)
        if np.any(array != np.floor(array)) or np.any(np.abs(array) > 2**53):
            raise FedstructError(f"{name}: labels must be whole numbers 0, 1, 2, …")
    elif array.dtype.kind not in "iub":
        raise FedstructError(f"{name}: labels must be whole numbers 0, 1, 2, …, not {array.dtype}")
    elif array.dtype.kind == "u" and array.size and array.max() > 2**53:
        raise FedstructError(f"{name}: label {array.max()} of node {array.argmax()} is out of range; unknown is -1")
    known: np.ndarray = np.where(array < 0, UNKNOWN, array).astype(np.int64)
    return known


def as_features(features: Any, name: str) -> Features:
    """Features as float32, dense or CSR."""
    array = csr_array(features) if issparse(features) else np.asarray(features)
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise FedstructError(f"{name}: features must be a table of numbers, one row per node")
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused as such
        return array.astype(np.float32)


def check_nodes(
    name: str,
    n: int,
    features: Features,
    labels: np.ndarray,
    classes: int,
    ids: np.ndarray | None,
    split: np.ndarray | None,
) -> None:
    """Refuse node tables that do not fit each other."""
    for what, table in (("features", features), ("labels", labels), ("ids", ids), ("split", split)):
        if table is not None and table.ndim == 0:
            raise FedstructError(f"{name}: {what} must have one row per node, not a single value")
        if table is not None and table.shape[0] != n:
            raise FedstructError(f"{name}: {what} has {table.shape[0]} rows for {n} nodes")
        if what != "features" and table is not None and table.ndim != 1:
            raise FedstructError(f"{name}: {what} must be one value per node, not an array of shape {table.shape}")
    if (most := max(classes, *features.shape[1:])) > 2**31 - 1:
        raise FedstructError(f"{name}: {most:,} classes or features are too many; their number must fit into 32 bits")
    values = features.data if issparse(features) else features
    with np.errstate(over="ignore", invalid="ignore"):
        surely = np.isfinite(values.sum())  # What is not finite makes the sum so, and no array of truths is needed.
    if not surely and not np.isfinite(values).all():
        row = (
            int(np.argmin(np.isfinite(values).all(axis=1)))
            if values.ndim == 2
            else int(np.searchsorted(features.indptr, np.argmin(np.isfinite(values)), side="right") - 1)
        )
        raise FedstructError(f"{name}: the features of node {row} are not finite; replace NaN and infinity first")
    if labels.size and labels.max() >= classes:
        raise FedstructError(f"{name}: label {labels.max()} of node {labels.argmax()} is not below classes = {classes}")
    if split is not None and not np.isin(split, (UNUSED, TRAIN, VALIDATION, TEST)).all():
        raise FedstructError(f"{name}: split must hold 0 (unused), 1 (train), 2 (validation) or 3 (test)")


def _adjacency(edge_index: Any, weights: Any, n: int, directed: bool, name: str) -> csr_array:
    edges = np.asarray(edge_index)
    if edges.ndim != 2 or edges.shape[0] != 2 or (edges.size and edges.dtype.kind not in "iu"):
        raise FedstructError(f"{name}: edge_index must be whole numbers in two rows, source and target")
    edges = edges.astype(np.int64)
    if edges.size and (edges.min() < 0 or edges.max() >= n):
        bad = int(np.argmax(((edges < 0) | (edges >= n)).any(axis=0)))
        u, v = edges[:, bad]
        raise FedstructError(f"{name}: edge {bad} joins nodes {u} and {v}, but the nodes are 0 to {n - 1}")
    w = np.ones(edges.shape[1]) if weights is None else np.asarray(weights)
    if w.dtype.kind not in "fiub":
        raise FedstructError(f"{name}: edge weights must be numbers, not {w.dtype}")
    w = w.astype(np.float64)
    if w.ndim != 1:
        raise FedstructError(f"{name}: edge weights must be one number per edge, not an array of shape {w.shape}")
    if len(w) != edges.shape[1]:
        raise FedstructError(f"{name}: {w.size} edge weights for {edges.shape[1]} edges")
    sound = (w > 0) & (w < 1e100)
    if not sound.all():
        bad = int(np.argmin(sound))
        raise FedstructError(
            f"{name}: the weight of edge {bad} is {w[bad]}; weights must be positive and finite, below 1e100"
        )
    a = coo_array((w, (edges[0], edges[1])), shape=(n, n)).tocsr()
    if weights is None:
        a.data[:] = 1.0
    if not directed:
        a = a.maximum(a.T).tocsr()
    a.sort_indices()
    return a
