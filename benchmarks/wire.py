"""What wire=half costs in accuracy and saves in bytes, what an entry of Algorithm 3 takes on the wire, and how many
values are so small beside the largest of their array that a half has fewer than 11 significant bits for them.

    FEDSTRUCT_DATA=… python benchmarks/wire.py [--seeds 5]
"""

from __future__ import annotations

import argparse
from collections import Counter
from statistics import mean, stdev
from unittest.mock import patch

import numpy as np

from fedstruct.experiments.config import Experiment
from fedstruct.experiments.experiment import Runs
from fedstruct.experiments.process import prepare_process
from fedstruct.federation import halves
from fedstruct.methods.exchange import Blocks

METHODS = ("fedstruct", "fedstruct-propagated", "fedstruct-propagated-features")
WIRES = ("full", "half")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
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
    print("\n| dataset | method | values | numbers sent, not zero | below 2^-28 of the largest |")
    print("| --- | --- | --- | --- | --- |")
    for dataset in ("cora", "chameleon"):
        for method in (METHODS[0], METHODS[2]):
            numbers, small = _sizes(dataset, method)
            for name, count in numbers.items():
                print(f"| {dataset} | {method} | `{name}` | {count:,} | {100 * small[name] / count:.2g} % |")


def _sizes(dataset: str, method: str) -> tuple[Counter[str], Counter[str]]:
    """How many values one run sends in halves, and how many of them are that small, by message and field."""
    numbers, small, halved = Counter(), Counter(), halves.halved

    def counting(values: np.ndarray, where: str) -> tuple[int, np.ndarray]:
        sizes = np.abs(values[values != 0])
        numbers[where] += len(sizes)
        small[where] += int((sizes < 2.0**-28 * sizes.max(initial=0)).sum())
        return halved(values, where)

    with patch.object(halves, "halved", counting):
        _runs(1, dataset, method, "half")
    return numbers, small


def _runs(seeds: int, dataset: str, method: str, wire: str, **more: int) -> list:
    runs = Runs(Experiment(dataset=dataset, method=method, options={"wire": wire, **more}))
    return [runs.one(seed) for seed in range(seeds)]


def _spread(values: list[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


if __name__ == "__main__":
    main()
