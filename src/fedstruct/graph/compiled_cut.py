"""The loops that cut a graph: one party's rows, and what of them crosses the border."""

from __future__ import annotations

import numpy as np

from fedstruct.compiling import compiled, part

GAPS = (29524, 9841, 3280, 1093, 364, 121, 40, 13, 4, 1)


@part
def sort_together(keys, values):
    """Sort the keys, and move the values along: Shell's method, insertion over narrowing gaps.

    Most rows are short; and numpy's sorts, compiled, would take seconds to compile.
    """
    for gap in GAPS:
        for i in range(gap, len(keys)):
            key, value = keys[i], values[i]
            j = i
            while j >= gap and keys[j - gap] > key:
                keys[j], values[j] = keys[j - gap], values[j - gap]
                j -= gap
            keys[j], values[j] = key, value


@compiled
def renumbered_rows(rows, place, row_starts, columns, weights):
    """These rows of a CSR matrix, with columns renumbered by their place, and in order of it."""
    starts = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        starts[i + 1] = starts[i] + row_starts[rows[i] + 1] - row_starts[rows[i]]
    found, values = np.empty(starts[-1], np.int32), np.empty(starts[-1], weights.dtype)
    for i in range(len(rows)):
        begin, at = row_starts[rows[i]], starts[i]
        for t in range(starts[i + 1] - at):
            found[at + t] = place[columns[begin + t]]
            values[at + t] = weights[begin + t]
        sort_together(found[at : starts[i + 1]], values[at : starts[i + 1]])
    return starts, found, values


@compiled
def parted_rows(me, party_starts, row_starts, columns, weights, peer_kind):
    """Sorted rows of party `me` over everybody's nodes as inner edges and border edges.

    Inner: where rows start, columns, weights. Border: own node, peer, the peer's node, weight; a peer's position
    does not count the party itself.
    """
    first, last = party_starts[me], party_starts[me + 1]
    rows = len(row_starts) - 1
    starts = np.zeros(rows + 1, np.int64)
    for i in range(rows):
        starts[i + 1] = starts[i]
        for e in range(row_starts[i], row_starts[i + 1]):
            starts[i + 1] += first <= columns[e] < last
    inner, inner_weights = np.empty(starts[-1], np.int32), np.empty(starts[-1], weights.dtype)
    crossing = len(columns) - starts[-1]
    own, node = np.empty(crossing, np.int32), np.empty(crossing, np.int32)
    peer, border_weights = np.empty(crossing, peer_kind), np.empty(crossing, weights.dtype)
    at, out = 0, 0
    for i in range(rows):
        party = 0
        for e in range(row_starts[i], row_starts[i + 1]):
            column = columns[e]
            if first <= column < last:
                inner[at], inner_weights[at] = column - first, weights[e]
                at += 1
                continue
            while column >= party_starts[party + 1]:
                party += 1
            own[out], peer[out] = i, party - (party > me)
            node[out], border_weights[out] = column - party_starts[party], weights[e]
            out += 1
    return starts, inner, inner_weights, own, peer, node, border_weights


@compiled
def products_apart(row_starts, columns, weights, values):
    """How far A r and Aᵀ r are apart at each node, and the sum of the sizes that went into A r.

    For a square CSR matrix of any type of weights; `values` is r beside zeros, so that both of a node's numbers come
    from memory together.
    """
    apart, size = np.zeros(len(values)), np.zeros(len(values))
    for row in range(len(values)):
        # Sums of their own, which need not be written before the next number is read.
        value, forth, sizes = values[row, 0], 0.0, 0.0
        for e in range(row_starts[row], row_starts[row + 1]):
            weight, column = np.float64(weights[e]), columns[e]
            there = weight * values[column, 0]
            forth += there
            sizes += abs(there)
            values[column, 1] += weight * value
        apart[row], size[row] = forth, sizes
    for row in range(len(values)):
        apart[row] = abs(apart[row] - values[row, 1])
    return apart, size
