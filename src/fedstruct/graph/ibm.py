"""IBM's tables of simulated payments for anti-money-laundering, `HI-Small_Trans.csv` and its siblings, as two tables.

Reference: Altman et al., "Realistic Synthetic Financial Transactions for Anti-Money Laundering Models", NeurIPS 2023.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedstruct.errors import FedstructError
from fedstruct.graph.columns import dates
from fedstruct.graph.table import Table
from fedstruct.graph.tables import Tables
from fedstruct.graph.text_table import heading, read_rows

if TYPE_CHECKING:
    import polars

HEADING = (
    "Timestamp,From Bank,Account,To Bank,Account,Amount Received,Receiving Currency,Amount Paid,Payment Currency,"
    "Payment Format,Is Laundering"
)
"""Two columns are called Account: the payer's and the payee's."""
COLUMNS = HEADING.replace("Account", "From Account", 1).replace(",Account", ",To Account").split(",")
TIME = "%Y/%m/%d %H:%M"


def is_of_this_form(path: Path) -> bool:
    """Whether a file begins as these tables do."""
    return path.suffix not in (".parquet", ".pq") and heading(path) == HEADING


def tables(path: Path, largest: int | None = None) -> Tables:
    """Accounts and payments; banks own the accounts, and an account is illicit that takes part in laundering.

    A number of an account is unique at its bank alone. The features of an account are what its own bank sees of its
    payments, with amounts in units of the median of the bank's amounts in that currency. Payments are counted, not
    added up, because they are in many currencies.
    """
    import polars
    from polars import col

    if not is_of_this_form(path):
        raise FedstructError(f"{path} does not begin as IBM's tables do, with the columns {HEADING}")
    # The heading is left out, and with it the name that stands there twice.
    read = read_rows(path, COLUMNS)
    if read.is_empty():
        raise FedstructError(f"{path} has a heading but no payments")
    given = Table(read, str(path))
    frame = polars.DataFrame(
        {
            **{name: given.whole_texts(name) for name in COLUMNS if name not in ("Timestamp", "Is Laundering")},
            "paid": given.positive("Amount Paid"),
            "received": given.positive("Amount Received"),
            "time": dates(given, "Timestamp", TIME),
            "illicit": _laundering(given),
        }
    ).with_columns(
        (col("From Bank") + "/" + col("From Account")).alias("source"),
        (col("To Bank") + "/" + col("To Account")).alias("target"),
    )
    return Tables(
        Table(_accounts(frame), "accounts"),
        Table(frame.select("source", "target", "time", polars.lit(1).alias("payments")), str(path)),
        id="account",
        label="illicit",
        owner="bank",
        weight="payments",
        time="time",
        largest=largest,
    )


def _laundering(given: Table) -> np.ndarray:
    """The column of labels."""
    found = given.numbers("Is Laundering")
    odd = ~np.isin(found, (0, 1))
    if odd.any():
        raise given.wrong("Is Laundering", int(odd.argmax()), "is neither 0 nor 1")
    return found.astype(np.int64)


def _accounts(frame: polars.DataFrame) -> polars.DataFrame:
    """A row per account: who it is, whether it takes part in laundering, and what its bank sees of it."""
    import polars
    from polars import col

    sides = {
        "sent": ("source", "From Bank", "target", "To Bank", "paid", "Payment Currency"),
        "received": ("target", "To Bank", "source", "From Bank", "received", "Receiving Currency"),
    }
    names = ("account", "bank", "peer", "peer_bank", "amount", "currency")
    seen = polars.concat(
        frame.select(
            *(col(column).alias(name) for column, name in zip(columns, names, strict=True)),
            polars.lit(side).alias("side"),
            col("Payment Format").alias("format"),
            "time",
            "illicit",
        )
        for side, columns in sides.items()
    ).with_columns((col("amount") / col("amount").median().over("bank", "currency")).alias("amount"))

    def of(side: str) -> list[polars.Expr]:
        here = col("side") == side
        return [
            here.sum().log1p().alias(side),
            col("peer").filter(here).n_unique().log1p().alias(f"{side}_peers"),
            col("amount").filter(here).sum().log1p().alias(f"{side}_amount"),
            col("amount").filter(here).max().fill_null(0).log1p().alias(f"{side}_largest"),
        ]

    formats = frame["Payment Format"].unique().sort()
    return (
        seen.group_by("account", "bank", maintain_order=True)
        .agg(
            *of("sent"),
            *of("received"),
            (col("peer_bank") == col("bank")).mean().alias("within_bank"),
            (col("peer") == col("account")).mean().alias("to_itself"),
            col("currency").n_unique().alias("currencies"),
            ((col("time").max() - col("time").min()) / 86_400).alias("days_active"),
            *((col("format") == name).mean().alias(f"by {name}") for name in formats),
            col("illicit").max(),
        )
        .sort("account")
    )
