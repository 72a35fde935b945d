"""The ledger and the exposure in words and in a table: who learned what from whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars
from rich.markup import escape
from rich.table import Table

from fedstruct.errors import FedstructError, unknown
from fedstruct.experiments.show import items, out, percent, say, size
from fedstruct.experiments.visible import brief
from fedstruct.federation.message import EVERYTHING, Source
from fedstruct.federation.transport import COORDINATOR
from fedstruct.methods.evaluation import Counts


def grouped(book: polars.DataFrame, party: str | None = None) -> polars.DataFrame:
    """The ledger by kind of message and by role: who told whom what, how often and how much."""

    def role(column: str) -> polars.Expr:
        c = polars.col(column)
        others = polars.lit("parties" if party is None else "peers")
        return polars.when((c == COORDINATOR) | (c == (party or ""))).then(c).otherwise(others)

    # First by name, then by role: texts are only looked at once there are few rows.
    what = ("kind", "tells", "sources")
    names = (
        book.lazy()
        .filter(polars.col("entry") == "sent")
        .group_by("sender", "receiver", *what, maintain_order=True)
        .agg(polars.len().alias("messages"), polars.col("rows", "bytes").sum())
        .with_columns(polars.col("sender", "receiver", *what).cast(polars.String))
        .collect(engine="streaming")
    )
    return (
        names.with_columns(role("sender").alias("from"), role("receiver").alias("to"))
        .group_by("from", "to", *what, maintain_order=True)
        .agg(polars.col("messages", "rows", "bytes").sum())
    )


def traffic_table(traffic: polars.DataFrame) -> None:
    """Who told whom what, one kind of message per line."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for name in ("from → to", "message", "derived from", "messages", "rows", "size"):
        table.add_column(name, justify="right" if name in ("messages", "rows", "size") else "left")
    for row in traffic.iter_rows(named=True):
        sources = "everything" if row["sources"] == EVERYTHING.words else row["sources"]
        table.add_row(
            escape(f"{brief(row['from'])} → {brief(row['to'])}"),
            row["kind"],
            sources,
            f"{row['messages']:,}",
            f"{row['rows']:,}" if row["rows"] else "",
            size(row["bytes"]),
            style="dim" if sources == "nothing" else None,
        )
    out.print(table)


def leaving(book: polars.DataFrame) -> dict[str, str]:
    """What leaves a party while a method trains, by who gets it: the kinds of data that messages derive from.

    The counts that every method ends with, of right and wrong, are left out.
    """
    told = book.filter(
        (polars.col("entry") == "sent")
        & (polars.col("sender") != COORDINATOR)
        & (polars.col("kind") != Counts.__name__)
    )
    to_coordinator = polars.col("receiver") == COORDINATOR
    return {
        "coordinator": _sources(told.filter(to_coordinator)),
        "peers": _sources(told.filter(~to_coordinator)),
    }


def _sources(told: polars.DataFrame) -> str:
    named = set(", ".join(told["sources"].unique()).split(", "))
    together = Source.NOTHING
    for source in Source:
        together |= source if source.words in named else Source.NOTHING
    return "everything" if together == EVERYTHING else together.words


def learned(traffic: polars.DataFrame) -> dict[str, list[str]]:
    """For each pair of roles, what the one learned from the other; messages derived from nothing tell nothing."""
    told: dict[str, list[str]] = {}
    for row in traffic.filter(polars.col("sources") != "nothing").iter_rows(named=True):
        learner = {COORDINATOR: "The coordinator", "parties": "Each party", "peers": "Peers"}.get(
            row["to"], brief(row["to"])
        )
        teller = {COORDINATOR: "the coordinator", "parties": "the parties", "peers": "its peers"}.get(
            row["from"], brief(row["from"])
        )
        if row["from"] == row["to"] == "parties":
            teller = "the other parties"
        told.setdefault(f"{learner} learned from {teller}", []).append(f"{row['tells']} ({size(row['bytes'])})")
    return told


def say_learned(traffic: polars.DataFrame, read_off: str) -> None:
    """The same in sentences, and what could be read out of it."""
    for heading, facts in learned(traffic).items():
        say(f"\n[bold]{escape(heading)}[/bold]")
        items(facts)
    say("\n[bold]What can be read out of that[/bold]")
    items([read_off])


def exposure_words(run: dict[str, Any], party: str | None = None) -> str:
    """What the structure exchange of a run gave away, in a sentence."""
    exposure = run["exposure"]
    if run.get("sums") is not None:
        return sums_words(run["sums"], party)
    if run["exchange"] is None:
        return "There was no structure exchange to read edges off; what else the messages give away is not measured."
    if exposure is None:
        return (
            "Parties exchanged no structure, so none reads another's inner edges off an exchange. The coordinator "
            "may: it sees which nodes each party's training nodes reach (docs/privacy.md)."
        )
    if party in (None, COORDINATOR):
        between = (
            f" and {percent(exposure['border_share'])} % of the {exposure['border_edges']:,} ends of border edges "
            "between two others"
        )
        return (
            f"Parties can read off, exactly, at least {percent(exposure['inner_share'])} % of the "
            f"{exposure['inner_edges']:,} inner edges of others{between if len(exposure['parties']) > 2 else ''}, "
            "from the second hop of the exchange alone (docs/privacy.md)."
        )
    own = _of(party, exposure)
    towards = {peer: shares["inner_share"] for peer, shares in own["towards"].items()}
    if not towards:
        return f"{brief(party)} has no peers."
    worst = max(towards, key=lambda peer: towards[peer])
    return (
        f"Some peer can read off, exactly, {own['inner_by_any']:,} of the {own['inner_edges']:,} inner edges of "
        f"{party}; {worst} alone reads {percent(towards[worst])} %."
    )


def _of(party: str | None, figures: dict[str, Any]) -> dict[str, Any]:
    for each in figures["parties"]:
        if each["party"] == party:
            found: dict[str, Any] = each
            return found
    raise FedstructError(f"result.json cannot be read: it has no figures of {party}, who is in the ledger; train again")


def sums_words(sums: dict[str, Any], party: str | None = None) -> str:
    """What was told by propagation, in a sentence: sums, and over how many nodes."""
    one, two, more = (sums[name] for name in ("one", "two", "more"))
    who, whose = "Parties", "others"
    if party not in (None, COORDINATOR):
        own = _of(party, sums)["towards"]
        told = [way for ways in own.values() for way in ways.values()]
        one, two, more = (sum(way[name] for way in told) for name in ("one", "two", "more"))
        who, whose = f"{brief(party)}'s peers", brief(party)
    if not one + two + more:
        return f"{who} were told no sum: no border edge counts."
    times = sums["times"]
    return (
        f"{who} were told {one + two + more:,} different sums of what nodes of {whose} carry and of its slopes: "
        f"{one:,} over a single node, {two:,} over two, {more:,} over more; forward {times['forward']:,} times, "
        f"backward {times['backward']:,} times. A sum over a single node is that node's value (docs/privacy.md)."
    )


def of_party(book: polars.DataFrame, party: str) -> polars.DataFrame:
    """The part of a ledger that one party has in its own book."""
    names = set(book["sender"].unique()) | set(book["receiver"].unique())
    if party not in names:
        raise unknown("party", party, names)
    return book.filter((polars.col("sender") == party) | (polars.col("receiver") == party))


def of_seed(
    book: polars.DataFrame, runs: Mapping[int, dict[str, Any]], seed: int
) -> tuple[polars.DataFrame, dict[str, Any]]:
    """The ledger and the figures of one of a folder's runs."""
    if seed not in runs:
        raise FedstructError(f"this folder has no run with seed {seed}; it has {', '.join(map(str, runs))}")
    return rows_of(book, seed), runs[seed]


def rows_of(book: polars.DataFrame, seed: int) -> polars.DataFrame:
    """The part of a ledger that is of the run with this seed."""
    return book.filter(polars.col("run").cast(polars.String).str.ends_with(f"-{seed}"))
