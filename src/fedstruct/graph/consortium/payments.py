"""Payments as columns, and whom one pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from fedstruct.graph.consortium.accounts import Accounts


@dataclass(frozen=True, eq=False)
class Payments:
    source: np.ndarray
    target: np.ndarray
    amount: np.ndarray
    day: np.ndarray

    @classmethod
    def together(cls, parts: Sequence[Payments]) -> Self:
        columns = ([getattr(p, name) for p in parts] for name in ("source", "target", "amount", "day"))
        return cls(*(np.concatenate(column) for column in columns))

    def where(self, kept: np.ndarray) -> Payments:
        return Payments(self.source[kept], self.target[kept], self.amount[kept], self.day[kept])


class Pool:
    """Accounts that one may pay, each as often as its weight says."""

    def __init__(self, accounts: Accounts, members: np.ndarray, weight: np.ndarray | None = None) -> None:
        """`members` are grouped by bank, as accounts are."""
        self.members = members
        weight = np.ones(len(members)) if weight is None else weight
        self._end = np.cumsum(weight)
        banks = int(accounts.bank.max()) + 1
        self._mass = np.bincount(accounts.bank[members], weight, banks)
        self._start = np.cumsum(self._mass) - self._mass

    def drawn(self, bank: np.ndarray, crossing: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """For each payer a member of its own bank, or, where it is `crossing`, of any other."""
        start, own = self._start[bank], self._mass[bank]
        others = self._end[-1] - own
        at = random.random(len(bank)) * np.where(crossing, others, own)
        # The members of other banks lie before and behind those of one's own.
        at += np.where(crossing, np.where(at >= start, own, 0.0), start)
        found: np.ndarray = self.members[
            np.minimum(np.searchsorted(self._end, at, side="right"), len(self.members) - 1)
        ]
        return found


def relations(
    accounts: Accounts, payer: np.ndarray, pool: Pool, cross: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Payers and whom they pay, each pair once, nobody oneself; a share `cross` at another bank."""
    crossing = random.random(len(payer)) < cross
    payee = pool.drawn(accounts.bank[payer], crossing, random)
    pairs = np.unique(payer * accounts.count + payee)
    source, target = np.divmod(pairs, accounts.count)
    return source[source != target], target[source != target]
