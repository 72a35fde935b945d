"""What wire=half costs in accuracy and saves in bytes, and what an entry of Algorithm 3 takes on the wire.

FEDSTRUCT_DATA=… python benchmarks/wire.py [--seeds 10]
"""

from __future__ import annotations

import argparse
from statistics import mean, stdev

from fedstruct.experiments.config import Experiment
from fedstruct.experiments.experiment import Runs
from fedstruct.experiments.process import prepare_process
from fedstruct.methods.exchange import Blocks

METHODS = ("fedstruct", "fedstruct-propagated", "fedstruct-propagated-features")
WIRES = ("full", "half")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    asked = parser.parse_args()
    prepare_process()
    print("| dataset | method | full | half | half - full | MB full | MB half |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for dataset in ("cora", "chameleon"):
        for method in METHODS:
            found = {wire: _runs(asked.seeds, dataset, method, wire) for wire in WIRES}
            accuracy = {wire: [100 * r.test_accuracy for r in runs] for wire, runs in found.items()}
            sent = {wire: mean(sum(r.bytes.values()) for r in runs) / 1e6 for wire, runs in found.items()}
            differences = [h - f for f, h in zip(*accuracy.values(), strict=True)]
            cells = [f"{mean(a):.2f} ± {_spread(a):.2f}" for a in (*accuracy.values(), differences)]
            print(
                f"| {dataset} | {method} | {' | '.join(cells)} | {sent['full']:.0f} | {sent['half']:.0f} |", flush=True
            )
    print("\n| dataset | entries of Algorithm 3 | bytes per entry, full | half |")
    print("| --- | --- | --- | --- |")
    for dataset in ("cora", "pubmed"):
        sent = [_runs(1, dataset, "fedstruct", wire, rounds=1)[0].ledger.sent(kind=Blocks) for wire in WIRES]
        each = " | ".join(f"{traffic.bytes / traffic.rows:.2f}" for traffic in sent)
        print(f"| {dataset} | {sent[0].rows:,} | {each} |", flush=True)


def _runs(seeds: int, dataset: str, method: str, wire: str, **more: int) -> list:
    runs = Runs(Experiment(dataset=dataset, method=method, options={"wire": wire, **more}))
    return [runs.one(seed) for seed in range(seeds)]


def _spread(values: list[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


if __name__ == "__main__":
    main()
