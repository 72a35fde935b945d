"""The loops that write numbers in few bytes, compiled when they are first called.

Whole numbers increase in each row and take a byte for 7 bits. A number is written as what lies between it and the one
before it, less one; the first of a row, and each number that stands `apart`, as it is.
"""

from __future__ import annotations

import numpy as np

from fedstruct.compiling import compiled

OUT_OF_ORDER, CUT_SHORT, TOO_LONG, OUT_OF_RANGE = -1, -2, -3, -4
"""Numbers do not increase; or bytes end too soon, are more than a number needs, or tell one that is too large."""


@compiled
def write(values, lengths, apart, raw):
    """Write these rows to where there is room for five bytes a number: how many they took, or OUT_OF_ORDER."""
    end, at = 0, 0
    for row in range(len(lengths)):
        last = -1
        for value in values[at : at + lengths[row]]:
            gap = value - last - 1
            if gap < 0:
                return OUT_OF_ORDER
            last = -1 if apart else value
            while gap >= 128:
                raw[end] = gap & 127 | 128
                gap >>= 7
                end += 1
            raw[end] = gap
            end += 1
        at += lengths[row]
    return end


@compiled
def read(raw, lengths, apart, below, values):
    """Read these rows, of numbers below a bound: how many bytes they took, or what is wrong with them."""
    end, at, size = 0, 0, len(raw)
    for row in range(len(lengths)):
        last = -1
        for _ in range(lengths[row]):
            if end == size:
                return CUT_SHORT
            gap = np.int64(raw[end])
            end += 1
            if gap >= 128:
                gap, shift, byte = gap & 127, 7, 128
                while byte >= 128:
                    if end == size:
                        return CUT_SHORT
                    if shift > 28:
                        return TOO_LONG
                    byte = np.int64(raw[end])
                    gap |= (byte & 127) << shift
                    shift += 7
                    end += 1
                if byte == 0:
                    return TOO_LONG
            last += gap + 1
            if last >= below:
                return OUT_OF_RANGE
            values[at] = last
            last = -1 if apart else last
            at += 1
    return end


@compiled
def round_to_halves(values, scaled, bits, halves):
    """The bits of halves, from the scaled values and their bits: to the nearest, a tie to the even one.

    Values that are not zero do not become zero, and none reaches 2^15.
    """
    for at in range(len(values)):
        size = bits[at] & 0x7FFFFFFFFFFFFFFF
        if size >= 1009 << 52:  # 2^-14: from here on, halves have 11 significant bits of the 53
            half = min((size + ((1 << 41) - 1) + (size >> 42 & 1) >> 42) - (1008 << 10), 0x77FF)
        else:
            half = max(int(np.rint(abs(scaled[at]) * 2.0**24)), int(values[at] != 0))
        halves[at] = half | (bits[at] >> 63 & 1) << 15
