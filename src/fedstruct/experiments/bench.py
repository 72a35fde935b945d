"""The bench: graphs and the last cut at hand, for runs that share them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fedstruct.errors import FedstructError
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.memory import Memory
from fedstruct.experiments.protocol import GIVEN, ICLR2025, TIME, prepared, split, time_split
from fedstruct.experiments.result import RunResult
from fedstruct.experiments.run import run
from fedstruct.federation.watch import Watch
from fedstruct.graph.graph import TEST, UNKNOWN, Graph
from fedstruct.graph.partition import Partition
from fedstruct.methods import Method


class Bench:
    """Where runs are made ready: one seed gives every method the same split and the same owners.

    A bench that is `blind` removes the labels of the test nodes before anything else sees the graph.
    """

    def __init__(self, graphs: Mapping[str, Graph] | None = None, blind: bool = False) -> None:
        self.graphs = {name: prepared(graph) for name, graph in (graphs or {}).items()}
        self.blind = blind
        self._last: tuple[tuple[Any, ...], Partition] | None = None

    def graph(self, experiment: Experiment) -> Graph:
        """The graph of an experiment, read when it is first asked for."""
        name = experiment.dataset
        if name not in self.graphs:
            self.graphs[name] = prepared(experiment.load_graph())
        return self.graphs[name]

    def elsewhere(self) -> Bench:
        """The same bench for another process, which maps those graphs again that are mapped from files."""
        held = {name: graph for name, graph in self.graphs.items() if not isinstance(graph.features, np.memmap)}
        return Bench(held, self.blind)

    def protocol(self, experiment: Experiment) -> str:
        if experiment.split == "time":
            return TIME
        return ICLR2025 if self.graph(experiment).split is None else GIVEN

    def parts(self, experiment: Experiment, seed: int) -> Partition:
        """The graph's owners with one seed."""
        graph = self.graph(experiment)
        shares = experiment.train, experiment.validation
        if experiment.split == "time":
            graph = time_split(graph, seed, *shares)
        elif graph.split is None:
            graph = split(graph, seed, *shares)
        elif shares != (0.1, 0.1):
            raise FedstructError(f"{experiment.dataset} comes with a split of its own; leave out --train and --val")
        if self.blind:
            graph = replace(graph, labels=np.where(graph.split == TEST, UNKNOWN, graph.labels))
        how = experiment.cut_key(seed)
        if self._last is None or self._last[0] != how:
            self._last = how, experiment.cut(graph, seed)
        return self._last[1].on(graph)

    def one(
        self,
        experiment: Experiment,
        method: Method,
        seed: int,
        memory: Memory | None = None,
        watch: Watch | None = None,
    ) -> RunResult:
        """One run of an experiment, with the method that it builds."""
        return run(
            method,
            self.parts(experiment, seed),
            seed,
            separate=experiment.separate,
            protocol=self.protocol(experiment),
            recall_at=experiment.recall_at,
            memory=memory,
            watch=watch,
        )
