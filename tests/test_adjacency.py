"""Products with Â over the whole graph: put together from parts, and the same by torch and by the compiled loops."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from fedstruct.models.adjacency import NormalisedAdjacency
from fedstruct.models.feature_rows import FeatureRows
from fedstruct.structure.neighbours import together
from strategies import looped, partitions, row_normalised


@given(partitions())
def test_the_neighbours_of_all_parties_are_the_graphs(parts):
    neighbours = together(parts.parties)
    np.testing.assert_allclose(neighbours.normalised().toarray(), row_normalised(looped(parts)), rtol=1e-12)
    np.testing.assert_allclose(neighbours.degrees(), looped(parts).sum(axis=1), rtol=1e-12)
    assert neighbours.symmetric == (not parts.graph.directed)


@settings(max_examples=60)
@given(partitions(), st.sampled_from([0, 10**9]), st.integers(1, 4))
def test_products_with_the_whole_adjacency_and_its_transpose(parts, many, width):
    """From 0 edges on by the compiled loops, below a billion by torch: both are the dense product."""
    adjacency = NormalisedAdjacency(together(parts.parties), torch.float64, many)
    dense = row_normalised(looped(parts))
    values = np.random.default_rng(0).normal(size=(len(dense), width))
    given_values = torch.from_numpy(values.copy())
    np.testing.assert_allclose(adjacency.forward(given_values).numpy(), dense @ values, atol=1e-12)
    np.testing.assert_allclose(adjacency.backward(given_values).numpy(), dense.T @ values, atol=1e-12)
    np.testing.assert_array_equal(given_values.numpy(), values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_both_products_take_any_precision_and_layout(dtype):
    from fedstruct.graph import generate, partition

    parts = partition.random(generate.planted(nodes=300), parties=4)
    loops, torchs = (NormalisedAdjacency(together(parts.parties), dtype, many) for many in (0, 10**9))
    values = torch.randn(5, 300, dtype=dtype, generator=torch.Generator().manual_seed(0)).T
    for way in ("forward", "backward"):
        one, other = getattr(loops, way)(values), getattr(torchs, way)(values)
        assert one.dtype == dtype
        torch.testing.assert_close(one, other)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.booleans(), st.data())
def test_rows_of_tables_are_those_of_the_whole(sizes, sparse, data):
    whole = np.arange(3.0 * sum(sizes)).reshape(-1, 3)
    tables = np.split(whole, np.cumsum(sizes)[:-1])
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, sum(sizes) - 1)))), np.int64)
    found = FeatureRows([csr_array(t) for t in tables] if sparse else tables)[rows]
    np.testing.assert_array_equal(found.toarray() if sparse else found, whole[rows])


def test_two_threads_may_use_parallel_loops_at_once():
    """numba's own threads abort the process if they are asked twice; where there are others, no one notices."""
    typed = """
import threading
import numpy as np
from fedstruct.models.compiled import neighbour_sums, weighted_neighbour_sums

rows = 2_000
starts, ones = np.arange(rows + 1, dtype=np.int32) * 50, np.ones((rows, 4))
columns = np.random.default_rng(0).integers(rows, size=50 * rows, dtype=np.int32)
right = []

def summed(loop, *weights):
    sums = np.empty_like(ones)
    for _ in range(300):
        loop(starts, columns, *weights, ones, sums)
    right.append((sums == 51).all())

threads = [
    threading.Thread(target=summed, args=given)
    for given in [(neighbour_sums,), (neighbour_sums,), (weighted_neighbour_sums, np.ones(len(columns)))]
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(right) == 3 and all(right), right
"""
    done = subprocess.run(
        [sys.executable, "-c", typed],
        env=os.environ | {"NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
