"""Nodes side by side: those of one party, or of several that step as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from fedstruct.graph.graph import UNUSED
from fedstruct.graph.party_graph import PartyGraph
from fedstruct.models.dropout import row_keys
from fedstruct.models.feature_rows import FeatureRows
from fedstruct.structure.kernels import block_diagonal


@dataclass(frozen=True, eq=False)
class View:
    """What a step computes on: inner adjacencies as one block-diagonal matrix, nodes on top of each other.

    No node of one party touches another's here, so that sums over a view are the sums of the parties' own.
    """

    inner: csr_array
    """Inner edges, of all the parties."""
    features: FeatureRows
    labels: np.ndarray
    split: np.ndarray
    keys: np.ndarray
    """Names each node to dropout."""
    classes: int

    @classmethod
    def of(cls, own: Sequence[PartyGraph]) -> View:
        return cls(
            inner=block_diagonal([g.inner for g in own]),
            features=FeatureRows([g.features for g in own]),
            labels=np.concatenate([g.labels for g in own]),
            split=np.concatenate([np.zeros(g.nodes, np.int8) if g.split is None else g.split for g in own]),
            keys=row_keys([g.name for g in own], [g.nodes for g in own]),
            classes=own[0].classes,
        )

    def known(self, split: int) -> np.ndarray:
        """The nodes of one split whose label is known."""
        return np.flatnonzero((self.split == split) & (self.labels >= 0))

    @property
    def judged(self) -> np.ndarray:
        """The nodes of any split whose label is known."""
        return np.flatnonzero((self.split != UNUSED) & (self.labels >= 0))
