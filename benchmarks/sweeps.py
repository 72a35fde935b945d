"""Finished sweeps as tables: a row for each method, a column for each value, test accuracies in percent.

python benchmarks/sweeps.py runs/3a runs/3b
"""

from __future__ import annotations

import sys
from pathlib import Path

from fedstruct.experiments.folder import read_result
from fedstruct.experiments.show import spread


def main() -> None:
    if len(sys.argv) == 1:
        print(__doc__)
    for folder in sys.argv[1:]:
        told = read_result(Path(folder))
        ((key, values),) = told["over"].items()
        cells = {(cell["method"], str(cell["at"][key])): cell["test_accuracy"] for cell in told["cells"]}
        print(f"| {key} | {' | '.join(map(str, values))} |\n|{' --- |' * (1 + len(values))}")
        for method in told["methods"]:
            print(f"| {method} | {' | '.join(spread(cells[method, str(value)]) for value in values)} |")
        print()


if __name__ == "__main__":
    main()
