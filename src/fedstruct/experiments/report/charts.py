"""The pictures of the page: where each mark stands. The templates draw them, in percent of whatever room there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log10
from typing import Any

from fedstruct.experiments.report.scale import Scale

COLOURS = 8
"""Series colours of the style sheet; a chart has no more lines than that."""

MOST_CHARTS, MOST_DOTS, MOST_POINTS = 5, 3000, 120

MEASURES = {"test_accuracy": "Test accuracy", "auprc": "AUPRC", "recall": "Recall"}


def strips(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each measure a row for each run: a dot for each seed, the mean, and the standard deviation on both sides."""
    return [strip(name, [run for run in runs if name in run]) for name in MEASURES if any(name in run for run in runs)]


def strip(measure: str, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    values = [value for run in runs for each in run["runs"] if (value := each[measure]) is not None]
    spreads = [run[measure] for run in runs if run[measure]["mean"] is not None]
    ends = [s["mean"] + sign * (s["std"] or 0.0) for s in spreads for sign in (-1, 1)]
    scale = Scale.over([100 * value for value in values + ends])
    dots = sum(len(run["runs"]) for run in runs) <= MOST_DOTS
    rows = []
    for run in runs:
        mean, std = run[measure]["mean"], run[measure]["std"] or 0.0
        seeds = [each for each in run["runs"] if each[measure] is not None] if dots else []
        row = {"name": run["name"], "spread": run[measure], "dots": [], "mean": None}
        if mean is not None:
            row["mean"] = scale.at(100 * mean)
            row["bar"] = [scale.at(100 * (mean - std)), scale.at(100 * (mean + std))] if std else None
            row["dots"] = [
                {"at": scale.at(100 * each[measure]), "seed": each["seed"], "value": each[measure]} for each in seeds
            ]
        rows.append(row)
    name = MEASURES[measure]
    if measure == "recall":
        budgets = sorted({_many(run["recall_at"]) for run in runs if "recall_at" in run})
        name += f" among {' or '.join(budgets)} alerts"
    return {"measure": name, "rows": rows, "ticks": [(tick, scale.at(tick)) for tick in scale.ticks], "dots": dots}


def _many(alerts: int | str) -> str:
    """So many alerts, or a share of the nodes that are judged."""
    return alerts if isinstance(alerts, str) else f"{alerts:,}"


def curves(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Loss over rounds, so many runs in one chart as there are colours; all charts have the same axes."""
    drawn = [run for run in runs if run["curve"]][: COLOURS * MOST_CHARTS]
    if not drawn:
        return []
    points = [point for run in drawn for point in run["curve"]]
    losses = [point[what] for point in points for what in ("low", "high")]
    log = min(losses) > 0 and max(losses) >= 50 * min(losses)
    down = Scale.decades(losses) if log else Scale.over([0.0, *losses], most=6)
    along = Scale.over([0, *(point["round"] for point in points)])
    last = max(point["round"] for point in points)
    along = Scale(along.low, max(last, 1), tuple(tick for tick in along.ticks if tick <= last))
    return [_curves(drawn[i : i + COLOURS], along, down, log) for i in range(0, len(drawn), COLOURS)]


def _curves(runs: Sequence[dict[str, Any]], along: Scale, down: Scale, log: bool) -> dict[str, Any]:
    exponent: Callable[[float], float] = log10 if log else float
    lines = []
    for number, run in enumerate(runs):
        points = thinned(run["curve"], MOST_POINTS)
        x = [10 * along.at(point["round"]) for point in points]
        mean, low, high = (
            [1000 - 10 * down.at(exponent(point[what])) for point in points] for what in ("mean", "low", "high")
        )
        lines.append(
            {
                "name": run["name"],
                "colour": number,
                "line": _points(x, mean),
                "band": _points([*x, *reversed(x)], [*low, *reversed(high)]) if low != high else None,
                "end": mean[-1] / 10,
                "last": points[-1],
            }
        )
    for line, at in zip(lines, apart([line["end"] for line in lines]), strict=True):
        line["label"] = at
    rounds = sorted({point["round"] for run in runs for point in run["curve"]})
    known = [{point["round"]: point for point in run["curve"]} for run in runs]
    wanted = thinned(rounds, 40)
    half = 500 / max(len(wanted), 1)
    return {
        "lines": lines,
        "x": [(tick, along.at(tick)) for tick in along.ticks],
        "y": [(_power(int(tick)) if log else tick, 100 - down.at(tick)) for tick in down.ticks],
        "log": log,
        "stops": [
            {
                "x": 10 * along.at(t),
                "from": max(10 * along.at(t) - half, 0.0),
                "width": 2 * half,
                "tip": "\n".join(
                    [f"round {t}"]
                    + [
                        f"{each[t]['mean']:.3g}  {run['name']}"
                        for run, each in zip(runs, known, strict=True)
                        if t in each
                    ]
                ),
            }
            for t in wanted
        ],
        "rounds": [{"round": t, "values": [each.get(t) for each in known]} for t in thinned(rounds, 15)],
        "names": [run["name"] for run in runs],
    }


def thinned(values: Sequence[Any], most: int) -> list[Any]:
    """At most so many of them, evenly, the first and the last among them.

    >>> thinned([1, 2, 3, 4, 5, 6, 7], 3), thinned([1, 2], 3)
    ([1, 4, 7], [1, 2])
    """
    if len(values) <= most:
        return list(values)
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]


def apart(places: Sequence[float], gap: float = 7.0, end: float = 100.0) -> list[float]:
    """The places, in percent, moved as far as labels need it to not lie on each other; their order stays.

    >>> apart([50, 51, 10]), apart([99, 100])
    ([50, 57.0, 10], [93.0, 100.0])
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for before, i in pairwise(order):
        moved[i] = max(moved[i], moved[before] + gap)
    limit = end
    for i in reversed(order):
        moved[i] = min(moved[i], limit)
        limit = moved[i] - gap
    return moved


def _power(exponent: int) -> str:
    small = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{10.0**exponent:g}" if -4 < exponent < 5 else f"10{small}"


def _points(x: Sequence[float], y: Sequence[float]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
