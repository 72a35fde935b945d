"""Methods and their options in the terminal."""

from __future__ import annotations

import json
from typing import Any

from rich.markup import escape
from rich.table import Table

from fedstruct.experiments.show import out


def methods_table(rows: list[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("method", no_wrap=True)
    table.add_column("what it is")
    for row in rows:
        table.add_row(row["name"], escape(row["about"]))
    out.print(table)


def options_table(rows: list[dict[str, Any]], dataset: str | None) -> None:
    """The options, one per line; what a preset changes is bold."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("option", no_wrap=True)
    for name in ("default", *([] if dataset is None else [f"ours, {escape(dataset)}"]), "takes", "what it is"):
        table.add_column(name)
    for row in rows:
        ours = [] if dataset is None else [_value(row["ours"])]
        changed = [f"[bold]{each}[/bold]" if row["ours"] != row["default"] else each for each in ours]
        table.add_row(row["name"], _value(row["default"]), *changed, escape(row["takes"]), escape(row["description"]))
    out.print(table)


def _value(value: Any) -> str:
    return "none" if value is None else escape(value if isinstance(value, str) else json.dumps(value))
