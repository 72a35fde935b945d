"""Floating values in 16 bits each: IEEE halves, and one power of two for the array.

The power brings the largest value to between 2^14 and 2^15. A half has 11 significant bits down to 2^-14, so that what
is read differs from what was written by at most 2^-11 of itself or, where that is more, 2^-37 of the largest value,
however large or small the values are. Zero stays zero, and nothing else becomes zero. An array has one form only.
"""

from __future__ import annotations

from functools import cache
from math import frexp, isfinite, ldexp
from typing import Any

import numpy as np

from fedstruct.errors import RefusedMessage

POWERS = {"<f4": range(-113, 126), "<f8": range(-1009, 1051)}
"""The powers with which no half is infinite in this type, nor too small for it; what would need another is exact."""

SIGN, FULL, TOP, INFINITE = 0x8000, 0x7400, 0x7800, 0x7C00
"""The sign, 2^14, 2^15 and infinity as the bits of halves; without sign, these are in the order of the values."""


def halved(values: np.ndarray, where: str) -> tuple[int, np.ndarray]:
    """The power of these values, and the bits of the halves; `where` names them.

    >>> power, bits = halved(np.array([1e100, -1.0, 0.0]), "x")
    >>> power, restored(power, bits, np.dtype("<f8"), "x").tolist()
    (-318, [9.99641932810986e+99, -3.1828687130226345e+88, 0.0])
    """
    # The compiler is imported where it is needed: runs in full precision do without.
    from fedstruct.federation.compiled import round_to_halves

    powers = POWERS[values.dtype.str]
    most = float(max(values.max(), -values.min())) if values.size else 0.0
    if not isfinite(most):
        raise RefusedMessage(f"{where} holds NaN or infinity")
    power = min(15 - frexp(most)[1], powers[-1]) if most else powers[-1]
    if np.float16(ldexp(most, power)) == 2**15:
        power -= 1
    power = max(power, powers[0])
    flat = values.astype(np.float64, copy=False).ravel()
    scaled = np.ldexp(flat, power)
    bits = np.empty(len(flat), np.uint16)
    round_to_halves(flat, scaled, scaled.view(np.int64), bits)
    return power, bits


def restored(power: int, bits: np.ndarray, dtype: np.dtype[Any], where: str) -> np.ndarray:
    """The values of the halves with these bits, if they are what `halved` makes."""
    powers = POWERS[dtype.str]
    most = int((bits & ~np.uint16(SIGN)).max(initial=0))
    if most >= INFINITE:
        raise RefusedMessage(f"{where} holds NaN or infinity")
    if power not in powers or most >= TOP or (most < FULL and power != powers[-1]):
        raise RefusedMessage(f"{where} has the power {power}, which does not fit its values")
    values: np.ndarray = _every_half(dtype)[bits]
    np.ldexp(values, -power, out=values)
    return values


@cache
def _every_half(dtype: np.dtype[Any]) -> np.ndarray:
    """The values of all halves by their bits: looking them up is faster than converting them."""
    with np.errstate(invalid="ignore"):
        return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(dtype)
