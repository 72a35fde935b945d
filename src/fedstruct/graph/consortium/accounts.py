"""Whose the accounts are, at which bank, and what the bank knows of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

KINDS = ("person", "shop", "employer", "landlord")
PERSON, SHOP, EMPLOYER, LANDLORD = range(4)
SHARES = np.array([0.87, 0.08, 0.035, 0.015])
"""Of each bank's accounts."""

TURNOVER = np.array([2400.0, 15_000.0, 80_000.0, 12_000.0])
"""The median turnover per month that is declared when an account is opened: for a person, the income."""
TURNOVER_SPREAD = np.array([0.5, 1.0, 1.0, 0.8])

NEW = 0.15
"""The share of accounts that are opened while payments are watched."""
CHANNELS = ("branch", "online")


@dataclass(frozen=True, eq=False)
class Accounts:
    """Arrays with a value per account, grouped by bank."""

    bank: np.ndarray
    kind: np.ndarray
    age: np.ndarray
    """In years: of the person, or of the firm."""
    tenure: np.ndarray
    """Years at the bank, at the end of the time that is watched."""
    turnover: np.ndarray
    online: np.ndarray
    opened: np.ndarray
    """The day of its first possible payment."""

    @classmethod
    def drawn(cls, banks: int, accounts: int, days: int, random: np.random.Generator) -> Self:
        """Accounts of banks whose sizes fall with the root of their rank."""
        sizes = _shared_out(accounts, 1 / np.sqrt(np.arange(1, banks + 1)))
        bank = np.repeat(np.arange(banks), sizes)
        kind = np.concatenate([random.permutation(np.repeat(np.arange(4), _shared_out(n, SHARES))) for n in sizes])
        is_person = kind == PERSON

        age = np.where(
            is_person,
            np.clip(random.normal(46, 17, accounts), 18, 95),
            np.clip(1 + random.exponential(12, accounts), 1, 80),
        )
        before = np.minimum(random.exponential(8, accounts), np.where(is_person, age - 16, age))
        new = random.random(accounts) < NEW
        # None in the last fifth, so that each has the time to be seen.
        opened = np.where(new, random.random(accounts) * 0.8 * days, 0.0)
        tenure = np.where(new, days - opened, 365 * before + days) / 365
        turnover = TURNOVER[kind] * np.exp(TURNOVER_SPREAD[kind] * random.normal(size=accounts))
        online_share = np.where(is_person, 1 / (1 + np.exp((age - 50) / 12)), 0.5)
        return cls(bank, kind, age, tenure, turnover, random.random(accounts) < online_share, opened)

    @property
    def count(self) -> int:
        return len(self.bank)

    @property
    def bank_names(self) -> np.ndarray:
        return np.char.add("bank-", (self.bank + 1).astype(str))

    def of_kind(self, *kinds: int) -> np.ndarray:
        return np.flatnonzero(np.isin(self.kind, kinds))

    def attributes(self) -> dict[str, np.ndarray]:
        """What the bank knows of an account without looking at its payments."""
        return {
            "kind": np.array(KINDS)[self.kind],
            "age": self.age.round(0),
            "tenure": self.tenure.round(2),
            "turnover": self.turnover.round(-1),
            "channel": np.array(CHANNELS)[self.online.astype(int)],
        }

    def risk(self) -> np.ndarray:
        """Young, new at the bank and online: mean 0 and deviation 1 among the accounts of one kind."""
        traits = (-self.age, -np.log(self.tenure + 0.1), self.online.astype(float))
        together: np.ndarray = np.sum([self._standardised(trait) for trait in traits], axis=0)
        return self._standardised(together)

    def _standardised(self, values: np.ndarray) -> np.ndarray:
        counts = np.maximum(np.bincount(self.kind, minlength=4), 1)
        centred = values - (np.bincount(self.kind, values, 4) / counts)[self.kind]
        spread = np.sqrt(np.bincount(self.kind, centred**2, 4) / counts)
        scaled: np.ndarray = centred / np.maximum(spread, 1e-9)[self.kind]
        return scaled


def _shared_out(count: int, shares: np.ndarray) -> np.ndarray:
    """Whole numbers that add up to the count, by these shares, and no share is without one."""
    wanted = shares / shares.sum() * count
    parts: np.ndarray = np.maximum(wanted.astype(np.int64), 1)
    while (over := int(parts.sum()) - count) > 0:
        parts[parts.argmax()] -= over if parts.max() > over else parts.max() - 1
    # What is left goes to those that are furthest below what they should have.
    parts[np.argsort(parts - wanted, kind="stable")[: count - parts.sum()]] += 1
    return parts
