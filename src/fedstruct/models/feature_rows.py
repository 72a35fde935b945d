"""Tables of features on top of each other, none of them copied: rows are taken out where they are needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import issparse

from fedstruct.graph.graph import Features
from fedstruct.structure.kernels import stacked


class FeatureRows:
    """
    >>> both = FeatureRows([np.zeros((2, 1)), np.ones((3, 1))])
    >>> both.shape, both[np.array([1, 2, 4])].tolist()
    ((5, 1), [[0.0], [1.0], [1.0]])
    """

    def __init__(self, tables: Sequence[Features]) -> None:
        self._tables = tables
        self._starts = np.cumsum([0, *(table.shape[0] for table in tables)])
        self.shape: tuple[int, int] = int(self._starts[-1]), tables[0].shape[1]

    def __getitem__(self, rows: np.ndarray) -> Features:
        """These rows, which are in order, as one table."""
        bounds = np.searchsorted(rows, self._starts)
        pieces = [
            table[rows[a:b] - start] if b - a < table.shape[0] else table
            for table, start, a, b in zip(self._tables, self._starts, bounds, bounds[1:], strict=False)
        ]
        return stacked(pieces) if issparse(pieces[0]) else np.concatenate(pieces)
