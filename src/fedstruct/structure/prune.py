"""Keep the largest entries, block by block: Algorithm 3's pruning."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from fedstruct.structure.kernels import compressed, entry_rows, stacked


def pruned_product(
    left: csr_array,
    right: csr_array,
    row_block: np.ndarray,
    column_block: np.ndarray,
    budget: np.ndarray,
    at_once: int = 1 << 24,
) -> csr_array:
    """`prune_blocks(left @ right)`, some rows at a time, so that a hub does not fill the memory.

    A block's largest entries are among the largest of each piece of it; so pieces are pruned first, then the whole. No
    more than `at_once` entries are multiplied out at a time, if a single row does not hold more.
    """
    work = np.concatenate([[0], np.cumsum(left.astype(bool).astype(np.int64) @ np.diff(right.indptr))])
    cuts = [0]
    while cuts[-1] < left.shape[0]:
        last = int(np.searchsorted(work, work[cuts[-1]] + at_once, side="right")) - 1
        cuts.append(max(last, cuts[-1] + 1))
    pieces = [
        prune_blocks((left[a:b] @ right).tocsr(), row_block[a:b], column_block, budget) for a, b in pairwise(cuts)
    ]
    if len(pieces) == 1:
        return pieces[0]
    return prune_blocks(stacked(pieces), row_block, column_block, budget)


def prune_blocks(matrix: csr_array, row_block: np.ndarray, column_block: np.ndarray, budget: np.ndarray) -> csr_array:
    """Keep in each block (i, j) its `budget[i]` largest entries; ties go to the lower (row, column).

    `row_block` and `column_block` give the block of each row and column, numbered from 0.
    """
    blocks = int(column_block.max(initial=0)) + 1
    rows = entry_rows(matrix)
    group = row_block[rows] * blocks + column_block[matrix.indices]
    size = np.bincount(group, minlength=len(budget) * blocks)
    room = np.repeat(budget, blocks)
    if (size <= room).all():
        return matrix

    # Sort by value, then by block: the entry at the end of a block's budget is its threshold.
    order = np.argsort(-matrix.data)
    order = order[np.argsort(group[order].astype(_smallest(size.size)), kind="stable")]
    start = np.cumsum(size) - size
    last = np.minimum(size, room) - 1
    threshold = np.full(size.size, np.inf)
    held = last >= 0
    threshold[held] = matrix.data[order[(start + last)[held]]]

    above = matrix.data > threshold[group]
    level = np.flatnonzero(matrix.data == threshold[group])
    level = level[np.lexsort((matrix.indices[level], rows[level], group[level]))]
    quota = (last + 1) - np.bincount(group[above], minlength=size.size)
    many = np.bincount(group[level], minlength=size.size)
    rank = np.arange(level.size) - np.repeat(np.cumsum(many) - many, many)
    keep = above
    keep[level[rank < quota[group[level]]]] = True
    return _kept(matrix, keep)


def _kept(matrix: csr_array, keep: np.ndarray) -> csr_array:
    count = np.concatenate([[0], np.cumsum(keep)])
    return compressed(matrix.data[keep], matrix.indices[keep], count[matrix.indptr], matrix.shape)


def _smallest(groups: int) -> type[np.unsignedinteger]:
    """numpy sorts 16-bit numbers by radix, in linear time."""
    return np.uint16 if groups <= 1 << 16 else np.uint32
