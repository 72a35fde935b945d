"""How much memory a run is going to take, told before it starts.

A sum of what is held at once, from the sizes of the graph and the method's options, and rather too large than too
small; benchmarks/scale.py prints it beside what was taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse

from fedstruct.errors import FedstructError
from fedstruct.experiments.bench import Bench
from fedstruct.experiments.config import Experiment
from fedstruct.graph import generators
from fedstruct.graph.graph import Graph
from fedstruct.graph.synthetic import Blocks
from fedstruct.methods.exchange import StructureOptions
from fedstruct.methods.feature_model import GNNOptions, MLPOptions
from fedstruct.methods.method import Method
from fedstruct.methods.propagated_options import PropagatedOptions

PROGRAM = 750_000_000
"""Python with its libraries, the compiler at its first call, and what small things take."""

HELP = {
    "the graph and its parts": "take a smaller graph, or a machine with more memory",
    "features": "take fewer features",
    "hidden units": "take fewer of them with --set {hidden}=…",
    "the entries of Ā": "take --method fedstruct-propagated, which exchanges none, or fewer with {prune}",
    "values and slopes": "take a smaller graph, or a machine with more memory",
    "the program": "raise --memory",
}
"""What a run holds, and what would help where that is most."""


@dataclass(frozen=True)
class Size:
    """What the memory of a run depends on, beside the method."""

    nodes: int
    entries: int
    """Of the adjacency: an undirected edge counts twice."""
    weight: int
    """Bytes of an edge's weight."""
    width: int
    filled: int
    """Features that are stored."""
    sparse: bool
    classes: int
    parties: int
    train: float

    @classmethod
    def asked(cls, experiment: Experiment, bench: Bench | None = None) -> Self:
        """The size of an experiment's graph; a synthetic one need not be made for it."""
        parties = experiment.parties or 10
        if generators.family(experiment.dataset) == "synthetic":
            blocks = generators.made(experiment.dataset)
            assert isinstance(blocks, Blocks)
            n, width, entries = blocks.n, blocks.features, int(blocks.n * blocks.degree)
            return cls(n, entries, 1, width, n * width, False, blocks.classes, parties, experiment.train)
        return cls.of((bench or Bench()).graph(experiment), parties, experiment.train)

    @classmethod
    def of(cls, graph: Graph, parties: int, train: float) -> Self:
        sparse, a, x = issparse(graph.features), graph.adjacency, graph.features
        filled = x.nnz if sparse else graph.nodes * x.shape[1]
        return cls(graph.nodes, a.nnz, a.data.itemsize, x.shape[1], filled, sparse, graph.classes, parties, train)


def held(method: Method, size: Size) -> dict[str, float]:
    """Bytes that a run holds at its peak, by what they are."""
    o: Any = method.options
    number = np.dtype(getattr(o, "dtype", "float32")).itemsize
    stored = size.filled * (8 if size.sparse else 4)
    # The graph, the parts that it is cut into, and what both directions of the border name.
    graph = size.entries * (4 + size.weight + 18 + 2 * size.weight) + 40 * size.nodes
    holds = {"the program": float(PROGRAM), "the graph and its parts": graph, "features": 2.0 * stored}
    used = size.nodes * _share(o, size)
    if isinstance(o, MLPOptions | GNNOptions):
        holds["features"] += used / size.nodes * size.filled * (number + (2 * (number + 4) if size.sparse else 0))
        hidden = sum(o.sage_hidden) * 2 if isinstance(o, GNNOptions) else o.feature_hidden
        holds["hidden units"] = 4.0 * used * hidden * number
    if isinstance(o, PropagatedOptions):
        holds["values and slopes"] = size.nodes * size.classes * number * 10.0 + 5.0 * size.entries
    if isinstance(o, StructureOptions):
        blocks = size.parties**2 * o.entries_per_row(size.parties) if o.prune_rule == "block" else size.nodes
        row = min(size.nodes, o.keep or blocks)
        holds["the entries of Ā"] = 12.0 * size.nodes * (2 * row + min(size.nodes, blocks))
        holds["values and slopes"] = size.nodes * size.classes * number * 6.0
    return holds


def check_all(experiments: Sequence[Experiment], memory: str, jobs: int, bench: Bench) -> None:
    """Refuse experiments on one graph if any of them needs more than its share of this amount."""
    most = parsed(memory) // min(jobs, sum(e.seeds for e in experiments))
    size = Size.asked(experiments[0], bench)
    for experiment in experiments:
        check(experiment.build_method(), size, most)


def check(method: Method, size: Size, most: int) -> None:
    """Refuse a run that would need more than this."""
    holds = held(method, size)
    if (needs := sum(holds.values())) <= most:
        return
    largest = sorted(holds, key=lambda what: -holds[what])[:2]
    of = " and ".join(f"{_gigabytes(holds[what])} for {what}" for what in largest)
    o: Any = method.options
    hidden = "sage_hidden" if isinstance(o, GNNOptions) else "feature_hidden"
    prune = "--set prune_rule=block" if getattr(o, "prune_rule", "") == "none" else "--set prune=…"
    raise FedstructError(
        f"this run would need about {_gigabytes(needs)} of memory, more than the {_gigabytes(most)} of --memory: {of}; "
        + HELP[largest[0]].format(hidden=hidden, prune=prune)
    )


def parsed(text: str) -> int:
    """So many bytes.

    >>> parsed("4GB"), parsed("512 MiB")
    (4000000000, 536870912)
    """
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([KMGT]?)(i?)B\s*", text, re.IGNORECASE)
    if found is None:
        raise FedstructError(f"--memory takes an amount such as 4GB or 512MB, not '{text}'")
    number, prefix, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** " KMGT".index(prefix.upper() or " "))


def _share(options: Any, size: Size) -> float:
    """Of the nodes, those whose features a training step needs."""
    if getattr(options, "carry", None) == "features":
        return 1.0
    inner = size.entries / size.nodes / max(size.parties, 1)
    hops = len(options.sage_hidden) if isinstance(options, GNNOptions) else getattr(options, "hops", 0)
    return min(1.0, size.train * float(sum(inner**hop for hop in range(hops + 1))))


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:.3g} GB"
