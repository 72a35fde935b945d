"""One product with Â by scipy, by torch and by the compiled loop, with one thread and with all cores.

Milliseconds, the best of several turns in which the candidates take part one after the other; synthetic graphs of mean
degree 10, ten columns in float32.

    python benchmarks/products.py [--sizes 1e3,1e4,1e5,1e6] [--width 10]
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from operator import matmul

import numba
import numpy as np
import torch

from fedstruct import partition
from fedstruct.experiments.process import cores, prepare_process
from fedstruct.graph import datasets
from fedstruct.models.adjacency import NormalisedAdjacency
from fedstruct.structure.neighbours import together


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1e3,1e4,1e5,1e6")
    parser.add_argument("--width", type=int, default=10)
    parser.add_argument("--turns", type=int, default=7)
    asked = parser.parse_args()
    prepare_process()
    many = cores()
    kinds = ["scipy", *(f"{what}, {n} thread{'s' * (n > 1)}" for what in ("torch", "compiled") for n in (1, many))]
    print(f"| nodes | entries | {' | '.join(kinds)} |")
    print("| --- | --- |" + " --- |" * len(kinds))
    for size in asked.sizes.split(","):
        graph = datasets.load(f"synthetic:n={float(size):.0f},features=1")
        neighbours = together(partition.random(graph, 10).parties)
        values = torch.randn(neighbours.nodes, asked.width, generator=torch.Generator().manual_seed(0))
        matrix, dense = neighbours.normalised().astype(np.float32), values.numpy()
        by_torch, compiled = (NormalisedAdjacency(neighbours, torch.float32, at) for at in (1 << 40, 0))
        candidates = [partial(matmul, matrix, dense)]
        candidates += [threaded(n, by_torch, values) for n in (1, many)]
        candidates += [threaded(n, compiled, values) for n in (1, many)]
        repeats = max(1, 1_000_000 // len(neighbours.indices))
        best = np.min([[seconds(c, repeats) for c in candidates] for _ in range(asked.turns)], axis=0)
        print(f"| {neighbours.nodes:,} | {len(neighbours.indices):,} | {' | '.join(f'{1e3 * t:.3g}' for t in best)} |")


def threaded(threads: int, adjacency: NormalisedAdjacency, values: torch.Tensor):
    def product() -> None:
        torch.set_num_threads(threads)
        numba.set_num_threads(threads)
        adjacency.forward(values)

    return product


def seconds(product, repeats: int) -> float:
    product()
    begun = time.perf_counter()
    for _ in range(repeats):
        product()
    return (time.perf_counter() - begun) / repeats


if __name__ == "__main__":
    main()
