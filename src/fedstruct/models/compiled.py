"""The loop of dropout, compiled when it is first called: one pass, where arrays would take ten."""

from __future__ import annotations

import numpy as np

from fedstruct.structure.compiled import compiled


@compiled
def kept_above_zero(values, rows, units, least, share):
    """Values above zero, divided by `share`, where the hash of row and unit is at least `least`; zero elsewhere."""
    kept = np.empty_like(values)
    for r in range(len(rows)):
        for c in range(len(units)):
            mixed = rows[r] ^ units[c]
            mixed = np.uint32((mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x7FEB352D))
            mixed = np.uint32((mixed ^ (mixed >> np.uint32(15))) * np.uint32(0x846CA68B))
            mixed = mixed ^ (mixed >> np.uint32(16))
            value = values[r, c]
            kept[r, c] = value / share if (value > 0) & (mixed >= least) else 0
    return kept
