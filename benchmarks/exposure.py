"""What the second hop of the structure exchange gives away: shares of edges that others read off exactly.

10 parties, random partition, p = 30, 3 seeds; the exchange alone is run, with two hops and one round of training.

    FEDSTRUCT_DATA=… python benchmarks/exposure.py [--seeds 3] [--parties 10]
"""

from __future__ import annotations

import argparse

from fedstruct.experiments.config import Experiment
from fedstruct.experiments.experiment import Runs
from fedstruct.experiments.process import prepare_process
from fedstruct.graph import datasets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--parties", type=int, default=10)
    asked = parser.parse_args()
    prepare_process()
    print("| dataset | inner edges read by some peer | by the average peer | border edges read by some third party |")
    print("| --- | --- | --- | --- |")
    for name in ("cora", "citeseer", "pubmed", "chameleon", "amazon_photo"):
        if datasets.where(name) is None:
            print(f"| {name} | no file | | |")
            continue
        options = {"layers_structure": 2, "rounds": 1}
        runs = Runs(Experiment(dataset=name, parties=asked.parties, seeds=asked.seeds, options=options))
        found = [r.exposure for r in runs.all()]
        pairs = [t["inner_share"] for e in found for p in e["parties"] for t in p["towards"].values()]
        print(
            f"| {name} | {100 * _mean(e['inner_share'] for e in found):.1f} % | {100 * _mean(pairs):.1f} % "
            f"| {100 * _mean(e['border_share'] for e in found):.1f} % |",
            flush=True,
        )


def _mean(values) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


if __name__ == "__main__":
    main()
