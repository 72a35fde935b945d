"""Nodes that belong together, by their edges or by their features, and how they are given to parties of like size."""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array, issparse

from fedstruct.errors import FedstructError
from fedstruct.graph.graph import Features, Graph
from fedstruct.seeds import stream


def by_edges(graph: Graph, seed: int) -> list[np.ndarray]:
    """Communities with many edges inside and few between: the Louvain method, on the undirected weighted graph.

    An isolated node is a community of its own. Self loops tie a node to nobody and are left out.

    Reference: Blondel, Guillaume, Lambiotte and Lefebvre, "Fast unfolding of communities in large networks", 2008.

    >>> two = Graph.from_edges([[0, 1, 2, 3, 4, 5, 2], [1, 2, 0, 4, 5, 3, 3]], features=np.eye(6), labels=[0] * 6)
    >>> sorted(c.tolist() for c in by_edges(two, seed=0))
    [[0, 1, 2], [3, 4, 5]]
    """
    import networkx

    ties = graph.undirected().without_self_loops().adjacency
    start = int(stream(seed, "partition", "louvain").integers(2**32))
    found = networkx.community.louvain_communities(networkx.from_scipy_sparse_array(ties), seed=start)
    return [np.array(sorted(community)) for community in found]


def by_features(graph: Graph, clusters: int, seed: int) -> list[np.ndarray]:
    """Nodes with features near each other: K-means, the best of four starts.

    A single start may leave nearly all nodes in one cluster, and outliers in the others. There are fewer clusters than
    asked for where fewer nodes differ.

    >>> line = Graph.from_edges([[0], [1]], features=[[0.0], [9.0], [1.0], [8.0]], labels=[0] * 4)
    >>> sorted(c.tolist() for c in by_features(line, clusters=2, seed=0))
    [[0, 2], [1, 3]]
    """
    if graph.features.shape[1] == 0:
        raise FedstructError(f"{graph.name} has no features for K-means to go by; take louvain or random instead")
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    start = int(stream(seed, "partition", "kmeans").integers(2**32))
    # One thread: several would add up in whatever order they finish.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        cluster = KMeans(clusters, n_init=4, random_state=start).fit_predict(_doubled(graph.features))
    order = np.argsort(cluster, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(cluster[order])) + 1)


def shared_out(communities: Sequence[np.ndarray], parties: int) -> np.ndarray:
    """The owner of each node, where communities are given to parties of about the same size.

    No community may have more than n/K + 20 nodes: as many are cut off, its first ones, until the rest fits. Where
    there are fewer than parties, the largest is halved. Then the largest K get a party each, and each further one, in
    order of size, goes to the first party that it does not take above n/K + 20, or else to the smallest. Of equals,
    the one with the lower first node comes first.

    >>> shared_out([np.arange(0, 30), np.arange(30, 34), np.arange(34, 36)], parties=2).tolist()[28:]
    [0, 0, 1, 1, 1, 1, 0, 0]
    """
    nodes = sum(len(c) for c in communities)
    most = nodes // parties + 20
    pieces = [c[at : at + most] for c in communities for at in range(0, len(c), most)]
    largest_first = [(-len(piece), int(piece[0]), piece) for piece in pieces]
    heapq.heapify(largest_first)
    while len(largest_first) < parties:
        _, _, largest = heapq.heappop(largest_first)
        for half in np.array_split(largest, 2):
            heapq.heappush(largest_first, (-len(half), int(half[0]), half))

    owner = np.empty(nodes, np.int64)
    sizes = np.zeros(parties, np.int64)
    for i, (_, _, piece) in enumerate(sorted(largest_first)):
        fits = sizes + len(piece) <= most
        party = i if i < parties else np.argmax(fits) if fits.any() else np.argmin(sizes)
        owner[piece] = party
        sizes[party] += len(piece)
    return owner


def _doubled(features: Features) -> Features:
    """In double precision, in which squares do not overflow; scikit-learn takes 32-bit positions only."""
    if not issparse(features):
        return features.astype(np.float64)
    positions = (features.indices.astype(np.int32), features.indptr.astype(np.int32))
    return csr_array((features.data.astype(np.float64), *positions), shape=features.shape)
