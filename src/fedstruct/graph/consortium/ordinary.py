"""Ordinary life: salaries, rents, purchases, friends, suppliers, and the shapes that only look like laundering."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedstruct.graph.consortium.accounts import EMPLOYER, LANDLORD, PERSON, SHOP, Accounts
from fedstruct.graph.consortium.patterns import cut_into_patterns, paid_along
from fedstruct.graph.consortium.payments import Payments, Pool, relations

EMPLOYED, TENANTS = 0.8, 0.45
"""Shares of persons with a salary, and with a rent."""
RENT = 0.3
"""Of the income."""
SHOPS, SHOPS_SPREAD = 4.0, 0.5
"""At how many shops a person buys: the median, and the deviation of its logarithm."""
PURCHASES = 5.0
"""Mean number of purchases at one shop."""
BASKET, BASKET_SPREAD = 35.0, 0.8
FRIENDS = 1.2
"""Mean number of friends that a person sends money to; six in ten send some back."""
SENT, SENT_SPREAD = 60.0, 0.9
SUPPLIERS = 2.0
"""Mean number of suppliers of a firm, beside the first."""
INVOICE, INVOICE_SPREAD = 3000.0, 1.0
POPULARITY = 1.5
"""The Pareto exponent of how many pay a shop, work for an employer or rent from a landlord."""
LOOKALIKES = 0.03
"""The share of accounts in groups of the same shapes as laundering: savings clubs, collections, shared bills."""
SHARED, SHARED_SPREAD = 300.0, 0.6
MONTH = 30


def ordinary(accounts: Accounts, cross: float, days: int, random: np.random.Generator) -> Iterator[Payments]:
    """The payments of ordinary life, a share `cross` of all pairs of accounts at two banks."""
    persons = accounts.of_kind(PERSON)
    firms = accounts.of_kind(SHOP, EMPLOYER, LANDLORD)

    def pool(*kinds: int) -> Pool:
        members = accounts.of_kind(*kinds)
        return Pool(accounts, members, 1 + random.pareto(POPULARITY, len(members)))

    worker = persons[random.random(len(persons)) < EMPLOYED]
    employee, employer = relations(accounts, worker, pool(EMPLOYER), cross, random)
    yield _monthly(accounts, employer, employee, accounts.turnover[employee], days, random)

    tenant, landlord = relations(
        accounts, persons[random.random(len(persons)) < TENANTS], pool(LANDLORD), cross, random
    )
    yield _monthly(accounts, tenant, landlord, RENT * accounts.turnover[tenant], days, random)

    shops = np.maximum(1, np.rint(SHOPS * np.exp(SHOPS_SPREAD * random.normal(size=len(persons))))).astype(np.int64)
    customer = relations(accounts, np.repeat(persons, shops), pool(SHOP), cross, random)
    yield _now_and_then(accounts, *customer, PURCHASES, BASKET, BASKET_SPREAD, days, random)

    circle = np.repeat(persons, random.poisson(FRIENDS, len(persons)))
    friend, other = relations(accounts, circle, Pool(accounts, persons), cross, random)
    back = random.random(len(friend)) < 0.6
    yield _now_and_then(
        accounts, np.append(friend, other[back]), np.append(other, friend[back]), 2.0, SENT, SENT_SPREAD, days, random
    )

    buyer = np.repeat(firms, 1 + random.poisson(SUPPLIERS, len(firms)))
    business = relations(accounts, buyer, pool(SHOP, EMPLOYER), cross, random)
    yield _now_and_then(accounts, *business, 4.0, INVOICE, INVOICE_SPREAD, days, random)

    alike = random.choice(persons, size=max(3, round(LOOKALIKES * accounts.count)), replace=False)
    for pattern in cut_into_patterns(alike, accounts.bank, cross, random):
        yield paid_along(pattern, accounts, SHARED, SHARED_SPREAD, days, random)


def _monthly(
    accounts: Accounts,
    source: np.ndarray,
    target: np.ndarray,
    amount: np.ndarray,
    days: int,
    random: np.random.Generator,
) -> Payments:
    """The same each month, on the day that the one who receives it and its payer agreed, give or take some hours."""
    months = days // MONTH
    day = (
        (random.random(len(source)) * MONTH)[:, None] + MONTH * np.arange(months) + random.random((len(source), months))
    )
    about = amount[:, None] * (1 + 0.05 * random.normal(size=day.shape))
    paid = Payments(np.repeat(source, months), np.repeat(target, months), np.maximum(about, 1).ravel(), day.ravel())
    return paid.where((paid.day >= _both_open(accounts, paid.source, paid.target)) & (paid.day <= days))


def _now_and_then(
    accounts: Accounts,
    source: np.ndarray,
    target: np.ndarray,
    times: float,
    median: float,
    spread: float,
    days: int,
    random: np.random.Generator,
) -> Payments:
    """At any time after both accounts were opened; `times` payments in the mean, at least one."""
    many = random.geometric(1 / times, len(source))
    source, target = np.repeat(source, many), np.repeat(target, many)
    start = _both_open(accounts, source, target)
    amount = np.maximum(median * np.exp(spread * random.normal(size=len(source))), 1)
    return Payments(source, target, amount, start + random.random(len(source)) * (days - start))


def _both_open(accounts: Accounts, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    both: np.ndarray = np.maximum(accounts.opened[source], accounts.opened[target])
    return both
