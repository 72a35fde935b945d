"""Sparse matrices of the structure: normalising, stacking, cutting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array, eye_array


def compressed(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]) -> csr_array:
    """A CSR matrix whose positions are 32-bit wherever they fit: half the memory, and what torch multiplies fastest."""
    kind = np.int32 if max(len(data), *shape) <= np.iinfo(np.int32).max else np.int64
    return csr_array((data, indices.astype(kind, copy=False), indptr.astype(kind, copy=False)), shape=shape)


def from_entries(values: np.ndarray, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> csr_array:
    """The matrix of these entries, sorted by column within each row; repeated entries add up."""
    matrix = csr_array((values, (rows, columns)), shape=shape)
    matrix.sort_indices()
    return compressed(matrix.data, matrix.indices, matrix.indptr, shape)


def with_self_loops(adjacency: csr_array) -> csr_array:
    """Ã = A + I."""
    looped = (adjacency + eye_array(adjacency.shape[0], format="csr")).tocsr()
    looped.sort_indices()
    return compressed(looped.data, looped.indices, looped.indptr, looped.shape)


def divide_rows(matrix: csr_array, divisor: np.ndarray) -> csr_array:
    """D⁻¹ M."""
    data = matrix.data / np.repeat(divisor, np.diff(matrix.indptr))
    return compressed(data, matrix.indices, matrix.indptr, matrix.shape)


def row_sums(matrix: csr_array) -> np.ndarray:
    return np.asarray(matrix.sum(axis=1)).ravel()


def normalised(adjacency: csr_array) -> csr_array:
    """Â = D̃⁻¹ (A + I)."""
    looped = with_self_loops(adjacency)
    return divide_rows(looped, row_sums(looped))


def block_diagonal(blocks: Sequence[csr_array]) -> csr_array:
    """Square matrices side by side; one concatenation, no work per entry."""
    sizes = np.array([b.shape[0] for b in blocks])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    indices = np.concatenate([b.indices for b in blocks]) + np.repeat(starts[:-1], [b.nnz for b in blocks])
    size = int(starts[-1])
    return compressed(np.concatenate([b.data for b in blocks]), indices, stacked_indptr(blocks), (size, size))


def stacked(blocks: Sequence[csr_array]) -> csr_array:
    """Matrices of one width on top of each other."""
    return compressed(
        np.concatenate([b.data for b in blocks]),
        np.concatenate([b.indices for b in blocks]),
        stacked_indptr(blocks),
        (sum(b.shape[0] for b in blocks), blocks[0].shape[1]),
    )


def stacked_indptr(blocks: Sequence[csr_array]) -> np.ndarray:
    lengths = np.concatenate([np.diff(b.indptr) for b in blocks])
    return np.concatenate([[0], np.cumsum(lengths)])


def picked(rows: np.ndarray, of: int) -> csr_array:
    """The matrix that picks these rows of another one."""
    return compressed(np.ones(len(rows)), rows, np.arange(len(rows) + 1), (len(rows), of))


def added(tall: csr_array, blocks: int) -> csr_array:
    """The sum of so many matrices that stand on top of each other, each entry added up in their order.

    A row's columns are in no order: what the sum is multiplied with needs none, and sorting would take longer.
    """
    from fedstruct.structure.compiled import sums

    rows, width = tall.shape[0] // blocks, tall.shape[1]
    lengths, columns, values = sums(blocks, rows, width, tall.indptr, tall.indices, tall.data)
    return compressed(values, columns, np.concatenate([[0], np.cumsum(lengths)]), (rows, width))


def entry_rows(matrix: csr_array) -> np.ndarray:
    """The row of each stored entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def columns_of(matrix: csr_array) -> np.ndarray:
    """The columns that hold an entry, in order."""
    touched = np.zeros(matrix.shape[1], bool)
    touched[matrix.indices] = True
    return np.flatnonzero(touched)


def onto_columns(matrix: csr_array, columns: np.ndarray) -> csr_array:
    """The same entries, with columns renumbered by their place in `columns`; entries elsewhere are left out."""
    if len(columns) == matrix.shape[1]:
        return matrix
    place = np.full(matrix.shape[1], -1, np.int32)
    place[columns] = np.arange(len(columns), dtype=np.int32)
    at = place[matrix.indices]
    if at.size and at.min() < 0:
        return matrix[:, columns]
    return compressed(matrix.data, at, matrix.indptr, (matrix.shape[0], len(columns)))
