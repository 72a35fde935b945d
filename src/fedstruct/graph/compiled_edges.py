"""The loops that draw the edges of a synthetic graph.

An edge's ends are a function of its number, so it is drawn again wherever it is needed, instead of being kept.
"""

from __future__ import annotations

import numpy as np

from fedstruct.compiling import compiled, part


@part
def hashed(number):
    """64 bits that look drawn at random; the last steps of splitmix64."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@compiled
def alias_table(members, first, weights):
    """Vose's alias method for each class: at each place a threshold, a node and another one, which may be the same.

    A place drawn uniformly among those of a class gives its first node, where 32 more random bits are below the
    threshold, and else its second: each node of the class in proportion to its weight.
    """
    table = np.empty((len(members), 3), np.uint32)
    for c in range(len(first) - 1):
        begin, size = first[c], first[c + 1] - first[c]
        share = weights[members[begin : begin + size]]
        share = share * (size / share.sum())
        # Those below the mean from the left, those above it from the right.
        waiting, few, many = np.empty(size, np.int32), 0, size
        for i in range(size):
            if share[i] < 1:
                waiting[few] = i
                few += 1
            else:
                many -= 1
                waiting[many] = i
        for i in range(size):
            table[begin + i, 0] = np.uint32(0xFFFFFFFF)
            table[begin + i, 1] = table[begin + i, 2] = members[begin + i]
        while few > 0 and many < size:
            few -= 1
            small, large = waiting[few], waiting[many]
            table[begin + small, 0] = np.uint32(min(share[small] * 4294967296.0, 4294967295.0))
            table[begin + small, 2] = members[begin + large]
            share[large] -= 1 - share[small]
            if share[large] < 1:
                many += 1
                waiting[few] = large
                few += 1
    return table


@part
def other_end(edge, label, key, homophily, first, until, table):
    """The node that an edge from a node of this class goes to.

    `until` adds up the classes' weights; class c's places in the table begin at `first[c]`.
    """
    choice = hashed(key + np.uint64(2 * edge))
    spot = hashed(key + np.uint64(2 * edge + 1))
    at = (choice >> np.uint64(11)) * 2.0**-53
    if at >= homophily:
        own = until[label + 1] - until[label]
        rest = (at - homophily) / (1 - homophily) * (until[-1] - own)
        if rest >= until[label]:
            rest += own
        label = min(np.searchsorted(until, rest, side="right") - 1, len(first) - 2)
    size = np.uint64(first[label + 1] - first[label])
    place = first[label] + np.int64(((spot >> np.uint64(32)) * size) >> np.uint64(32))
    below = np.uint32(spot & np.uint64(0xFFFFFFFF)) < table[place, 0]
    return np.int64(table[place, 1] if below else table[place, 2])


@compiled
def edge_ends(counts, labels, draw):
    """How many ends of edges each node has, where node u begins `counts[u]` edges; repeated edges count again."""
    key, homophily, first, until, table = draw
    ends = np.zeros(len(counts), np.int32)
    edge = 0
    for u in range(len(counts)):
        for _ in range(counts[u]):
            v = other_end(edge, labels[u], key, homophily, first, until, table)
            edge += 1
            if u != v:
                ends[u] += 1
                ends[v] += 1
    return ends


@compiled
def neighbours(begin, ends, counts, labels, draw):
    """The neighbours of the `len(ends)` nodes from `begin` on, each once and in order, and how many each node has."""
    key, homophily, first, until, table = draw
    end = begin + len(ends)
    start = np.zeros(len(ends) + 1, np.int64)
    for i in range(len(ends)):
        start[i + 1] = start[i] + ends[i]
    at, found = start[:-1].copy(), np.empty(start[-1], np.int32)
    edge = 0
    for u in range(len(counts)):
        for _ in range(counts[u]):
            v = other_end(edge, labels[u], key, homophily, first, until, table)
            edge += 1
            if u == v:
                continue
            if begin <= u < end:
                found[at[u - begin]] = v
                at[u - begin] += 1
            if begin <= v < end:
                found[at[v - begin]] = u
                at[v - begin] += 1
    kept, lengths = 0, np.zeros(len(ends), np.int32)
    for i in range(len(ends)):
        row = found[start[i] : start[i + 1]]
        row.sort()
        for j in range(len(row)):
            if j == 0 or row[j] != row[j - 1]:
                # Never beyond what was read: the rows before have lost entries, or none.
                found[kept] = row[j]
                kept += 1
                lengths[i] += 1
    return lengths, found[:kept]
