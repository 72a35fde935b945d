"""What each way to train adds on the made-up payment network of several banks: AUPRC, recall at 1 % alerts, macro F1.

python benchmarks/consortium.py consortium:cross=0.05 consortium:cross=0.3 --train 0.5
"""

from __future__ import annotations

import argparse

from fedstruct.experiments.batch import Batch
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.process import cores, prepare_process
from fedstruct.experiments.result import RunResult, mean, std
from fedstruct.experiments.study import chosen

METHODS = "fedsgd-mlp,local-gnn,fedsgd-dgcn,fedsgd-gnn,fedstruct,central-dgcn,central-gnn"
MEASURES = {"AUPRC": "auprc", "recall at 1 %": "recall", "macro F1": "macro_f1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--train", type=float, default=0.5)
    parser.add_argument("--split", default="random")
    parser.add_argument("--jobs", type=int, default=cores())
    asked = parser.parse_args()
    prepare_process()
    given = {"seeds": asked.seeds, "train": asked.train, "split": asked.split, "recall_at": "1%"}
    for dataset in asked.datasets:
        methods = chosen(asked.methods)
        batch = Batch([Experiment.of({"dataset": dataset, "method": m, **given}) for m in methods])
        found: dict[str, list[RunResult]] = {m: [] for m in methods}
        for (index, _), result in batch.all(asked.jobs):
            found[methods[index]].append(result)
        print(f"\n{dataset}, protocol {found[methods[0]][0].protocol}\n")
        print(f"| method | {' | '.join(MEASURES)} |\n|{' --- |' * (1 + len(MEASURES))}")
        for method, results in found.items():
            cells = [_cell([getattr(r, key) for r in results]) for key in MEASURES.values()]
            print(f"| {method} | {' | '.join(cells)} |", flush=True)


def _cell(values: list[float | None]) -> str:
    middle, spread = mean(values), std(values)
    return "–" if middle is None else f"{100 * middle:.1f}" + ("" if spread is None else f" ± {100 * spread:.1f}")


if __name__ == "__main__":
    main()
