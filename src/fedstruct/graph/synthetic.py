"""Large graphs from a seed: blocks with power-law degrees, drawn piece by piece and kept in files.

What is drawn does not depend on how large the pieces are: edges are functions of their number, and features have a
stream for each block of rows.

Reference: Karrer and Newman, "Stochastic blockmodels and community structure in networks", 2011.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le

from fedstruct.atomic import made_once
from fedstruct.errors import FedstructError
from fedstruct.graph import mapped
from fedstruct.graph.cache import cache
from fedstruct.graph.graph import Graph
from fedstruct.graph.parameters import checked
from fedstruct.seeds import key, stream

FORM = 2
"""Counts the ways in which such graphs have been made: files of another way are not taken for these."""

MOST_ENTRIES = 2_000_000_000
"""Of the adjacency, whose positions are 32-bit."""

ENDS_AT_ONCE = 1 << 27
"""Ends of edges that are held at once."""

FEATURES_AT_ONCE = 1 << 22
"""Features that one stream draws."""


@checked
def synthetic(
    n: Annotated[int, Ge(4), Le(200_000_000)] = 1_000_000,
    degree: Annotated[float, Ge(0.1), Le(10_000)] = 10.0,
    classes: Annotated[int, Ge(2), Le(10_000)] = 10,
    homophily: Annotated[float, Ge(0), Le(1)] = 0.7,
    features: Annotated[int, Ge(1), Le(10_000)] = 64,
    signal: Annotated[float, Ge(0), Le(1e6)] = 1.8,
    seed: Annotated[int, Ge(0)] = 0,
) -> Blocks:
    """Blocks of one size with power-law degrees, for graphs of any size; made once and kept in the cache.

    Both ends of an edge are drawn in proportion to the nodes' expected degrees, and in one class with the probability
    `homophily`. Edges drawn again count once, so that there are a few less than asked for. `signal` is the length of a
    class's mean features in units of the noise. Nothing is made before `graph` is called.
    """
    return Blocks(n, degree, classes, homophily, features, signal, seed)


@dataclass(frozen=True)
class Blocks:
    """What a synthetic graph is drawn from."""

    n: int
    degree: float
    classes: int
    homophily: float
    features: int
    signal: float
    seed: int

    def __post_init__(self) -> None:
        if self.n < 2 * self.classes:
            raise FedstructError(f"synthetic: n = {self.n:,} nodes are too few for {self.classes:,} classes")
        if self.degree > (most := min(self.n / 4, MOST_ENTRIES / self.n)):
            raise FedstructError(
                f"synthetic: degree = {self.degree:g} is too large for n = {self.n:,}; {most:g} is most"
            )

    @property
    def bytes(self) -> float:
        return 4.0 * self.n * (self.degree + self.features + 3)

    def graph(self, name: str = "synthetic") -> Graph:
        """The graph, from the cache if it is there."""
        folder = cache() / "synthetic" / "-".join([f"v{FORM}", *(f"{k}{v}" for k, v in asdict(self).items())])
        try:
            made_once(folder, self.write)
        except OSError as error:
            raise FedstructError(
                f"a synthetic graph of about {self.bytes / 1e9:.2g} GB cannot be written to {folder.parent}: "
                f"{error.strerror or error}; make room, or set XDG_CACHE_HOME to another folder"
            ) from None
        return mapped.read(folder, name)

    def write(self, folder: Path) -> None:
        """Draw everything, and write it piece by piece."""
        labels = self._stream("labels").permutation(self.n) % self.classes
        lengths: list[np.ndarray] = []
        entries = mapped.write(folder, "columns", self._columns(labels, lengths))
        row_starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        mapped.write(folder, "row_starts", [row_starts])
        mapped.write(folder, "labels", [labels])
        mapped.write(folder, "features", self._features(labels))
        mapped.describe(folder, self.n, entries, self.classes, self.features)

    def expected_degrees(self) -> np.ndarray:
        """Drawn from a power law, P(degree) ~ degree^-2.5, that ends at sqrt(n · degree) and has the mean asked for."""
        most = math.sqrt(self.n * self.degree)
        # The mean from l to h is 3h x² / (1 + x + x²), where x² = l / h.
        rest = 3 * most - self.degree
        x = (self.degree + math.sqrt(self.degree**2 + 4 * self.degree * rest)) / (2 * rest)
        drawn = self._stream("degrees").random(self.n)
        drawn *= x**3 - 1
        drawn += 1
        drawn **= -2 / 3
        drawn *= self.degree / drawn.mean()
        return drawn

    def _columns(self, labels: np.ndarray, lengths: list[np.ndarray]) -> Iterator[np.ndarray]:
        """The neighbours of each node, some nodes at a time; how many each has is added to `lengths`."""
        from fedstruct.graph.compiled_edges import alias_table, edge_ends, neighbours

        weights = self.expected_degrees()
        first = np.cumsum([0, *np.bincount(labels, minlength=self.classes)])
        until = np.cumsum([0, *np.bincount(labels, weights, minlength=self.classes)])
        members = np.argsort(labels.astype(np.int16), kind="stable")
        table = alias_table(members, first, weights)
        # Half of a node's edges begin at it, as expected, and half of them end there.
        begun = self._stream("edges").poisson(weights / 2).astype(np.int32)
        del members, weights
        draw = (np.uint64(key("synthetic", "edges", self.seed)), self.homophily, first, until, table)
        ends = edge_ends(begun, labels, draw)
        piece = np.cumsum(ends, dtype=np.int64) // ENDS_AT_ONCE
        for begin, end in pairwise([0, *(np.flatnonzero(np.diff(piece)) + 1), self.n]):
            found, columns = neighbours(begin, ends[begin:end], begun, labels, draw)
            lengths.append(found)
            yield columns

    def _features(self, labels: np.ndarray) -> Iterator[np.ndarray]:
        """Each class has a mean, and each node noise around it."""
        shape = (self.classes, self.features)
        means = self._stream("means").standard_normal(shape) * (self.signal / math.sqrt(self.features))
        means = means.astype(np.float32)
        rows = max(1, FEATURES_AT_ONCE // self.features)
        for block, begin in enumerate(range(0, self.n, rows)):
            some = labels[begin : begin + rows]
            noise = self._stream("features", block).standard_normal((len(some), self.features), np.float32)
            noise += means[some]
            yield noise

    def _stream(self, *names: str | int) -> np.random.Generator:
        return stream(self.seed, "synthetic", *names)
