"""A payment network of several banks, made from a seed: two tables, as banks keep them.

docs/consortium.md says which numbers were chosen, and why they are plausible.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt, Le

from fedstruct.errors import FedstructError
from fedstruct.graph.consortium.accounts import Accounts
from fedstruct.graph.consortium.laundering import laundering, recruited
from fedstruct.graph.consortium.ordinary import ordinary
from fedstruct.graph.consortium.payments import Payments
from fedstruct.graph.parameters import checked
from fedstruct.graph.table import Table
from fedstruct.graph.tables import Tables
from fedstruct.seeds import stream

ACCOUNTS_PER_BANK = 30
"""A bank needs so many for each kind of account to be there."""


@checked
def consortium(
    banks: Annotated[int, Ge(1), Le(1000)] = 5,
    accounts: Annotated[int, Ge(30), Le(10_000_000)] = 6000,
    cross: Annotated[float, Ge(0), Le(1)] = 0.3,
    illicit: Annotated[float, Gt(0), Le(0.5)] = 0.03,
    span: Annotated[float, Ge(0), Le(1)] = 0.7,
    tell: Annotated[float, Ge(0), Le(20)] = 0.5,
    days: Annotated[int, Ge(60), Le(3650)] = 180,
    seed: Annotated[int, Ge(0)] = 0,
) -> Tables:
    """Accounts and payments of several banks, some of them laundering.

    `cross` is the share of ordinary relations that cross banks, `span` the share of laundering patterns whose accounts
    are drawn from all banks, `tell` how far the attributes of an account tell that it takes part in laundering.

    >>> tables = consortium(banks=3, accounts=300)
    >>> graph = tables.graph("consortium")
    >>> graph.nodes, int((graph.labels == 1).sum()), graph.owner_attribute
    (300, 9, 'bank')
    """
    if accounts < ACCOUNTS_PER_BANK * banks:
        raise FedstructError(f"{banks} banks need at least {ACCOUNTS_PER_BANK * banks} accounts, not {accounts}")
    if banks == 1 and cross > 0:
        raise FedstructError("a single bank has nobody to pay at another one; give cross=0 or more banks")
    if round(illicit * accounts) < 3:
        raise FedstructError(f"illicit = {illicit} of {accounts} accounts are fewer than the 3 of the smallest pattern")

    people = Accounts.drawn(banks, accounts, days, stream(seed, "consortium", "accounts"))
    recruits = recruited(people, round(illicit * accounts), tell, stream(seed, "consortium", "recruits"))
    paid = Payments.together(
        [
            *ordinary(people, cross, days, stream(seed, "consortium", "ordinary")),
            *laundering(people, recruits, span, days, stream(seed, "consortium", "laundering")),
        ]
    )
    labels = np.zeros(accounts, np.int64)
    labels[recruits] = 1
    return _tables(people, paid, labels)


def _tables(people: Accounts, paid: Payments, labels: np.ndarray) -> Tables:
    import polars

    ids = np.char.add("a", np.char.zfill(np.arange(people.count).astype(str), len(str(people.count - 1))))
    accounts = {"id": ids, "bank": people.bank_names, **people.attributes(), "illicit": labels}
    order = np.argsort(paid.day, kind="stable")
    payments = {
        "source": ids[paid.source[order]],
        "target": ids[paid.target[order]],
        "amount": paid.amount[order].round(2),
        "day": paid.day[order].round(4),
    }
    return Tables(
        Table(polars.DataFrame(accounts), "accounts"),
        Table(polars.DataFrame(payments), "payments"),
        id="id",
        label="illicit",
        owner="bank",
        weight="amount",
        time="day",
    )
