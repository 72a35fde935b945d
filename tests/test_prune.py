"""Pruning by thresholds against pruning by a full sort, on input made to break it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from fedstruct.structure.prune import prune_blocks, pruned_product


def by_full_sort(matrix, row_block, column_block, budget):
    """Keep each block's largest entries, ties to the lower (row, column): sort them all, count them off."""
    coo = matrix.tocoo()
    entries = sorted(zip(-coo.data, *coo.coords, strict=True))
    left = {(i, j): b for i, b in enumerate(budget) for j in range(max(column_block, default=0) + 1)}
    kept = {}
    for value, row, column in entries:
        block = row_block[row], column_block[column]
        if left[block] > 0:
            left[block] -= 1
            kept[int(row), int(column)] = float(-value)
    return kept


def entries_of(matrix):
    """Row and column to value; the matrix must hold each position once."""
    matrix.check_format(full_check=True)
    coo = matrix.tocoo()
    found = {(int(r), int(c)): float(v) for v, r, c in zip(coo.data, *coo.coords, strict=True)}
    assert len(found) == matrix.nnz
    return found


def check(matrix, row_block, column_block, budget):
    before = matrix.copy()
    row_block, column_block, budget = (np.asarray(x, np.int64) for x in (row_block, column_block, budget))
    pruned = prune_blocks(matrix, row_block, column_block, budget)
    assert pruned.shape == matrix.shape
    assert entries_of(pruned) == by_full_sort(before, row_block, column_block, budget)
    assert entries_of(matrix) == entries_of(before), "the matrix that was given is left as it was"
    return pruned


def shuffled_within_rows(matrix, seed):
    """The same matrix with each row's entries stored in any order, as products leave them."""
    rng = np.random.default_rng(seed)
    order = np.concatenate(
        [a + rng.permutation(b - a) for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)]
    ).astype(np.int64)
    return csr_array((matrix.data[order], matrix.indices[order], matrix.indptr), shape=matrix.shape)


@st.composite
def inputs(draw):
    rows, columns = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    # Few distinct values make many ties; neighbouring floats make near-ties.
    value = st.sampled_from([0.25, 0.5, 1.0, np.nextafter(1.0, 0), 1e-300, 1e300])
    cells = draw(st.dictionaries(st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1)), value, max_size=60))
    at = np.array(list(cells), np.int64).reshape(-1, 2)
    matrix = csr_array((np.array(list(cells.values()), float), (at[:, 0], at[:, 1])), shape=(rows, columns))
    blocks = draw(st.integers(1, 4))
    number = st.integers(0, blocks - 1)
    row_block = draw(st.lists(number, min_size=rows, max_size=rows))
    column_block = draw(st.lists(number, min_size=columns, max_size=columns))
    budget = draw(st.lists(st.integers(0, 12), min_size=blocks, max_size=blocks))
    return shuffled_within_rows(matrix, draw(st.integers(0, 9))), row_block, column_block, budget


@settings(max_examples=300)
@given(inputs())
def test_pruning_keeps_what_a_full_sort_keeps(given):
    check(*given)


@pytest.mark.parametrize("budget", range(0, 27, 2))
def test_all_equal(budget):
    """5 × 5 equal entries: the first `budget` of them, row by row."""
    pruned = check(csr_array(np.full((5, 5), 0.5)), [0] * 5, [0] * 5, [budget])
    assert pruned.nnz == min(budget, 25)
    assert sorted(entries_of(pruned)) == [(i // 5, i % 5) for i in range(min(budget, 25))]


@pytest.mark.parametrize("budget", [0, 1, 299, 300, 301, 10_000])
def test_one_giant_row(budget):
    values = np.zeros((40, 300))
    values[17] = np.random.default_rng(0).integers(1, 6, 300)
    values[3, 5] = 3
    check(csr_array(values), [0] * 20 + [1] * 20, [0] * 150 + [1] * 150, [budget, budget])


def test_empty_blocks_beside_full_ones():
    values = np.zeros((6, 6))
    values[0:2, 4:6] = 1
    values[4:6, 0:2] = [[1, 2], [2, 1]]
    blocks = [0, 0, 1, 1, 2, 2]
    assert entries_of(check(csr_array(values), blocks, blocks, [1, 1, 2])) == {(0, 4): 1, (4, 1): 2, (5, 0): 2}


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3), (3, 3)])
def test_a_matrix_without_entries(shape):
    assert check(csr_array(shape), [0] * shape[0], [0] * shape[1], [0]).nnz == 0


@pytest.mark.parametrize("more", [0, 1, 1000])
def test_a_budget_of_the_block_or_larger_drops_nothing(more):
    matrix = csr_array(np.random.default_rng(0).integers(0, 3, (8, 8)).astype(float))
    pruned = check(matrix, [0] * 8, [0] * 4 + [1] * 4, [matrix.nnz + more])
    assert pruned.nnz == matrix.nnz


def test_a_budget_of_nothing_drops_all():
    assert check(csr_array(np.ones((4, 4))), [0, 0, 1, 1], [0, 1, 2, 3], [0, 0]).nnz == 0


@pytest.mark.parametrize("seed", range(3))
def test_many_blocks_of_ties(seed):
    """More blocks than 8-bit numbers count, and more than 16-bit ones once squared."""
    rng = np.random.default_rng(seed)
    matrix = csr_array((rng.integers(1, 4, 4000) / 4, (rng.integers(0, 300, 4000), rng.integers(0, 300, 4000))))
    matrix.sum_duplicates()
    blocks = np.sort(rng.integers(0, 270, matrix.shape[0]))
    columns = np.sort(rng.integers(0, 270, matrix.shape[1]))
    pruned = check(shuffled_within_rows(matrix, seed), blocks, columns, rng.integers(0, 4, 270))
    assert 0 < pruned.nnz < matrix.nnz


def test_few_large_blocks_of_ties():
    rng = np.random.default_rng(9)
    matrix = csr_array(rng.integers(0, 3, (200, 200)) / 2)
    half = [0] * 100 + [1] * 100
    pruned = check(shuffled_within_rows(matrix, 9), half, half, [1234, 5])
    assert pruned.nnz == 2 * (1234 + 5)


@given(st.data())
def test_a_product_pruned_in_pieces_is_the_product_pruned_whole(data):
    """However few entries are multiplied out at a time, and however many of them tie."""
    rows, inner, columns = (data.draw(st.integers(1, 12)) for _ in range(3))
    seed = data.draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    left, right = (
        csr_array((random.random(shape) < 0.4) * random.integers(1, 3, shape).astype(float))
        for shape in ((rows, inner), (inner, columns))
    )
    row_block = np.sort(random.integers(0, 3, rows))
    column_block = np.sort(random.integers(0, 3, columns))
    budget = random.integers(0, 8, 3)
    whole = prune_blocks((left @ right).tocsr(), row_block, column_block, budget)
    pieces = pruned_product(left, right, row_block, column_block, budget, at_once=data.draw(st.integers(1, 40)))
    assert entries_of(pieces) == entries_of(whole)
