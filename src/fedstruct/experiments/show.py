"""What the terminal shows: tables on stdout, progress on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import polars
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from fedstruct.errors import FedstructError, unknown
from fedstruct.federation.transport import COORDINATOR
from fedstruct.federation.watch import Watch
from fedstruct.graph import datasets

out = Console(highlight=False)


def say(text: str) -> None:
    out.print(text)


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f}"


def spread(figures: dict[str, float | None]) -> str:
    """Mean ± standard deviation, in percent."""
    return percent(figures["mean"]) + ("" if figures["std"] is None else f" ± {percent(figures['std'])}")


def size(count: float) -> str:
    """
    >>> size(512), size(2_500_000)
    ('512 B', '2.5 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


class Bar(Watch):
    """A progress bar on stderr: the seeds that are done, and the phase and round of the one at work."""

    def __init__(self, progress: Progress, seeds: int) -> None:
        self._progress = progress
        self._seeds = progress.add_task("seeds", total=seeds, note="")
        self._phase = progress.add_task("structure", total=None, note="")

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self._progress.reset(self._phase, description=name, total=None, note="")
        yield

    def advance(self, done: int, of: int, **figures: float) -> None:
        note = " ".join(f"{k} {v:.3f}" for k, v in figures.items())
        self._progress.update(self._phase, completed=done, total=of, note=note)

    def finished(self, accuracy: float | None) -> None:
        self._progress.update(self._seeds, advance=1, note=f"last test accuracy {percent(accuracy)}")


@contextmanager
def watching(seeds: int) -> Iterator[Bar]:
    """A progress bar while the block runs; silent where stderr is not a terminal."""
    stderr = Console(stderr=True)
    columns = (
        TextColumn("{task.description:>10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )  # fmt: skip
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as progress:
        yield Bar(progress, seeds)


def result_table(summary: dict[str, Any]) -> None:
    """The figures of an experiment."""
    runs = summary["runs"]
    title = f"{summary['method']} on {summary['dataset']}, {summary['parties']} parties ({summary['partition']})"
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    seeds = f"{len(runs)} seed{'s' if len(runs) > 1 else ''}"
    table.add_row("test accuracy", f"[bold]{spread(summary['test_accuracy'])}[/bold] %   ({seeds})")
    table.add_row("macro F1", f"{spread(summary['macro_f1'])} %")
    if "auprc" in summary:
        table.add_row("AUPRC", f"{spread(summary['auprc'])} %")
    for what, name in (("seconds", "seconds per run"), ("cpu_seconds", "CPU seconds")):
        table.add_row(name, _phases(runs, what, lambda v: f"{v:.2f}"))
    table.add_row("sent per run", _phases(runs, "bytes", size))
    if exchange := runs[0]["exchange"]:
        table.add_row(
            "entries of Ā sent",
            f"{exchange['entries']:,} of at most {exchange['at_most']:,}, "
            f"{exchange['ratio_to_paper']:.2f} of the paper's L·K·p·n",
        )
    table.add_row("peak memory", f"{summary['peak_rss_mb']:,.0f} MB")
    table.add_row("protocol", f"{summary['protocol']}, preset {summary['preset']}")
    out.print(table)


def _phases(runs: list[dict[str, Any]], what: str, form: Any) -> str:
    means = {phase: sum(r[what][phase] for r in runs) / len(runs) for phase in runs[0][what]}
    return "   ".join(f"{phase} {form(value)}" for phase, value in means.items())


def exposure_words(exposure: dict[str, Any] | None, party: str | None = None) -> list[str]:
    """What the structure exchange gave away, in words."""
    if exposure is None:
        return ["No structure was exchanged: no edge can be read off."]
    if party is None:
        return [
            f"From the second hop of the exchange, neighbours read off exactly "
            f"{percent(exposure['inner_share'])} % of the {exposure['inner_edges']:,} inner edges, and "
            f"{percent(exposure['border_share'])} % of the {exposure['border_edges']:,} border edges as seen from their "
            "sources by third parties (docs/privacy.md)."
        ]
    own = next(p for p in exposure["parties"] if p["party"] == party)
    towards = own["towards"]
    worst = max(towards, key=lambda peer: towards[peer]["inner_share"], default=None)
    if worst is None:
        return [f"{party} has no neighbours."]
    return [
        f"{own['inner_by_any']:,} of the {own['inner_edges']:,} inner edges of {party} can be read off exactly by some "
        f"neighbour; the most, {percent(towards[worst]['inner_share'])} %, by {worst}."
    ]


def grouped(book: polars.DataFrame, party: str | None = None) -> polars.DataFrame:
    """The ledger by kind of message and by role: who told whom what, how often and how much."""

    def role(column: str) -> polars.Expr:
        c = polars.col(column)
        other = polars.lit("each party" if party is None else "each peer")
        return polars.when((c == COORDINATOR) | (c == party if party else False)).then(c).otherwise(other)

    return (
        book.filter(polars.col("entry") == "sent")
        .with_columns(role("sender").alias("from"), role("receiver").alias("to"))
        .group_by("from", "to", "kind", "tells", "sources", maintain_order=True)
        .agg(polars.len().alias("messages"), polars.col("rows").sum(), polars.col("bytes").sum())
    )


def traffic_table(book: polars.DataFrame, party: str | None = None) -> None:
    """Who told whom what."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name, justify in (("from", "left"), ("to", "left"), ("message", "left"), ("derived from", "left"),
                          ("messages", "right"), ("rows", "right"), ("size", "right")):  # fmt: skip
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for row in grouped(book, party).iter_rows(named=True):
        to = "each other party" if row["from"] == row["to"] == "each party" else row["to"]
        table.add_row(
            row["from"], to, row["kind"], row["sources"],
            f"{row['messages']:,}", f"{row['rows']:,}", size(row["bytes"]),
        )  # fmt: skip
    out.print(table)


def ledger_words(
    book: polars.DataFrame, exposure: dict[str, Any] | None, party: str | None = None
) -> list[str]:
    """The ledger in words: what each learned, and from whom."""
    words = []
    for row in grouped(book, party).iter_rows(named=True):
        if row["sources"] == "nothing":
            continue
        learner = "Each party" if row["to"] == "each party" else row["to"].capitalize()
        if row["from"] == row["to"]:
            teller = "each other party"
        else:
            teller = "the coordinator" if row["from"] == COORDINATOR else row["from"]
        learner = "The coordinator" if row["to"] == COORDINATOR else learner
        words.append(f"{learner} learned from {teller}: {row['tells']} ({size(row['bytes'])}).")
    return words + exposure_words(exposure, party)


def of_party(book: polars.DataFrame, party: str) -> polars.DataFrame:
    """The part of a ledger that one party has in its own book."""
    names = set(book["sender"]) | set(book["receiver"])
    if party not in names:
        raise unknown("party", party, names)
    return book.filter((polars.col("sender") == party) | (polars.col("receiver") == party))


def of_seed(book: polars.DataFrame, result: dict[str, Any], seed: int) -> tuple[polars.DataFrame, dict[str, Any]]:
    """The ledger and the result of one of a folder's runs."""
    found = next((r for r in result["runs"] if r["seed"] == seed), None)
    if found is None:
        seeds = ", ".join(str(r["seed"]) for r in result["runs"])
        raise FedstructError(f"this folder has no run with seed {seed}; it has {seeds}")
    return book.filter(polars.col("run") == f"{result['method']}-{seed}"), found


def dataset_rows() -> list[dict[str, Any]]:
    """Each dataset with its figures, where its file is at hand."""
    rows = []
    for name, dataset in datasets.DATASETS.items():
        row: dict[str, Any] = {"name": name, "about": dataset.about, "found": None}
        found = datasets.where(name)
        if found is not None:
            graph = datasets.load(name)
            row |= {
                "found": str(found),
                "nodes": graph.nodes,
                "edges": graph.edges,
                "directed": graph.directed,
                "features": graph.features.shape[1],
                "classes": graph.classes,
                "homophily": round(graph.homophily, 4),
            }
        rows.append(row)
    return rows


def dataset_table(rows: list[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("name", "nodes", "edges", "features", "classes", "homophily", "found", "about"):
        table.add_column(name, justify="right" if name in ("nodes", "edges", "features", "classes", "homophily") else "left")
    for r in rows:
        if r["found"] is None:
            table.add_row(r["name"], "–", "–", "–", "–", "–", "downloads when first used", r["about"], style="dim")
        else:
            edges = f"{r['edges']:,}{' →' if r['directed'] else ''}"
            table.add_row(
                r["name"], f"{r['nodes']:,}", edges, f"{r['features']:,}", str(r["classes"]),
                f"{r['homophily']:.2f}", r["found"], r["about"],
            )  # fmt: skip
    out.print(table)
    if any(r["found"] is None for r in rows):
        say(f"\nSet {datasets.DATA_VARIABLE} to a folder of .npz files to use what is there; → marks directed edges.")
