"""The pruned product against scipy's product and a full sort, on input made to break it."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, eye_array

from fedstruct.structure.kernels import added, compressed, stacked
from fedstruct.structure.prune import joined, pruned, pruned_product


def by_full_sort(matrix, row_starts, column_starts, budget):
    """Keep each block's largest entries, ties to the lower (row, column): sort them all, count them off."""
    coo = matrix.tocoo()
    left, kept = {}, {}
    for value, row, column in sorted(zip(-coo.data, *coo.coords, strict=True)):
        i, j = (int(np.searchsorted(s, at, "right")) - 1 for s, at in ((row_starts, row), (column_starts, column)))
        if left.setdefault((i, j), budget[i]) > 0 and value < 0:
            left[i, j] -= 1
            kept[int(row), int(column)] = float(-value)
    return kept


def entries_of(matrix):
    """Row and column to value; the matrix must hold each position once, its columns in order, in 32 bits."""
    matrix.check_format(full_check=True)
    assert matrix.has_canonical_format
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    coo = matrix.tocoo()
    return {(int(r), int(c)): float(v) for v, r, c in zip(coo.data, *coo.coords, strict=True)}


def check(left, right, row_starts, column_starts, budget):
    """The same entries, and the same values to the last bit, as the product of scipy, sorted."""
    before = [m.copy() for m in (left, right)]
    row_starts, column_starts, budget = (np.asarray(x, np.int64) for x in (row_starts, column_starts, budget))
    product = joined(pruned_product(left, right, row_starts, column_starts, budget), right.shape[1])
    assert product.shape == (left.shape[0], right.shape[1])
    assert entries_of(product) == by_full_sort((left @ right).tocsr(), row_starts, column_starts, budget)
    for matrix, was in zip((left, right), before, strict=True):
        assert (matrix != was).nnz == 0, "the matrices that were given are left as they were"
    return product


def check_matrix(values, row_starts, column_starts, budget):
    """As `check`, of a matrix that is multiplied by nothing."""
    matrix = csr_array(values)
    identity = csr_array(eye_array(matrix.shape[0]))
    return check(identity, matrix, row_starts, column_starts, budget)


def shuffled_within_rows(matrix, seed):
    """The same matrix with each row's entries stored in any order, as products leave them."""
    rng = np.random.default_rng(seed)
    order = np.concatenate(
        [np.zeros(0), *(a + rng.permutation(b - a) for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True))]
    ).astype(np.int64)
    return compressed(matrix.data[order], matrix.indices[order], matrix.indptr, matrix.shape)


def cuts(draw, length, blocks):
    """Where blocks start, and where the last one ends; some of them may be empty."""
    inner = draw(st.lists(st.integers(0, length), min_size=blocks - 1, max_size=blocks - 1))
    return [0, *sorted(inner), length]


# Few distinct values make many ties; neighbouring floats make near-ties; tiny ones make products that vanish or lose
# most of their bits, huge ones products that are infinite.
VALUE = st.sampled_from([0.25, 0.5, 1.0, np.nextafter(1.0, 0), 1e-200, 1e200, 0.1, 0.7, 5e-324, 3e-308, 1e308])


@st.composite
def matrices(draw, rows, columns):
    cell = st.tuples(st.integers(0, max(rows - 1, 0)), st.integers(0, max(columns - 1, 0)))
    cells = draw(st.dictionaries(cell, VALUE, max_size=60)) if rows and columns else {}
    at = np.array(list(cells), np.int64).reshape(-1, 2)
    matrix = csr_array((np.array(list(cells.values()), float), (at[:, 0], at[:, 1])), shape=(rows, columns))
    return shuffled_within_rows(matrix, draw(st.integers(0, 9)))


@st.composite
def products(draw):
    rows, between, columns = (draw(st.integers(0, 9)) for _ in range(3))
    row_blocks, column_blocks = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    budget = draw(st.lists(st.integers(0, 12), min_size=row_blocks, max_size=row_blocks))
    return (
        draw(matrices(rows, between)),
        draw(matrices(between, columns)),
        cuts(draw, rows, row_blocks),
        cuts(draw, columns, column_blocks),
        budget,
    )


@settings(max_examples=300)
@given(products())
def test_the_streamed_product_keeps_what_a_full_sort_keeps(given):
    check(*given)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("budget", [0, 1, 7, 60, 500, 10**6])
def test_larger_products_with_many_cuts(seed, budget):
    """Rows of many factors, values of many bits or of few, blocks of unlike sizes."""
    rng = np.random.default_rng(seed)
    value = (lambda shape: rng.random(shape)) if seed % 2 else (lambda shape: rng.integers(1, 4, shape) / 2)
    left, right = (csr_array((rng.random(s) < 0.2) * value(s)) for s in ((90, 40), (40, 120)))
    starts = [0, 10, 10, 70, 90]
    check(shuffled_within_rows(left, seed), shuffled_within_rows(right, seed), starts, [0, 1, 60, 120], [budget] * 4)


@pytest.mark.parametrize("budget", range(0, 27, 2))
def test_all_equal(budget):
    """5 × 5 equal entries: the first `budget` of them, row by row."""
    product = check_matrix(np.full((5, 5), 0.5), [0, 5], [0, 5], [budget])
    assert sorted(entries_of(product)) == [(i // 5, i % 5) for i in range(min(budget, 25))]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("budget", [1, 2, 99, 100, 101, 5000])
def test_values_that_rise_or_fall_all_the_way(budget, reverse):
    """Rising, every entry joins the buffer; falling, none does once it was cut."""
    values = np.arange(1.0, 10_001).reshape(100, 100)
    check_matrix(values[::-1, ::-1] if reverse else values, [0, 50, 100], [0, 30, 100], [budget, budget])


@pytest.mark.parametrize("drawn", [1e9, 1e-9, 0.5])
@pytest.mark.parametrize("budget", [164, 200, 1000])
def test_a_sample_that_misleads(budget, drawn):
    """What a full buffer's floor is guessed from is larger than all the rest, smaller, or all alike."""
    values = np.random.default_rng(0).permutation(10_000) + 1.0
    room = 2 * budget
    values[[t * room // 41 for t in range(41)]] = drawn
    check_matrix(values.reshape(100, 100), [0, 100], [0, 100], [budget])


@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
def test_two_values_in_a_large_block(share):
    """More than the budget are equal, and a floor above them leaves too few: the guess cannot be right."""
    values = np.where(np.random.default_rng(0).random((100, 100)) < share, 2.0, 1.0)
    for budget in (164, 400, 2500):
        check_matrix(values, [0, 100], [0, 100], [budget])


@pytest.mark.parametrize("budget", [0, 1, 299, 300, 301, 10_000])
def test_one_giant_row(budget):
    values = np.zeros((40, 300))
    values[17] = np.random.default_rng(0).integers(1, 6, 300)
    values[3, 5] = 3
    check_matrix(values, [0, 20, 40], [0, 150, 300], [budget, budget])


@pytest.mark.parametrize("budget", [0, 1, 10, 1000])
def test_a_hub(budget):
    """Every row of the product is the sum of all."""
    rng = np.random.default_rng(1)
    left, right = csr_array(np.ones((30, 30))), csr_array(rng.integers(0, 3, (30, 30)).astype(float))
    check(left, right, [0, 10, 30], [0, 15, 30], [budget, budget])


def test_empty_blocks_beside_full_ones():
    values = np.zeros((6, 6))
    values[0:2, 4:6] = 1
    values[4:6, 0:2] = [[1, 2], [2, 1]]
    starts = [0, 2, 4, 6]
    assert entries_of(check_matrix(values, starts, starts, [1, 1, 2])) == {(0, 4): 1, (4, 1): 2, (5, 0): 2}


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3), (3, 3)])
def test_a_matrix_without_entries(shape):
    assert check_matrix(np.zeros(shape), [0, shape[0]], [0, shape[1]], [4]).nnz == 0


def test_blocks_of_one_row_and_one_column():
    """One-node parties: nothing to choose, unless the budget is 0."""
    values = np.random.default_rng(0).integers(0, 3, (12, 12)).astype(float)
    budget = np.arange(12) % 3
    product = check_matrix(values, range(13), range(13), budget)
    np.testing.assert_array_equal(product.toarray(), values * (budget > 0)[:, None])


def test_an_infinite_entry_is_forgotten_in_the_next_row():
    left, right = csr_array([[1e308, 1e308], [0.25, 0.5]]), csr_array([[1e308, 1.0], [1e308, 2.0]])
    product = check(left, right, [0, 1, 2], [0, 1, 2], [1, 1])
    np.testing.assert_array_equal(product.toarray(), [[np.inf, np.inf], [0.75e308, 1.25]])


def test_entries_that_vanish_are_not_kept():
    """1e-200 squared is 0 as a float; a peer would refuse it."""
    left, right = csr_array([[1e-200, 1e-200, 1.0]]), csr_array([[1e-200, 1e-200], [1e-200, 0], [0, 1e-200]])
    assert entries_of(check(left, right, [0, 1], [0, 2], [2])) == {(0, 1): 1e-200}


@pytest.mark.parametrize("seed", range(3))
def test_many_blocks_of_ties(seed):
    rng = np.random.default_rng(seed)
    values = np.zeros((300, 300))
    values[rng.integers(0, 300, 4000), rng.integers(0, 300, 4000)] = rng.integers(1, 4, 4000) / 4
    rows, columns = ([0, *np.sort(rng.integers(0, 300, 269)), 300] for _ in range(2))
    product = check_matrix(values, rows, columns, rng.integers(0, 4, 270))
    assert 0 < product.nnz < np.count_nonzero(values)


@settings(max_examples=200)
@given(matrices(6, 6), st.integers(1, 40))
def test_pruning_a_matrix_whole(matrix, budget):
    matrix.sort_indices()
    assert entries_of(pruned(matrix, budget)) == by_full_sort(matrix, [0, 6], [0, 6], [budget])


@settings(max_examples=200)
@given(st.lists(matrices(5, 7), min_size=1, max_size=4))
def test_sums_are_added_in_the_order_of_the_blocks(blocks):
    total = np.zeros((5, 7))
    with np.errstate(over="ignore"):
        for block in blocks:
            total += block.toarray()
    found = added(stacked(blocks), len(blocks))
    found.sort_indices()
    entries_of(found)
    assert found.toarray().tobytes() == total.tobytes()
    assert found.nnz == np.count_nonzero(total)


OUTER = """
import resource
import numpy as np
from scipy.sparse import csr_array
from fedstruct.structure.prune import joined, pruned_product

def most(nodes, budget):
    ramp = np.arange(1.0, nodes + 1)
    left, right, starts = csr_array(ramp[:, None]), csr_array(ramp[None]), np.linspace(0, nodes, 5).astype(int)
    kept = joined(pruned_product(left, right, starts, starts, np.full(4, budget)), nodes)
    assert kept.nnz == 16 * budget
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

print(most(100, 10), most(8000, 2000))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory in other units")
def test_memory_is_that_of_the_result():
    """64 million entries, which would take 770 MB and come largest last, of which 32,000 are kept."""
    said = subprocess.run([sys.executable, "-c", OUTER], check=True, capture_output=True, text=True)
    before, after = map(int, said.stdout.split())
    assert after - before < 30
