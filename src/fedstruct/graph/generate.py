"""Graphs made from a seed: planted communities, for a first look without any data."""

from __future__ import annotations

import numpy as np

from fedstruct.errors import FedstructError
from fedstruct.graph.graph import Graph
from fedstruct.seeds import stream


def planted(
    nodes: int = 1200,
    classes: int = 4,
    degree: float = 6.0,
    homophily: float = 0.8,
    features: int = 32,
    signal: float = 0.25,
    seed: int = 0,
) -> Graph:
    """Communities with more edges inside than across, and features that hint at the community.

    `homophily` is the expected share of edges inside a community; `signal` the distance of the classes' mean features
    in units of the noise.

    >>> graph = planted(nodes=200, seed=1)
    >>> graph.nodes, graph.classes
    (200, 4)
    """
    if nodes < 2 or classes < 2 or not 0 <= homophily <= 1:
        raise FedstructError("planted needs at least 2 nodes and 2 classes, and a homophily between 0 and 1")
    random = stream(seed, "planted")
    labels = random.integers(classes, size=nodes)
    edges = round(nodes * degree / 2)
    source = random.integers(nodes, size=edges)
    # The other end: a node of the same class with probability `homophily`, else one of any other class.
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels, minlength=classes)
    starts = np.cumsum(counts) - counts
    offset = np.where(random.random(edges) < homophily, 0, random.integers(1, classes, size=edges))
    wanted = (labels[source] + offset) % classes
    filled = counts[wanted] > 0
    source, wanted = source[filled], wanted[filled]
    target = order[starts[wanted] + (random.random(len(wanted)) * counts[wanted]).astype(np.int64)]
    different = source != target
    centres = random.normal(size=(classes, features)) * signal
    return Graph.from_edges(
        np.stack([source[different], target[different]]),
        features=centres[labels] + random.normal(size=(nodes, features)),
        labels=labels,
        classes=classes,
        name="planted",
    )
