"""Test accuracy of FedStruct by propagation beside the bounds on pooled data, all with the preset `ours`.

FEDSTRUCT_DATA=… python benchmarks/propagation.py [--seeds 10] [--parties 10] [--partition random] [--methods …]
"""

from __future__ import annotations

import argparse

from fedstruct.experiments.config import Experiment
from fedstruct.experiments.experiment import Runs
from fedstruct.experiments.process import prepare_process

DATASETS = "cora,citeseer,pubmed,chameleon,amazon_photo"
METHODS = "fedstruct-propagated,fedstruct-propagated-features,central-dgcn,central-gnn"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--parties", type=int, default=10)
    parser.add_argument("--partition", default="random")
    parser.add_argument("--datasets", default=DATASETS)
    parser.add_argument("--methods", default=METHODS)
    asked = parser.parse_args()
    prepare_process()
    methods = asked.methods.split(",")
    print(f"| dataset | {' | '.join(methods)} |")
    print("| --- |" + " --- |" * len(methods))
    for dataset in asked.datasets.split(","):
        print(f"| {dataset} ", end="", flush=True)
        for method in methods:
            shared = {"parties": asked.parties, "partition": asked.partition, "seeds": asked.seeds}
            runs = Runs(Experiment(dataset=dataset, method=method, **shared))
            found = runs.summary([r.as_json() for r in runs.all()])["test_accuracy"]
            print(f"| {100 * found['mean']:.2f} ± {100 * (found['std'] or 0):.2f} ", end="", flush=True)
        print("|", flush=True)


if __name__ == "__main__":
    main()
