"""Why things are done as they are: each choice beside the obvious alternative, in one run.

FEDSTRUCT_DATA=… python benchmarks/choices.py
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

import numpy as np
import torch
from scipy.sparse import random_array

from fedstruct.graph import datasets
from fedstruct.methods.optimiser import Optimiser
from fedstruct.models.sparse import SparseMatrix

EXCHANGE = """
from statistics import median
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.experiment import Runs
from fedstruct.experiments.process import prepare_process
import torch
torch.set_num_threads(1)
{prepare}
runs = Runs(Experiment(dataset="cora", seeds=5))
print(median(r.cpu_seconds["structure"] for r in runs.all()))
"""


def main() -> None:
    torch.set_num_threads(1)
    print("| what | the obvious way | as it is |")
    print("| --- | --- | --- |")
    for parties, entries in ((10, 149), (50, 877)):
        matrix = random_array((270, 2708), density=entries / 2708, format="csr", dtype=np.float32, rng=0)
        dense = torch.rand(2708, 7)
        plain = _milliseconds(lambda m=matrix, d=dense.numpy(): m @ d)
        ours = _milliseconds(lambda m=SparseMatrix(matrix, torch.float32), d=dense: m @ d)
        print(
            f"| 270 rows of Ā times 7 columns, {parties} parties: scipy, torch's CSR | {plain:.3f} ms | {ours:.3f} ms |"
        )
    print(
        f"| first optimiser of a process: torch's class, its function | {_fresh('torch.optim.Adam([p])'):.2f} s ",
        end="",
    )
    begun = time.process_time()
    Optimiser("adam", (torch.zeros(10), 0.1, 0.0)).step(torch.ones(10))
    print(f"| {time.process_time() - begun:.2f} s |")
    if datasets.where("cora") is not None:
        plain, ours = (_exchange(prepare) for prepare in ("", "prepare_process()"))
        print(f"| exchange on Cora, 10 parties: memory as it comes, freed memory kept | {plain:.2f} s | {ours:.2f} s |")


def _milliseconds(work) -> float:
    times = []
    for _ in range(200):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return 1000 * median(times)


def _fresh(statement: str) -> float:
    code = (
        f"import time, torch; p = torch.zeros(10); t = time.process_time(); {statement}; print(time.process_time() - t)"
    )
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def _exchange(prepare: str) -> float:
    code = EXCHANGE.format(prepare=prepare)
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
