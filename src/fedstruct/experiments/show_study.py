"""What the terminal shows of several experiments."""

from __future__ import annotations

import re
from textwrap import wrap
from typing import Any

from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table

from fedstruct.experiments.show import items, out, percent, say, size, spread
from fedstruct.experiments.visible import brief


def comparison_table(told: dict[str, Any]) -> None:
    """Methods side by side."""
    methods = told["methods"]
    first, seeds = methods[0]["method"], len(methods[0]["runs"])
    where = f"{told['dataset']}, {told['parties']} parties ({told['partition']}), {seeds} seed{'s' * (seeds > 1)}"
    measures = {"macro_f1": "macro F1"}
    if "recall_at" in told:
        measures |= {"auprc": "AUPRC", "recall": f"recall@{told['recall_at']}"}
    figures = {
        "test accuracy": [spread(row["test_accuracy"]) for row in methods],
        "difference": [difference(row["difference"]) for row in methods],
        **{heading: [percent(row[measure]["mean"]) for row in methods] for measure, heading in measures.items()},
        "CPU s": [f"{row['cpu_seconds']:.2f}" for row in methods],
        "sent": [size(row["bytes"]) for row in methods],
    }
    table = _table({"method": [row["method"] for row in methods]}, figures, [row["pooled"] for row in methods])
    table.title = escape(where)
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


def _table(names: dict[str, list[str]], figures: dict[str, list[str]], dim: list[bool] | None = None) -> Table:
    """Columns by heading, the last of `names` that of methods.

    Where there is little room, headings and methods take more lines, and figures stay whole.
    """
    columns = {heading: [brief(cell) for cell in cells] for heading, cells in (names | figures).items()}
    *_, method = names
    gap = 2
    if _width(columns, gap) > out.width:
        gap = 1
        columns = {re.sub(r" |(?<=_)|(?=@)", "\n", heading): cells for heading, cells in columns.items()}
        others = _width({heading: cells for heading, cells in columns.items() if heading != method}, gap) + gap
        room = max(out.width - others, len("fedstruct-"))
        columns[method] = ["\n".join(wrap(name, room)) for name in columns[method]]
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim", title_justify="left")
    for heading in columns:
        bold = "bold" if heading.split() == ["test", "accuracy"] else ""
        table.add_column(heading, justify="left" if heading == method else "right", no_wrap=True, style=bold)
    for i, row in enumerate(zip(*columns.values(), strict=True)):
        table.add_row(*map(escape, row), style="dim" if dim and dim[i] else None)
    return table


def _width(columns: dict[str, list[str]], gap: int) -> int:
    """How wide a table of these would be."""
    widths = [max(cell_len(line) for text in (h, *cells) for line in text.split("\n")) for h, cells in columns.items()]
    return sum(widths) + gap * (len(widths) - 1)


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
    cells = told["cells"]
    measures = {"macro_f1": "macro F1"}
    if any("recall_at" in cell for cell in cells):
        measures |= {"auprc": "AUPRC", "recall": f"recall@{cells[0]['recall_at']}"}
    figures = {
        "seeds": [str(cell["seeds"]) for cell in cells],
        "test accuracy": [spread(cell["test_accuracy"]) for cell in cells],
        **{
            heading: [percent(cell[measure]["mean"]) if measure in cell else "–" for cell in cells]
            for measure, heading in measures.items()
        },
        "CPU s": [f"{cell['cpu_seconds']:.2f}" for cell in cells],
        "sent": [size(cell["bytes"]) for cell in cells],
    }
    at = {key: [str(cell["at"][key]) for cell in cells] for key in told["over"]}
    table = _table({**at, "method": [cell["method"] for cell in cells]}, figures)
    out.print(table)
    protocols = " and ".join(dict.fromkeys(cell["protocol"] for cell in told["cells"]))
    say(
        "\nMeans over seeds, in percent, ± the standard deviation. CPU time and size are those of one run. "
        f"Protocol {protocols}, preset {told['preset']}."
    )
