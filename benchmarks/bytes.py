"""What methods tell of nodes, in kB per node, and what FedGCN and FedSage+ would send over the same borders.

FedStruct's figures are read off ledgers. Those of FedGCN and FedSage+ are computed from formulas that docs/bytes.md
writes out; nothing of theirs is run. The model itself, which every method sends in each round, is left out of all.

    FEDSTRUCT_DATA=… python benchmarks/bytes.py [--datasets cora,pubmed]
"""

from __future__ import annotations

import argparse

import numpy as np

from fedstruct.experiments.config import Experiment
from fedstruct.experiments.experiment import Runs
from fedstruct.experiments.memory import Memory
from fedstruct.experiments.process import prepare_process
from fedstruct.graph.partition import Partition
from fedstruct.methods.exchange import Blocks
from fedstruct.methods.fedstruct_messages import AllColumns, Columns, Evaluate, Gradient, Weights
from fedstruct.methods.propagated_messages import SlopeSums, Sums

NUMBER = 4
"""Bytes of a number that FedGCN or FedSage+ sends."""

EPOCHS = 20
"""Of FedSage+'s generators, as its authors' code has them."""

KINDS = (Blocks, Columns, AllColumns, Weights, Gradient, Evaluate, Sums, SlopeSums)
WITH_MODEL = (Weights, Gradient, Evaluate)
METHODS = ("fedstruct", "fedstruct-propagated", "fedstruct-propagated-features")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", default="cora")
    asked = parser.parse_args()
    prepare_process()
    for dataset in asked.datasets.split(","):
        of = [f"{m} {Runs(Experiment(dataset=dataset, method=m)).method.options.rounds}" for m in METHODS]
        print(f"\n{dataset}, rounds: {', '.join(of)}\n")
        print(
            "| partition | parties | wire | exchanged: Ā once | S in all rounds | propagated | carry=features ", end=""
        )
        print("| FedGCN, 1 hop | 2 hops | FedSage+ |")
        print("| --- " * 10 + "|")
        for partition in ("random", "louvain"):
            for parties in (5, 10, 20):
                for wire in ("full", "half"):
                    told = [Told(dataset, method, partition, parties, wire) for method in METHODS]
                    cells = [
                        told[0].once,
                        *(t.in_all for t in told),
                        *(others(told[0].parts) if wire == "full" else ()),
                    ]
                    cells = [f"{c:,.1f}" for c in cells] + [""] * (7 - len(cells))
                    print(f"| {partition} | {parties} | {wire} | {' | '.join(cells)} |", flush=True)


class Told:
    """What one method tells of nodes, in kB per node: once, and in all rounds and the evaluation."""

    def __init__(self, dataset: str, method: str, partition: str, parties: int, wire: str) -> None:
        runs = Runs(_experiment(dataset, method, partition, parties))
        self.parts = runs.bench.parts(runs.experiment, 0)
        memory: Memory = {}
        sent = []
        for rounds in (1, 2):  # every further round sends as much as the second
            short = _experiment(dataset, method, partition, parties, wire=wire, rounds=rounds)
            result = runs.bench.one(short, short.build_method(), 0, memory)
            model = result.trained.parameters["theta"].nbytes // (2 if wire == "half" else 1)
            traffic = {kind: result.ledger.sent(kind=kind) for kind in KINDS}
            sent.append(
                sum(t.bytes for kind, t in traffic.items() if kind is not Blocks)
                - model * sum(traffic[kind].messages for kind in WITH_MODEL)
            )
        kilo = 1000 * self.parts.graph.nodes
        self.once = traffic[Blocks].bytes / kilo
        self.in_all = (sent[0] + (runs.method.options.rounds - 1) * (sent[1] - sent[0])) / kilo


def others(parts: Partition) -> tuple[float, float, float]:
    """FedGCN with one hop and with two, and FedSage+, in kB per node, by the formulas."""
    graph = parts.graph
    nodes, features, parties = graph.nodes, graph.features.shape[1], len(parts)
    edges = graph.adjacency.tocoo()
    crossing = parts.owner[edges.coords[0]] != parts.owner[edges.coords[1]]
    node, peer = edges.coords[0][crossing], parts.owner[edges.coords[1][crossing]]
    # A sum for each node and foreign party that it has neighbours at; the nodes that have any; and, seen from the
    # other side, the foreign neighbours of each party.
    sums, border = len(np.unique(node * parties + peer)), len(np.unique(node))
    width = NUMBER * features / 1000 / nodes
    return (sums + border) * width, (2 * sums + 2 * border) * width, EPOCHS * parties * nodes * width


def _experiment(dataset: str, method: str, partition: str, parties: int, **options: object) -> Experiment:
    return Experiment(dataset=dataset, method=method, partition=partition, parties=parties, options=options)


if __name__ == "__main__":
    main()
