"""Sparse times dense, inside autograd."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor


class SparseMatrix:
    """A fixed sparse matrix that multiplies tensors; its transpose is kept too, once a gradient has asked for it.

    >>> from scipy.sparse import eye_array
    >>> SparseMatrix(2 * eye_array(2, format="csr"), torch.float32) @ torch.ones(2, 1)
    tensor([[2.],
            [2.]])
    """

    def __init__(self, matrix: csr_array, dtype: torch.dtype) -> None:
        self._matrix = matrix
        self._dtype = dtype
        self.forward = _tensor(matrix, dtype)

    @cached_property
    def T(self) -> Tensor:  # noqa: N802
        return _tensor(self._matrix.T.tocsr(), self._dtype)

    def __matmul__(self, dense: Tensor) -> Tensor:
        product: Tensor = _Product.apply(dense, self)  # type: ignore[no-untyped-call]
        return product


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix
        return matrix.forward @ dense

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.matrix.T @ gradients[0], None


def _tensor(matrix: csr_array, dtype: torch.dtype) -> Tensor:
    # 32-bit positions: torch's kernels are three times faster on them than scipy's, measured on 7 to 128 columns.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int32, copy=False)),
            torch.from_numpy(matrix.indices.astype(np.int32, copy=False)),
            torch.from_numpy(matrix.data).to(dtype),
            matrix.shape,
            check_invariants=False,
        )
