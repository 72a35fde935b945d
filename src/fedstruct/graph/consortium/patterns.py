"""Shapes of money going round: who pays whom, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fedstruct.graph.consortium.accounts import Accounts
from fedstruct.graph.consortium.payments import Payments

Steps: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Of each transfer: the payer's place in the pattern, the payee's, and at which step it happens."""

SMALLEST = 3
MOST_DAYS_BETWEEN = 3.0
"""From one step to the next."""


def fan_in(size: int) -> Steps:
    """All pay the first.

    >>> [place.tolist() for place in fan_in(3)]
    [[1, 2], [0, 0], [0, 0]]
    """
    others = np.arange(1, size)
    return others, others * 0, others * 0


def fan_out(size: int) -> Steps:
    """The first pays all."""
    payers, first, step = fan_in(size)
    return first, payers, step


def cycle(size: int) -> Steps:
    """Each pays the next, the last the first."""
    places = np.arange(size)
    return places, (places + 1) % size, places


def layers(size: int) -> Steps:
    """One pays two, both pay the next two, and so on; the last collects."""
    layer = np.minimum((np.arange(size) + 1) // 2, size // 2)
    payer, payee = np.nonzero(layer[:, None] + 1 == layer[None, :])
    return payer, payee, layer[payer]


def ring(size: int) -> Steps:
    """A herder pays mules, each mule passes some on to the next, and all pay the account that cashes out."""
    mules = np.arange(1, size - 1)
    payer = np.concatenate([mules * 0, mules[:-1], mules])
    payee = np.concatenate([mules, mules[1:], mules * 0 + size - 1])
    return payer, payee, np.repeat([0, 1, 2], [len(mules), len(mules) - 1, len(mules)])


SHAPES: dict[Callable[[int], Steps], tuple[int, int]] = {
    fan_in: (4, 12), fan_out: (4, 12), cycle: (3, 8), layers: (4, 10), ring: (5, 10),
}  # fmt: skip
"""Each shape as likely as the next, and from how many to how many accounts it has."""


@dataclass(frozen=True, eq=False)
class Pattern:
    shape: Callable[[int], Steps]
    members: np.ndarray


def cut_into_patterns(
    members: np.ndarray, bank: np.ndarray, span: float, random: np.random.Generator
) -> Iterator[Pattern]:
    """Every member in one pattern: with probability `span` with members of any bank, else of one bank alone."""
    left = random.permutation(members)
    shapes = list(SHAPES)
    while len(left):
        shape = shapes[random.integers(len(shapes))]
        low, high = SHAPES[shape]
        size = int(random.integers(low, high + 1))
        near = np.ones(len(left), bool) if random.random() < span else bank[left] == bank[left[0]]
        if near.sum() < SMALLEST:
            near[:] = True
        chosen = np.flatnonzero(near)[:size]
        if len(left) - len(chosen) < SMALLEST:
            chosen = np.arange(len(left))
        yield Pattern(shape, left[chosen])
        left = np.delete(left, chosen)


def paid_along(
    pattern: Pattern, accounts: Accounts, median: float, spread: float, days: int, random: np.random.Generator,
    at_most: float = np.inf,
) -> Payments:  # fmt: skip
    """One to three payments for each transfer of a pattern, step after step, once all its accounts are open."""
    payer, payee, step = pattern.shape(len(pattern.members))
    many = random.integers(1, 4, len(payer))
    payer, payee, step = (np.repeat(column, many) for column in (payer, payee, step))
    lasts = MOST_DAYS_BETWEEN * (step.max() + 1)
    latest = max(days - lasts, 0.0)
    start = min(float(accounts.opened[pattern.members].max()), latest)
    begin = start + random.random() * (latest - start)
    day = np.minimum(begin + MOST_DAYS_BETWEEN * (step + random.random(len(step))), days)
    amount = np.clip(median * np.exp(spread * random.normal(size=len(step))), 1, at_most)
    return Payments(pattern.members[payer], pattern.members[payee], amount, day)
