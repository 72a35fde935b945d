"""One seed per run, split into named streams, so that no draw depends on what was drawn before it."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np


def key(*names: str | int) -> int:
    """A 64-bit number for a path of names: the same on every machine and in every process.

    >>> key("dropout", 3) == key("dropout", 3), key("dropout", 3) == key("dropout", 4)
    (True, False)
    """
    text = "\x1f".join(f"{type(name).__name__}:{name}" for name in names)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """The random generator of one purpose: `stream(seed, "partition")`.

    >>> int(stream(0, "split").integers(100)) == int(stream(0, "split").integers(100))
    True
    """
    return np.random.default_rng(np.random.SeedSequence([seed, key(*names)]))
