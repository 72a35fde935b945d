"""Graphs made from a seed: planted communities, for a first look without any data; a consortium of banks; large graphs.

>>> planted(nodes=100).nodes, consortium(accounts=200).graph().owner_attribute
(100, 'bank')
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge, Le

from fedstruct.graph.consortium import consortium
from fedstruct.graph.graph import Graph
from fedstruct.graph.parameters import checked
from fedstruct.graph.synthetic import synthetic
from fedstruct.seeds import stream

__all__ = ["consortium", "planted", "synthetic"]


@checked
def planted(
    nodes: Annotated[int, Ge(2), Le(100_000_000)] = 1200,
    classes: Annotated[int, Ge(2), Le(10_000)] = 4,
    degree: Annotated[float, Ge(0), Le(100_000)] = 6.0,
    homophily: Annotated[float, Ge(0), Le(1)] = 0.8,
    features: Annotated[int, Ge(1), Le(100_000)] = 32,
    signal: Annotated[float, Ge(0), Le(1e6)] = 0.25,
    seed: Annotated[int, Ge(0)] = 0,
) -> Graph:
    """Communities with more edges inside than across, and features that hint at the community.

    `homophily` is the expected share of edges inside a community; `signal` the distance of the classes' mean features
    in units of the noise.

    >>> graph = planted(nodes=200, seed=1)
    >>> graph.nodes, graph.classes
    (200, 4)
    """
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
