"""Whole numbers that increase, as what lies between them, in as few bytes as that takes: 7 bits in each byte.

Every list of numbers has one form and no other, so that what is read is what was written.
"""

from __future__ import annotations

import numpy as np

from fedstruct.errors import RefusedMessage

# The compiler is imported where it is needed: most conversations send no such numbers.


def packed(values: np.ndarray, lengths: np.ndarray, apart: bool, where: str) -> np.ndarray:
    """These numbers as bytes; `where` names them.

    They increase within rows of these lengths; those that stand apart need not, and are written as they are.

    >>> packed(np.array([3, 4, 300, 1], np.int32), np.array([3, 1]), False, "x").tolist()
    [3, 0, 167, 2, 1]
    """
    from fedstruct.federation.compiled import OUT_OF_ORDER, write

    if lengths.sum(dtype=np.int64) != len(values) or (lengths < 0).any():
        raise TypeError(f"{where} has {len(values)} numbers, but its rows have others")
    raw = np.empty(5 * len(values), np.uint8)
    took: int = write(values, lengths, apart, raw)
    if took == OUT_OF_ORDER:
        raise TypeError(f"{where} holds numbers that are negative, or do not increase")
    return raw[:took]


def unpacked(
    raw: memoryview, lengths: np.ndarray, apart: bool, count: int, below: int, where: str
) -> tuple[np.ndarray, int]:
    """The numbers that these bytes begin with, and how many bytes that were; each must be below the bound.

    >>> unpacked(memoryview(bytes([3, 0, 167, 2, 1, 9])), np.array([3, 1]), False, 4, 301, "x")
    (array([  3,   4, 300,   1], dtype=int32), 5)
    """
    from fedstruct.federation.compiled import CUT_SHORT, OUT_OF_RANGE, TOO_LONG, read

    if lengths.sum(dtype=np.int64) != count:
        raise RefusedMessage(f"{where} has {count} entries, and its rows have others: they do not match")
    values = np.empty(count, np.int32)
    took: int = read(np.frombuffer(raw, np.uint8), lengths, apart, below, values)
    wrong = {
        CUT_SHORT: "is cut short",
        TOO_LONG: "holds a number in more bytes than it needs",
        OUT_OF_RANGE: f"holds a number outside 0 to {below - 1}",
    }
    if took in wrong:
        raise RefusedMessage(f"{where} {wrong[took]}")
    return values, took
