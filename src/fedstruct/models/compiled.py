"""The loops of models, compiled when they are first called: one pass, where arrays would take ten."""

from __future__ import annotations

from functools import partial

import numpy as np
from llvmlite import ir
from numba import prange, types
from numba.core.cgutils import get_item_pointer, get_or_insert_function
from numba.extending import intrinsic

from fedstruct.compiling import compiled

AHEAD = 64
"""How many entries before its turn a row is asked of the memory; half of it costs a third more, and twice as much saves
nothing."""


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


@intrinsic
def prefetch(context, array, row):
    """Ask the memory for a row that will soon be read: rows of neighbours lie anywhere, and waiting is all the cost."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        made = context.make_array(kind)(context, builder, arguments[0])
        at = [arguments[1], context.get_constant(types.intp, 0)]
        byte, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = builder.bitcast(get_item_pointer(context, builder, kind, made, at), byte)
        asks = ir.FunctionType(ir.VoidType(), [byte, whole, whole, whole])
        function = get_or_insert_function(builder.module, asks, "llvm.prefetch.p0i8")
        builder.call(function, [pointer, whole(0), whole(3), whole(1)])  # to read, to keep, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@partial(compiled, parallel=True)
def neighbour_sums(indptr, indices, weights, values, sums):
    """Each row's own values and those of the rows that it names; rows are summed by themselves, in any thread.

    Weights are None where all are 1. The values may have more columns than the sums.
    """
    for row in prange(len(sums)):
        for c in range(sums.shape[1]):
            sums[row, c] = values[row, c]
        for e in range(indptr[row], indptr[row + 1]):
            if e + AHEAD < len(indices):
                prefetch(values, indices[e + AHEAD])
            for c in range(sums.shape[1]):
                if weights is None:
                    sums[row, c] += values[indices[e], c]
                else:
                    sums[row, c] += weights[e] * values[indices[e], c]
