"""The loops of the structure exchange, compiled when they are first called.

Sums are added in the order in which scipy adds them, so that they agree with its products to the last bit.
"""

from __future__ import annotations

import numpy as np

from fedstruct.compiling import compiled, part


@part
def nth_largest(values, spare, n):
    """The n-th largest of the values, counted from 0, by quickselect. Overwrites both arrays.

    No branch depends on a comparison, since none could be predicted.
    """
    while True:
        pivot = values[len(values) // 2]
        more, less, last = 0, 0, len(values) - 1
        for v in values:
            spare[more] = v
            spare[last - less] = v
            more += v > pivot
            less += v < pivot
        if n < more:
            values, spare = spare[:more], values
        elif n > last - less:
            n -= last + 1 - less
            values, spare = spare[last + 1 - less : last + 1], values
        else:
            return pivot


@part
def cut(values, rows, columns, width, budget, scratch):
    """Move the `budget` largest of a block's entries to its front; of equal ones those first in row and column order.

    Gives back the least of them, its value and its position: whatever comes later must come before it.
    """
    size = len(values)
    scratch[0, :size] = values
    floor = nth_largest(scratch[0, :size], scratch[1], budget - 1)
    above, level = 0, 0
    for t in range(size):
        scratch[0, level] = -(rows[t] * width + columns[t])
        above += values[t] > floor
        level += values[t] == floor
    last = -nth_largest(scratch[0, :level], scratch[1], budget - above - 1)
    kept = 0
    for t in range(size):
        value, row, column = values[t], rows[t], columns[t]
        values[kept], rows[kept], columns[kept] = value, row, column
        kept += (value > floor) | ((value == floor) & (row * width + column <= last))
    return floor, last


@compiled
def pruned_rows(first, last, left_at, left_columns, left, right_at, right_columns, right, block, widths, budget):
    """The pruned blocks of rows `first` to `last` of a product: the length of each row, its columns and values.

    Rows are multiplied out one by one. What exceeds the floor of its block joins the block's buffer, which has room
    for twice the budget; a full buffer is cut to the budget, and the floor rises.
    """
    work = 0
    for e in range(left_at[first], left_at[last]):
        work += right_at[left_columns[e] + 1] - right_at[left_columns[e]]
    start = np.zeros(len(widths) + 1, np.int64)
    for j in range(len(widths)):
        start[j + 1] = start[j] + min(2 * budget, (last - first) * widths[j], work)
    values, rows, columns = np.empty(start[-1]), np.empty(start[-1], np.int64), np.empty(start[-1], np.int32)
    scratch = np.empty((2, np.diff(start).max()))
    end = start[:-1].copy()
    floor, position = np.full(len(widths), 0.0 if budget > 0 else np.inf), np.zeros(len(widths))

    width = len(block)
    total, seen, touched = np.empty(width), np.full(width, -1, np.int32), np.empty(width, np.int32)
    for row in range(first, last):
        count = 0
        for e in range(left_at[row], left_at[row + 1]):
            u, weight = left_columns[e], left[e]
            for f in range(right_at[u], right_at[u + 1]):
                column = right_columns[f]
                if seen[column] == row:
                    total[column] += weight * right[f]
                else:
                    seen[column] = row
                    total[column] = weight * right[f]
                    touched[count] = column
                    count += 1
        for t in range(count):
            column = touched[t]
            value = total[column]
            j = block[column]
            if value > floor[j] or (value == floor[j] and (row - first) * width + column < position[j]):
                at = end[j]
                values[at], rows[at], columns[at] = value, row - first, column
                end[j] += 1
                if end[j] == start[j + 1] and end[j] - start[j] > budget:
                    whole = slice(start[j], end[j])
                    floor[j], position[j] = cut(values[whole], rows[whole], columns[whole], width, budget, scratch)
                    end[j] = start[j] + budget

    lengths = np.zeros(last - first, np.int32)
    for j in range(len(widths)):
        if end[j] - start[j] > budget:
            whole = slice(start[j], end[j])
            cut(values[whole], rows[whole], columns[whole], width, budget, scratch)
            end[j] = start[j] + budget
        for t in range(start[j], end[j]):
            lengths[rows[t]] += 1
    place = np.cumsum(lengths) - lengths
    kept_columns, kept_values = np.empty(lengths.sum(), np.int32), np.empty(lengths.sum())
    for j in range(len(widths)):
        for t in range(start[j], end[j]):
            at = place[rows[t]]
            kept_columns[at], kept_values[at] = columns[t], values[t]
            place[rows[t]] += 1
    return lengths, kept_columns, kept_values


@compiled
def sums(blocks, rows, width, at, columns, values):
    """The sum of `blocks` matrices that stand on top of each other: the length of each row, its columns and values."""
    total, seen = np.empty(width), np.full(width, -1, np.int32)
    summed_columns, summed_values = np.empty(len(columns), np.int32), np.empty(len(columns))
    lengths = np.zeros(rows, np.int32)
    begin = 0
    for row in range(rows):
        end = begin
        for k in range(blocks):
            for e in range(at[k * rows + row], at[k * rows + row + 1]):
                column = columns[e]
                if seen[column] == row:
                    total[column] += values[e]
                else:
                    seen[column] = row
                    total[column] = values[e]
                    summed_columns[end] = column
                    end += 1
        for e in range(begin, end):
            summed_values[e] = total[summed_columns[e]]
        lengths[row] = end - begin
        begin = end
    return lengths, summed_columns[:begin].copy(), summed_values[:begin].copy()
