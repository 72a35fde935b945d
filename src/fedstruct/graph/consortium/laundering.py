"""Laundering: who takes part, and the payments that go through their hands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedstruct.graph.consortium.accounts import Accounts
from fedstruct.graph.consortium.patterns import cut_into_patterns, paid_along
from fedstruct.graph.consortium.payments import Payments

MOVED, MOVED_SPREAD = 4500.0, 0.5
THRESHOLD = 9900.0
"""Payments stay below what must be reported."""


def recruited(accounts: Accounts, count: int, tell: float, random: np.random.Generator) -> np.ndarray:
    """The accounts that take part: `tell` is by how much a standard deviation of risk adds to the logarithm of odds."""
    chance = tell * accounts.risk() + random.gumbel(size=accounts.count)
    return np.sort(np.argsort(-chance, kind="stable")[:count])


def laundering(
    accounts: Accounts, recruits: np.ndarray, span: float, days: int, random: np.random.Generator
) -> Iterator[Payments]:
    """Their payments, pattern by pattern; their ordinary life goes on beside it."""
    for pattern in cut_into_patterns(recruits, accounts.bank, span, random):
        yield paid_along(pattern, accounts, MOVED, MOVED_SPREAD, days, random, at_most=THRESHOLD)
