"""Test accuracies of finished comparisons beside those that the paper prints (published.csv).

Each folder of `fedstruct compare` is a column; an entry is our mean over the seeds and, in brackets, how far above the
published mean it is. What is more than 1.5 points below is marked with an asterisk.

    python benchmarks/published.py runs/cora-code runs/chameleon-code
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars

from fedstruct.experiments.folder import read_result

TOLERATED = 1.5
PUBLISHED = Path(__file__).with_name("published.csv")


def main() -> None:
    told = [read_result(Path(folder)) for folder in sys.argv[1:]]
    if not told:
        print(__doc__)
        return
    known = polars.read_csv(PUBLISHED, schema_overrides={"parties": polars.String})
    published = {tuple(row[:4]): row[4] for row in known.rows()}
    columns = [{m["method"]: m["test_accuracy"] for m in comparison["methods"]} for comparison in told]
    methods = list(dict.fromkeys(name for column in columns for name in column))
    print("| method | " + " | ".join(f"{c['dataset']}, {c['partition']}" for c in told) + " |")
    print("| --- |" + " --- |" * len(told))
    for method in methods:
        entries = []
        for comparison, column in zip(told, columns, strict=True):
            if method not in column:
                entries.append("")
                continue
            mean, std = column[method]["mean"], column[method]["std"] or 0.0
            of_setting = (method, comparison["dataset"], comparison["partition"], str(comparison["parties"]))
            paper = published.get(of_setting, published.get((*of_setting[:2], "any", None)))
            entries.append(
                f"{100 * mean:.2f} ± {100 * std:.2f}" + ("" if paper is None else _beside(100 * mean, paper))
            )
        print(f"| {method} | " + " | ".join(entries) + " |")


def _beside(mean: float, paper: float) -> str:
    difference = round(mean, 2) - paper
    return f" ({difference:+.2f}{'*' if difference < -TOLERATED else ''})"


if __name__ == "__main__":
    main()
