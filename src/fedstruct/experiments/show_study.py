"""What the terminal shows of several experiments."""

from __future__ import annotations

from typing import Any

from rich.markup import escape
from rich.table import Table

from fedstruct.experiments.show import items, out, percent, say, size, spread


def comparison_table(told: dict[str, Any]) -> None:
    """Methods side by side."""
    methods = told["methods"]
    first, seeds = methods[0]["method"], len(methods[0]["runs"])
    where = f"{told['dataset']}, {told['parties']} parties ({told['partition']}), {seeds} seed{'s' * (seeds > 1)}"
    table = Table(title=escape(where), title_justify="left", box=None, pad_edge=False, header_style="dim")
    table.add_column("method", no_wrap=True)
    measures = {"macro_f1": "macro F1"}
    if "recall_at" in told:
        measures |= {"auprc": "AUPRC", "recall": f"recall@{told['recall_at']}"}
    for heading in ("test accuracy", "difference", *measures.values(), "CPU s", "sent"):
        table.add_column(heading, justify="right")
    for row in methods:
        table.add_row(
            row["method"],
            f"[bold]{spread(row['test_accuracy'])}[/bold]",
            difference(row["difference"]),
            *(percent(row[measure]["mean"]) for measure in measures),
            f"{row['cpu_seconds']:.2f}",
            size(row["bytes"]),
            style="dim" if row["pooled"] else None,
        )
    out.print(table)
    say(
        f"\nMeans over seeds, in percent, ± the standard deviation; the difference to {first} is paired by seed, ± its "
        f"standard error. CPU time and size are those of one run. Protocol {told['protocol']}, preset {told['preset']}."
    )
    say("\n[bold]What leaves a party while it trains[/bold], beside counts of right and wrong at the end")
    leaves: dict[str, list[str]] = {}
    for row in methods:
        leaves.setdefault(_leaves(row), []).append(row["method"])
    items([f"{what}: {', '.join(names)}" for what, names in leaves.items()])


def difference(figures: dict[str, float | None] | None) -> str:
    """
    >>> difference({"mean": -0.0123, "standard_error": 0.002}), difference({"mean": 0.01, "standard_error": None})
    ('-1.23 ± 0.20', '+1.00')
    """
    if figures is None or figures["mean"] is None:
        return "–"
    error = figures["standard_error"]
    return f"{100 * figures['mean']:+.2f}" + ("" if error is None else f" ± {percent(error)}")


def _leaves(row: dict[str, Any]) -> str:
    if row["pooled"]:
        return "everything, into one hand (dimmed: a bound, not a federation)"
    to_coordinator, to_peers = row["leaves"].values()
    return f"{to_coordinator} to the coordinator" + ("" if to_peers == "nothing" else f", {to_peers} to peers")


MEASURED = {"validation_auprc": "validation AUPRC", "validation_macro_f1": "validation macro F1"}


def tuning_table(told: dict[str, Any], most: int = 5) -> None:
    """The best candidates, and in what they differ from the first one."""
    candidates = told["candidates"]
    start = next(c["options"] for c in candidates if c["candidate"] == 0)
    where = f"{told['method']} on {told['dataset']}, {told['parties']} parties ({told['partition']})"
    table = Table(title=escape(where), title_justify="left", box=None, pad_edge=False, header_style="dim")
    by = told["by"]
    table.add_column(MEASURED.get(by, by.replace("_", " ")), justify="right", no_wrap=True)
    table.add_column("seeds", justify="right")
    table.add_column("options")
    for candidate in candidates[:most]:
        changed = {k: v for k, v in candidate["options"].items() if v != start[k]}
        words = ", ".join(f"{k} {_short(v)}" for k, v in changed.items()) or "the starting point"
        table.add_row(spread(candidate[by]), str(candidate["seeds"]), words)
    out.print(table)
    say("\nIn percent, ± the standard deviation. Options are said where they differ from the starting point, which is")
    say(", ".join(f"{k} {_short(v)}" for k, v in start.items()) + ".")
    say(
        f"{told['runs']} runs, {len(candidates)} candidates; no label of a test node was read. "
        f"Protocol {told['protocol']}."
    )


def _short(value: Any) -> str:
    return "×".join(map(str, value)) if isinstance(value, (tuple, list)) else f"{value}"


def sweep_table(told: dict[str, Any]) -> None:
    """A sweep, one row for each combination of values and each method."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    measures = {"macro_f1": "macro F1"}
    if any("recall_at" in cell for cell in told["cells"]):
        measures |= {"auprc": "AUPRC", "recall": f"recall@{told['cells'][0]['recall_at']}"}
    for key in told["over"]:
        table.add_column(key, justify="right")
    table.add_column("method")
    for heading in ("seeds", "test accuracy", *measures.values(), "CPU s", "sent"):
        table.add_column(heading, justify="right", no_wrap=True)
    for cell in told["cells"]:
        table.add_row(
            *(escape(str(value)) for value in cell["at"].values()),
            cell["method"],
            str(cell["seeds"]),
            f"[bold]{spread(cell['test_accuracy'])}[/bold]",
            *(percent(cell[measure]["mean"]) if measure in cell else "–" for measure in measures),
            f"{cell['cpu_seconds']:.2f}",
            size(cell["bytes"]),
        )
    out.print(table)
    protocols = " and ".join(dict.fromkeys(cell["protocol"] for cell in told["cells"]))
    say(
        "\nMeans over seeds, in percent, ± the standard deviation. CPU time and size are those of one run. "
        f"Protocol {protocols}, preset {told['preset']}."
    )
