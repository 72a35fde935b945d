"""What the terminal shows: tables on stdout, progress on stderr."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from shlex import join
from typing import Any

from rich.console import Console, ConsoleDimensions
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from fedstruct.errors import FedstructError
from fedstruct.experiments.visible import visible
from fedstruct.federation.watch import Watch
from fedstruct.graph import datasets, generators

PIPED = 100
"""Columns where there is no terminal whose width could be asked for."""


class Terminal(Console):
    """A console that shows text from outside, and never obeys it."""

    def render_str(self, text: str, **how: Any) -> Text:
        """Every text passes here, of tables also, before its width is measured."""
        return super().render_str(visible(text), **how)

    @property  # type: ignore[misc]
    def size(self) -> ConsoleDimensions:
        """Asked for whenever something is printed: a pipe has the width that COLUMNS says, or PIPED."""
        if self.is_terminal:
            return super().size
        said = os.environ.get("COLUMNS", "")
        return ConsoleDimensions(int(said) if said.isdecimal() and int(said) else PIPED, super().size.height)


out = Terminal(highlight=False)


def say(text: str) -> None:
    out.print(text)


def line(text: str) -> None:
    """What names a path or a command: one line however long, so that it can be copied."""
    out.print(text, soft_wrap=True)


def shell(*words: str | Path) -> str:
    """A command, or a path alone, as a shell takes it."""
    return escape(join(map(str, words)))


def items(sentences: list[str]) -> None:
    """Sentences as a list."""
    table = Table.grid("", Column(overflow="fold"), padding=(0, 1), pad_edge=True)
    for sentence in sentences:
        table.add_row("·", escape(sentence))
    out.print(table)


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
    """A progress bar on stderr: the runs that are done and, of one in this process, its phase and round."""

    def __init__(self, progress: Progress, runs: int, what: str) -> None:
        self._progress = progress
        self._runs = progress.add_task(what, total=runs, note="")
        self._phase = progress.add_task("structure", total=None, note="", visible=False)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self._progress.reset(self._phase, description=name, total=None, note="", visible=True)
        yield

    def advance(self, done: int, of: int, **figures: float) -> None:
        note = " ".join(f"{k} {v:.3f}" for k, v in figures.items())
        self._progress.update(self._phase, completed=done, total=of, note=note)

    def finished(self, accuracy: float | None, of: str = "last", what: str = "test accuracy") -> None:
        self._progress.update(self._runs, advance=1, note=f"{visible(of)} {what.replace('_', ' ')} {percent(accuracy)}")


@contextmanager
def watching(runs: int, what: str = "seeds") -> Iterator[Bar]:
    """A progress bar while the block runs; silent where stderr is not a terminal."""
    stderr = Console(stderr=True)
    columns = (
        TextColumn("{task.description:>10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )  # fmt: skip
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as progress:
        yield Bar(progress, runs, what)


@contextmanager
def working(on: str) -> Iterator[None]:
    """Says what is worked on while the block runs, where nothing can be counted; silent as `watching` is."""
    stderr = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as progress:
        progress.add_task(on, total=None)
        yield


def result_table(summary: dict[str, Any]) -> None:
    """The figures of an experiment."""
    runs = summary["runs"]
    where = f"{summary['dataset']}, {summary['parties']} parties ({summary['partition']})"
    title = f"{summary['method']} on {escape(where)}"
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    seeds = f"{len(runs)} seed{'s' if len(runs) > 1 else ''}"
    table.add_row("test accuracy", f"[bold]{spread(summary['test_accuracy'])}[/bold] %   ({seeds})")
    table.add_row("macro F1", f"{spread(summary['macro_f1'])} %")
    if "auprc" in summary:
        table.add_row("AUPRC", f"{spread(summary['auprc'])} %")
        table.add_row(f"recall@{summary['recall_at']}", f"{spread(summary['recall'])} %")
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


def dataset_rows() -> list[dict[str, Any]]:
    """Each dataset with its figures, where its file is at hand."""
    rows = []
    for name, dataset in datasets.DATASETS.items():
        row: dict[str, Any] = {"name": name, "about": dataset.about, "found": None}
        found = datasets.where(name)
        if found is not None:
            row["found"] = str(found)
            try:
                graph = datasets.load(name)
            except FedstructError as error:
                rows.append(row | {"problem": str(error)})
                continue
            row |= {
                "nodes": graph.nodes,
                "edges": graph.edges,
                "directed": graph.directed,
                "features": graph.features.shape[1],
                "classes": graph.classes,
                "homophily": None if isnan(graph.homophily) else round(graph.homophily, 4),
            }
        rows.append(row)
    return rows


def generator_rows() -> list[dict[str, Any]]:
    """Each generator with its parameters."""
    return [
        {"name": name, "about": (make.__doc__ or "").split("\n")[0], "parameters": generators.parameters(name)}
        for name, make in generators.GENERATORS.items()
    ]


def dataset_table(rows: list[dict[str, Any]], made: list[dict[str, Any]]) -> None:
    """The datasets, one per line."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("name", "nodes", "edges", "features", "classes", "homophily", "about"):
        table.add_column(name, justify="left" if name in ("name", "about") else "right", no_wrap=name == "name")
    for r in rows:
        if "nodes" not in r:
            table.add_row(r["name"], "–", "–", "–", "–", "–", r["about"], style="dim")
        else:
            edges = f"{r['edges']:,}{' →' if r['directed'] else ''}"
            figures = (
                f"{r['nodes']:,}",
                edges,
                f"{r['features']:,}",
                str(r["classes"]),
                "–" if r["homophily"] is None else f"{r['homophily']:.2f}",
            )
            table.add_row(r["name"], *figures, r["about"])
    out.print(table)
    folders = sorted({str(Path(r["found"]).parent) for r in rows if r["found"]})
    items([r["problem"] for r in rows if "problem" in r])
    say("\n[bold]Made from a seed[/bold], with parameters of your choice: consortium:banks=3,cross=0.6")
    for row in made:
        defaults = ", ".join(f"{key}={value}" for key, value in row["parameters"].items())
        items([f"{row['name']}: {row['about']} By default, {defaults}."])
    say("")
    if folders:
        line(f"Found in {escape(' and '.join(folders))}; → marks directed edges.")
    if any(r["found"] is None for r in rows):
        say(
            "Dimmed: downloaded when first used, if it can be. Or put NAME.npz into a folder and set "
            f"{datasets.DATA_VARIABLE} to it (docs/data-format.md)."
        )
