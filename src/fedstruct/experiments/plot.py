"""The picture of a sweep, as SVG: one line per method over the values of the first key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedstruct.errors import FedstructError
from fedstruct.graph.datasets import stem

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b4a9c", "#6b6b6b")
MARKERS = "osD^vPX*"

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.edgecolor": "#999999",
    "axes.labelcolor": "#222222",
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "figure.constrained_layout.h_pad": 0.12,
    "figure.constrained_layout.w_pad": 0.12,
    "svg.hashsalt": "fedstruct",
}


def plot(told: dict[str, Any], path: Path) -> None:
    """Draw a sweep; the same figures give the same file, byte for byte."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.2), layout="constrained", facecolor="white")
        _draw(figure.subplots(), told)
        try:
            figure.savefig(path, format=path.suffix[1:], metadata={"Date": None} if path.suffix == ".svg" else None)
        except OSError as error:
            raise FedstructError(f"{path} cannot be written: {error.strerror or error}") from None


def _draw(axes: Any, told: dict[str, Any]) -> None:
    key = next(iter(told["over"]))
    values, series = told["over"][key], _series(told, key)
    words = any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in values)
    place = _word_axis(axes, values) if words else _number_axis(axes, values)
    for i, (name, cells) in enumerate(series.items()):
        # Nothing lies between two words: points alone, those of one word side by side.
        aside = 0.08 * (i - (len(series) - 1) / 2) if words else 0.0
        axes.errorbar(
            [place[str(cell["at"][key])] + aside for cell in cells],
            [100 * cell["test_accuracy"]["mean"] for cell in cells],
            yerr=[100 * (cell["test_accuracy"]["std"] or 0.0) for cell in cells],
            label=name, color=COLOURS[i % 8], marker=MARKERS[(i + i // 8) % 8], markersize=5, linewidth=1.6,
            elinewidth=1, capsize=2.5, linestyle="" if words else "-" if i < 8 else "--",
        )  # fmt: skip
    cell, seeds = told["cells"][0], max(cell["seeds"] for cell in told["cells"])
    fixed = {
        "dataset": stem(str(cell["dataset"])),
        "parties": f"{cell['parties']} parties",
        "partition": f"{told['partition']} partition",
    }
    about = [said for name, said in fixed.items() if name not in told["over"]]
    if len(series) == 1:
        about = [told["methods"][0], *about]
    else:
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    axes.set_title(", ".join([*about, f"{seeds} seed{'s' * (seeds > 1)}"]), loc="left", fontsize=11, color="#222222")
    axes.set_xlabel(key)
    axes.set_ylabel("test accuracy, %" + (" (± std)" if seeds > 1 else ""))
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _series(told: dict[str, Any], key: str) -> dict[str, list[dict[str, Any]]]:
    """The cells of each line, by its name: the method, and the value of the second key where it has one."""
    series: dict[str, list[dict[str, Any]]] = {}
    for cell in told["cells"]:
        if cell["test_accuracy"]["mean"] is not None:
            others = [f"{k} {v}" for k, v in cell["at"].items() if k != key]
            names = [cell["method"]] if len(told["methods"]) > 1 or not others else []
            series.setdefault(", ".join(names + others), []).append(cell)
    return series


def _number_axis(axes: Any, values: list[Any]) -> dict[str, float]:
    """Where each number stands; the axis is logarithmic where they span decades."""
    from matplotlib.ticker import NullLocator

    place = {str(value): float(value) for value in values}
    if min(values) > 0 and max(values) >= 50 * min(values):
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(list(place.values()), list(place))
    return place


def _word_axis(axes: Any, values: list[Any]) -> dict[str, float]:
    """Where each word stands: side by side."""
    place = {str(value): float(i) for i, value in enumerate(values)}
    axes.set_xticks(list(place.values()), list(place))
    axes.set_xlim(-0.5, len(values) - 0.5)
    return place
