"""Keep the largest entries, block by block: Algorithm 3's pruning."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from fedstruct.structure.kernels import compressed


class Rows(NamedTuple):
    """Rows of a sparse matrix: the length of each, and the entries of one after the other, sorted by column."""

    lengths: np.ndarray
    columns: np.ndarray
    values: np.ndarray


def pruned_product(
    left: csr_array, right: csr_array, row_starts: np.ndarray, column_starts: np.ndarray, budget: np.ndarray
) -> list[Rows]:
    """`left @ right`, of positive matrices, but of each block (i, j) only the `budget[i]` largest entries.

    Block i's rows begin at `row_starts[i]`, block j's columns at `column_starts[j]`. Ties go to the lower
    (row, column). Entries that are not among the largest so far are forgotten as they are computed, so that memory is
    that of the result, however large the product. The rows of each i come by themselves, so that each can go its way.

    >>> ones, all = csr_array(np.ones((2, 2))), np.array([0, 2])
    >>> joined(pruned_product(ones, ones, all, all, np.array([3])), 2).toarray().tolist()
    [[2.0, 2.0], [2.0, 0.0]]
    """
    # Importing the compiler takes a while, and most of the program does without.
    from fedstruct.structure.compiled import pruned_rows

    widths = np.diff(column_starts)
    block = np.repeat(np.arange(len(widths), dtype=np.int32), widths)
    factors = (left.indptr, left.indices, left.data, right.indptr, right.indices, right.data)
    return [
        Rows(*pruned_rows(first, last, *factors, block, widths, int(most)))
        for (first, last), most in zip(pairwise(row_starts), budget, strict=True)
    ]


def joined(rows: Sequence[Rows], width: int) -> csr_array:
    """Rows on top of each other as one matrix."""
    lengths, columns, values = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    return compressed(values, columns, np.concatenate([[0], np.cumsum(lengths)]), (len(lengths), width))


def pruned(matrix: csr_array, budget: int) -> csr_array:
    """The `budget` largest entries of a matrix whose rows are sorted; ties go to the lower (row, column)."""
    if matrix.nnz <= budget:
        return matrix
    floor = np.partition(matrix.data, -budget)[-budget]
    keep = matrix.data > floor
    level = np.flatnonzero(matrix.data == floor)
    keep[level[: budget - np.count_nonzero(keep)]] = True
    count = np.concatenate([[0], np.cumsum(keep)])
    return compressed(matrix.data[keep], matrix.indices[keep], count[matrix.indptr], matrix.shape)
