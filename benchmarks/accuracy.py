"""Test accuracy of FedStruct, preset `ours`, beside the published figures: 10 parties, random partition, 10 seeds.

FEDSTRUCT_DATA=… python benchmarks/accuracy.py [--seeds 10] [--parties 10]
"""

from __future__ import annotations

import argparse

from fedstruct.experiments.config import Experiment
from fedstruct.experiments.experiment import Runs
from fedstruct.experiments.process import prepare_process
from fedstruct.graph import datasets

PUBLISHED = {
    "cora": {5: 79.34, 10: 79.27, 20: 78.47},
    "citeseer": {5: 66.20, 10: 65.43, 20: 64.33},
    "pubmed": {5: 84.67, 10: 85.02, 20: 85.24},
    "chameleon": {5: 53.33, 10: 52.60, 20: 51.85},
    "amazon_photo": {5: 91.14, 10: 90.93, 20: 91.25},
}
"""FedStruct (H2V), Table 1."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--parties", type=int, default=10)
    asked = parser.parse_args()
    prepare_process()
    print("| dataset | test accuracy | published | validation | seconds per run |")
    print("| --- | --- | --- | --- | --- |")
    for name, published in PUBLISHED.items():
        if datasets.where(name) is None:
            print(f"| {name} | no file | | | |")
            continue
        runs = Runs(Experiment(dataset=name, parties=asked.parties, seeds=asked.seeds))
        results = list(runs.all())
        summary = runs.summary([r.as_json() for r in results])
        accuracy = summary["test_accuracy"]
        validation = sum(r.validation_accuracy or 0 for r in results) / len(results)
        seconds = sum(sum(r.seconds.values()) for r in results) / len(results)
        print(
            f"| {name} | {100 * accuracy['mean']:.2f} ± {100 * (accuracy['std'] or 0):.2f} "
            f"| {published.get(asked.parties, float('nan')):.2f} | {100 * validation:.2f} | {seconds:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
