"""Seconds, memory and bytes of FedStruct by propagation on synthetic graphs of 10⁴ to 10⁷ nodes, fitted and drawn.

Each row is a process of its own, so that its peak memory is its own; a graph is made before it is measured. A round is
the median of those after the first, which also puts the whole adjacency together.

    python benchmarks/scale.py [--sizes 1e4,1e5,1e6,1e7] [--parties 2,5,10,50] [--plot FILE.svg]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch

from fedstruct import partition, run
from fedstruct.experiments.estimate import Size, held
from fedstruct.experiments.plot import COLOURS, STYLE
from fedstruct.experiments.process import cores, peak_rss_mb, prepare_process
from fedstruct.experiments.protocol import split
from fedstruct.federation.watch import Watch
from fedstruct.graph import datasets
from fedstruct.methods import FedStruct

AT, PARTIES = 1e5, 10
"""Parties vary at this size, and sizes with so many parties."""
MEASURED = {"round": "seconds of a round", "peak": "peak memory", "bytes": "bytes of a round"}
UNITS = {"round": "", "peak": ", MB", "bytes": ", MB"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1e4,1e5,1e6,1e7")
    parser.add_argument("--parties", default="2,5,10,50")
    parser.add_argument("--largest-features", type=float, default=1e7, help="sizes up to which features are carried")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--one", nargs=3, metavar=("N", "PARTIES", "CARRY"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        nodes, parties, carry = asked.one
        print(json.dumps(measured(float(nodes), int(parties), carry)))
        return
    sizes = [float(size) for size in asked.sizes.split(",")]
    rows = []
    heads = "nodes, parties, carry, load, cut, first round, a round, evaluation, peak memory, estimate, sent in a round"
    print(f"| {heads.replace(', ', ' | ')} |")
    print("|" + " --- |" * 11)
    points = [(size, PARTIES) for size in sizes]
    points += [(AT, k) for k in map(int, asked.parties.split(",")) if (AT, k) not in points]
    for carry in ("structure", "features"):
        for nodes, parties in points:
            if carry == "features" and nodes > asked.largest_features:
                continue
            row = in_a_process(nodes, parties, carry)
            rows.append(row)
            seconds = (f"{row[what]:.3g} s" for what in ("load", "cut", "first", "round", "evaluation"))
            print(
                f"| {nodes:,.0f} | {parties} | {carry} | {' | '.join(seconds)} "
                f"| {row['peak']:,.0f} MB | {row['estimate']:,.0f} MB | {row['bytes']:,.1f} MB |",
                flush=True,
            )
    print()
    for carry in ("structure", "features"):
        there = [r for r in rows if r["carry"] == carry and r["parties"] == PARTIES]
        for some, told in ((there, "all sizes"), (there[-2:], "the last two")):
            if len(there) > 1:
                fits = ", ".join(f"{what} ∝ n^{exponent(some, key):.2f}" for key, what in MEASURED.items())
                print(f"carry={carry}, {told}: {fits}")
    if asked.plot:
        draw(rows, asked.plot)


def in_a_process(nodes: float, parties: int, carry: str) -> dict:
    # Also the graph is made in a process of its own: a child's peak begins at what its parent holds.
    subprocess.run(
        [sys.executable, "-c", f"from fedstruct.graph import datasets; datasets.load('{name(nodes)}')"], check=True
    )
    command = [sys.executable, __file__, "--one", str(nodes), str(parties), carry]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def name(nodes: float) -> str:
    return f"synthetic:n={nodes:.0f}"


class Rounds(Watch):
    """When each round ended."""

    def __init__(self) -> None:
        self.ends = [time.perf_counter()]

    def advance(self, done: int, of: int, **figures: float) -> None:
        self.ends.append(time.perf_counter())


def measured(nodes: float, parties: int, carry: str) -> dict:
    rounds = 6 if nodes > AT else 41
    prepare_process()
    torch.set_num_threads(cores())
    begun = time.perf_counter()
    graph = split(datasets.load(name(nodes)), 0, 0.1, 0.1)
    loaded = time.perf_counter()
    parts = partition.random(graph, parties)
    cut = time.perf_counter()
    method = FedStruct(structure="propagated", carry=carry, layers_structure=5, rounds=rounds)
    watch = Rounds()
    result = run(method, parts, watch=watch)
    spent = np.diff(watch.ends)
    return {
        "nodes": nodes, "parties": parties, "carry": carry, "load": loaded - begun, "cut": cut - loaded,
        "first": result.seconds["training"] - spent[1:].sum(), "round": median(spent[1:]),
        "evaluation": result.seconds["evaluation"], "peak": peak_rss_mb(),
        "estimate": sum(held(method, Size.of(graph, parties, 0.1)).values()) / 1e6,
        "bytes": result.bytes["training"] / rounds / 1e6,
    }  # fmt: skip


def exponent(rows: list[dict], what: str) -> float:
    slope, _ = np.polyfit(np.log([r["nodes"] for r in rows]), np.log([r[what] for r in rows]), 1)
    return float(slope)


def draw(rows: list[dict], path: Path) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(9.6, 3.4), layout="constrained", facecolor="white")
        for axes, (what, told) in zip(figure.subplots(1, 3), MEASURED.items(), strict=True):
            for i, carry in enumerate(("structure", "features")):
                there = [r for r in rows if r["carry"] == carry and r["parties"] == PARTIES]
                x, y = [r["nodes"] for r in there], [r[what] for r in there]
                axes.loglog(
                    x, y, marker="os"[i], color=COLOURS[i], markersize=4.5, linewidth=1.5, label=f"carry={carry}"
                )
            axes.set_title(told + UNITS[what], loc="left", fontsize=10, color="#222222")
            axes.set_xlabel("nodes")
            axes.grid(color="#e6e6e6", linewidth=0.8)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
        figure.axes[0].legend(frameon=False, fontsize=9)
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
