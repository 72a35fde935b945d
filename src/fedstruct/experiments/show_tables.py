"""What became of two tables, in the terminal."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table as Shown

from fedstruct.experiments.show import out
from fedstruct.experiments.visible import brief
from fedstruct.graph.graph import UNKNOWN, Graph
from fedstruct.graph.tables import Tables

MOST_NAMED = 8
"""Owners and classes that are named one by one."""


def imported(graph: Graph, tables: Tables) -> dict[str, Any]:
    """A graph's figures, and what the columns of its tables became."""
    counts = np.bincount(graph.labels[graph.labels != UNKNOWN], minlength=graph.classes).tolist()
    named = tables.class_names or [str(c) for c in range(graph.classes)]
    owners = None
    if graph.owner_attribute is not None:
        names, sizes = np.unique(graph.attributes[graph.owner_attribute], return_counts=True)
        owners = dict(zip(names.tolist(), sizes.tolist(), strict=True))
    return {
        "nodes": graph.nodes,
        "edges": graph.edges,
        "directed": graph.directed,
        "weight": tables.weight,
        "features": int(graph.features.shape[1]),
        "feature_columns": tables.feature_columns,
        "classes": dict(zip(named, counts, strict=True)),
        "unknown": int((graph.labels == UNKNOWN).sum()),
        "owner": graph.owner_attribute,
        "owners": owners,
        "time": tables.time,
    }


def imported_table(told: dict[str, Any]) -> None:
    """The same in a few lines."""
    table = Shown.grid(padding=(0, 3, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    direction = "directed" if told["directed"] else "undirected"
    weight = f", weighted by {brief(told['weight'])}" if told["weight"] else ""
    rows = {
        "nodes": f"{told['nodes']:,}",
        "edges": f"{told['edges']:,}, {direction}{weight}",
        "features": f"{told['features']:,}, from {', '.join(map(brief, told['feature_columns'])) or 'no column'}",
        "classes": f"{_named(told['classes'])}; {told['unknown']:,} unknown"
        if told["unknown"] < told["nodes"]
        else "none: no node has a label, so nothing can be trained; see to the column of labels, or name another",
        "owners": "not said; parties are drawn at random" if told["owners"] is None else _named(told["owners"]),
        "times": "not said" if told["time"] is None else f"from {told['time']}: --split time can be used",
    }
    for what, says in rows.items():
        table.add_row(what, escape(says))
    out.print(table)


def _named(counts: dict[str, int]) -> str:
    if len(counts) > MOST_NAMED:
        return f"{len(counts):,}, of {min(counts.values()):,} to {max(counts.values()):,} nodes"
    return ", ".join(f"{brief(name)} ({count:,})" for name, count in counts.items())
