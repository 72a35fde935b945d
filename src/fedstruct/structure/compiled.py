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
def cut(values, places, budget, scratch):
    """Move the `budget` largest of a block's entries to its front; of equal ones those at the lower places.

    Gives back the least of them, its value and its place: whatever comes later must come before it.
    """
    size = len(values)
    scratch[0, :size] = values
    floor = nth_largest(scratch[0, :size], scratch[1], budget - 1)
    above, level, equals = 0, 0, scratch.view(np.int64)
    for t in range(size):
        equals[0, level] = -places[t]
        above += values[t] > floor
        level += values[t] == floor
    last = -nth_largest(equals[0, :level], equals[1], budget - above - 1)
    kept = 0
    for t in range(size):
        value, place = values[t], places[t]
        values[kept], places[kept] = value, place
        kept += (value > floor) | ((value == floor) & (place <= last))
    return floor, last


@part
def thinned(values, places, budget, sample):
    """Move a block's entries above a floor to its front, where a sample finds a floor that leaves at least `budget`.

    Gives back how many there are, and the floor: cheaper than the exact cut, of which only the last must be.
    """
    size, drawn = len(values), len(sample)
    if size < 8 * drawn:
        return size, 0.0
    for t in range(drawn):
        value, at = values[t * size // drawn], t
        while at > 0 and sample[at - 1] < value:
            sample[at] = sample[at - 1]
            at -= 1
        sample[at] = value
    floor = sample[min(drawn * budget // size + drawn // 10, drawn - 1)]
    above = 0
    for value in values:
        above += value > floor
    if above < budget:
        return size, 0.0
    kept = 0
    for t in range(size):
        value, place = values[t], places[t]
        values[kept], places[kept] = value, place
        kept += value > floor
    return kept, floor


@compiled
def pruned_rows(first, last, left_at, left_columns, left, right_at, right_columns, right, block, widths, budget):
    """The pruned blocks of rows `first` to `last` of a product: the length of each row, its columns and values.

    Rows are multiplied out one by one. What exceeds the floor of its block joins the block's buffer, which has room
    for twice the budget; a full buffer is cut, and the floor rises. An entry's place is its row above its column, 32
    bits each. Where no branch depends on an entry, it is because none could be predicted.
    """
    work = 0
    for e in range(left_at[first], left_at[last]):
        work += right_at[left_columns[e] + 1] - right_at[left_columns[e]]
    start = np.zeros(len(widths) + 1, np.int64)
    for j in range(len(widths)):
        start[j + 1] = start[j] + min(2 * budget, (last - first) * widths[j], work)
    values, places = np.empty(start[-1]), np.empty(start[-1], np.int64)
    scratch, sample = np.empty((2, np.diff(start).max())), np.empty(41)
    end = start[:-1].copy()
    floor, position = np.full(len(widths), 0.0 if budget > 0 else np.inf), np.full(len(widths), -1, np.int64)

    width = len(block)
    # One more than there are columns: what is written there before it is known not to count.
    total, touched, reached = np.zeros(width), np.empty(width + 1, np.int32), np.empty(width + 1)
    for row in range(first, last):
        count = 0
        for e in range(left_at[row], left_at[row + 1]):
            u, weight = left_columns[e], left[e]
            for f in range(right_at[u], right_at[u + 1]):
                column = right_columns[f]
                before = total[column]
                total[column] = before + weight * right[f]
                touched[count] = column
                count += (before == 0) & (total[column] != 0)
        passed = 0
        for t in range(count):
            column = touched[t]
            value = total[column]
            total[column] = 0
            touched[passed], reached[passed] = column, value
            passed += value >= floor[block[column]]
        for t in range(passed):
            value, place, j = reached[t], (row - first) << 32 | touched[t], block[touched[t]]
            if value > floor[j] or (value == floor[j] and place < position[j]):
                values[end[j]], places[end[j]] = value, place
                end[j] += 1
                size = end[j] - start[j]
                if end[j] == start[j + 1] and size > budget:
                    kept, low = thinned(values[start[j] : end[j]], places[start[j] : end[j]], budget, sample)
                    if 4 * kept <= 3 * size:
                        floor[j], position[j], end[j] = low, -1, start[j] + kept
                    else:
                        whole = slice(start[j], start[j] + kept)
                        floor[j], position[j] = cut(values[whole], places[whole], budget, scratch)
                        end[j] = start[j] + budget

    lengths, up_to = np.zeros(last - first, np.int32), np.zeros(width + 1, np.int64)
    for j in range(len(widths)):
        if end[j] - start[j] > budget:
            whole = slice(start[j], end[j])
            cut(values[whole], places[whole], budget, scratch)
            end[j] = start[j] + budget
        for t in range(start[j], end[j]):
            lengths[places[t] >> 32] += 1
            up_to[(places[t] & 0xFFFFFFFF) + 1] += 1
    # In the order of columns, then from there into the rows: sorted, whatever the length of a row.
    up_to = np.cumsum(up_to)
    by_column = np.empty(up_to[-1], np.int64)
    for j in range(len(widths)):
        for t in range(start[j], end[j]):
            column = places[t] & 0xFFFFFFFF
            by_column[up_to[column]] = t
            up_to[column] += 1
    at = np.cumsum(lengths) - lengths
    kept_columns, kept_values = np.empty(len(by_column), np.int32), np.empty(len(by_column))
    for t in by_column:
        row = places[t] >> 32
        kept_columns[at[row]], kept_values[at[row]] = places[t] & 0xFFFFFFFF, values[t]
        at[row] += 1
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
