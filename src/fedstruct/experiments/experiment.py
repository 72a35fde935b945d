"""An experiment: the same method over several seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fedstruct.experiments.batch import Batch, Watching, unwatched
from fedstruct.experiments.bench import Bench
from fedstruct.experiments.card import Card
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.process import peak_rss_mb
from fedstruct.experiments.result import RunResult, mean, std
from fedstruct.experiments.versions import versions
from fedstruct.federation.watch import Watch
from fedstruct.graph.datasets import stem
from fedstruct.graph.graph import Graph


class Runs:
    """The runs of an experiment, and what they come to."""

    def __init__(self, experiment: Experiment, bench: Bench | None = None) -> None:
        self.experiment = experiment
        self.bench = bench or Bench()
        self.method = experiment.build_method()
        # Bad settings are found out before the first run, and before a folder is made.
        parts = self.bench.parts(experiment, 0)
        self.parties, self.partition = len(parts), parts.name
        self.about = {"versions": versions(), "card": Card.of(parts, exchange=False).as_json()}
        """What the runs stand on: the card is that of the first seed, as far as it needs no exchange."""

    @property
    def graph(self) -> Graph:
        return self.bench.graph(self.experiment)

    def one(self, seed: int, watch: Watch | None = None) -> RunResult:
        return self.bench.one(self.experiment, self.method, seed, watch=watch)

    def all(self, jobs: int = 1, watching: Watching = unwatched) -> Iterator[RunResult]:
        """Train them; gives each as it finishes."""
        return (result for _, result in Batch([self.experiment], self.bench).all(jobs, watching))

    def summary(self, runs: list[dict[str, Any]]) -> dict[str, Any]:
        """The experiment as JSON, from its runs as JSON."""
        e = self.experiment
        runs = sorted(runs, key=lambda run: run["seed"])
        two = self.graph.classes == 2
        measures = ["test_accuracy", "macro_f1", *(["auprc", "recall"] if two else [])]
        return {
            "dataset": e.dataset,
            "method": e.method,
            "protocol": self.bench.protocol(e),
            "preset": e.preset,
            "parties": self.parties,
            "partition": self.partition,
            **{name: {"mean": mean([r[name] for r in runs]), "std": std([r[name] for r in runs])} for name in measures},
            **({"recall_at": e.recall_at} if two else {}),
            "options": self.method.options.model_dump(),
            "runs": runs,
            "peak_rss_mb": peak_rss_mb(),
        }


def folder_name(experiment: Experiment) -> str:
    return f"{stem(experiment.dataset)}-{experiment.method}"
