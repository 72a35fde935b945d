"""The demonstration: a consortium of banks, trained in four ways, and what joining brings and costs each bank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from fedstruct.experiments.bench import Bench
from fedstruct.experiments.card import Card
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.experiment import Runs
from fedstruct.experiments.result import RunResult
from fedstruct.federation.watch import Watch
from fedstruct.graph.graph import TEST

WAYS = {
    "local-gnn": "each bank alone",
    "fedsgd-gnn": "together, borders cut",
    "fedstruct": "together, across borders",
    "central-gnn": "all in one hand: a bound",
}
"""The methods, and what they stand for."""

ALONE, TOGETHER = "local-gnn", "fedstruct"


@dataclass(frozen=True)
class Demonstration:
    """Parties step one by one: each bank counts what it gains, and every message is one that a network would carry."""

    dataset: str = "consortium"
    found: dict[str, RunResult] = field(default_factory=dict)
    bench: Bench = field(default_factory=Bench)

    def experiment(self, method: str) -> Experiment:
        return Experiment(dataset=self.dataset, method=method, train=0.5, recall_at="1%", separate=True)

    @cached_property
    def card(self) -> Card:
        """The parts, and what an exchange of structure would give away."""
        return Card.of(self.bench.parts(self.experiment(TOGETHER), 0))

    def train(self, watch: Watch) -> Iterator[tuple[str, RunResult]]:
        """Each way in turn."""
        for method in WAYS:
            self.found[method] = Runs(self.experiment(method), self.bench).one(0, watch)
            yield method, self.found[method]

    def cases(self) -> dict[str, int]:
        """How many of each bank's test accounts launder."""
        parts = self.bench.parts(self.experiment(TOGETHER), 0)
        return {own.name: int((own.labels[own.known(TEST)] == 1).sum()) for own in parts.parties}

    def gains(self) -> dict[str, tuple[float | None, float | None]]:
        """Each bank's AUPRC alone, and together with the others, on its own test accounts."""
        alone, together = (self.found[method].by_party or {} for method in (ALONE, TOGETHER))
        return {bank: (alone[bank]["auprc"], together[bank]["auprc"]) for bank in alone}

    def as_json(self) -> dict[str, Any]:
        cases = self.cases()
        return {
            "dataset": self.dataset,
            "protocol": self.found[TOGETHER].protocol,
            "partition": asdict(self.card),
            "methods": [{"method": m, "means": WAYS[m], **result.as_json()} for m, result in self.found.items()],
            "gains": {
                bank: {"test_cases": cases[bank], "alone": alone, "together": together}
                for bank, (alone, together) in self.gains().items()
            },
        }
