"""Products with Â over the whole graph: put together from parts, and the same by torch and by the compiled loops."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import fedstruct as fs
from fedstruct.graph.party_graph import Border
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


@pytest.mark.parametrize("weighted", [False, True])
def test_one_adjacency_takes_any_widths_in_turn(weighted):
    """What it keeps for the next product is as wide as the widest so far."""
    graph = fs.generate.planted(nodes=40, seed=1)
    if weighted:
        graph = replace(graph, adjacency=graph.adjacency * 2.5)
    parts = fs.partition.random(graph, parties=3)
    adjacency = NormalisedAdjacency(together(parts.parties), torch.float64, many=0)
    dense, rng = row_normalised(looped(parts)), np.random.default_rng(0)
    for width in (1, 9, 3, 17, 1):
        there, back = rng.normal(size=(2, 40, width))
        np.testing.assert_allclose(adjacency.forward(torch.from_numpy(there)).numpy(), dense @ there, atol=1e-12)
        np.testing.assert_allclose(adjacency.backward(torch.from_numpy(back)).numpy(), dense.T @ back, atol=1e-12)


def shuffled(own, seed=0):
    """The same party with its border edges in another order, each border in its own."""
    rng = np.random.default_rng(seed)

    def mixed(border):
        order = rng.permutation(len(border))
        return Border(border.own[order], border.peer[order], border.node[order], border.weight[order])

    outgoing = mixed(own.outgoing)
    return replace(own, outgoing=outgoing, incoming=mixed(own.incoming) if own.directed else outgoing)


@given(partitions())
def test_border_edges_may_stand_in_any_order(parts):
    owns = [shuffled(own, seed) for seed, own in enumerate(parts.parties)]
    found = together(owns).normalised().toarray()
    np.testing.assert_allclose(found, row_normalised(looped(parts)), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("carry", ["structure", "features"])
def test_whole_runs_take_border_edges_in_any_order(weighted, carry):
    graph = fs.split(fs.generate.planted(nodes=90, degree=6, seed=2), seed=0)
    if weighted:
        weights = np.random.default_rng(0).uniform(1, 3, graph.adjacency.shape)
        graph = replace(graph, adjacency=csr_array(graph.adjacency.multiply(weights + weights.T)))
    parts = fs.partition.random(graph, parties=3, seed=1)
    mixed = replace(parts, parties=tuple(shuffled(own, seed) for seed, own in enumerate(parts.parties)))
    assert any((np.diff(own.outgoing.own) < 0).any() for own in mixed.parties)
    method = fs.methods.FedStruct(structure="propagated", carry=carry, rounds=3, layers_structure=3, dtype="float64")
    expected, *found = [
        fs.run(method, some, seed=0, separate=separate)
        for some, separate in [(parts, False), (mixed, False), (mixed, True)]
    ]
    for result in found:
        np.testing.assert_allclose(result.trained.scores, expected.trained.scores, rtol=1e-9, equal_nan=True)
        np.testing.assert_array_equal(result.trained.confusion, expected.trained.confusion)


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
from fedstruct.models.compiled import neighbour_sums

rows = 2_000
starts, ones = np.arange(rows + 1, dtype=np.int32) * 50, np.ones((rows, 4))
columns = np.random.default_rng(0).integers(rows, size=50 * rows, dtype=np.int32)
right = []

def summed(weights):
    sums = np.empty_like(ones)
    for _ in range(300):
        neighbour_sums(starts, columns, weights, ones, sums)
    right.append((sums == 51).all())

threads = [
    threading.Thread(target=summed, args=(weights,)) for weights in (None, None, np.ones(len(columns)))
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
