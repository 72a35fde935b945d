"""What the structure exchange costs: time, memory and kept entries, with more parties and more hops.

Each row is a process of its own, so that its peak is its own; the parties post frames to each other as in any run.

    FEDSTRUCT_DATA=… python benchmarks/exchange.py [cora:10:10 pubmed:10:20:half …]   (dataset : parties : L_s : wire)
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import numpy as np

from fedstruct.experiments.process import peak_rss_mb, prepare_process
from fedstruct.federation.local import LocalFederation
from fedstruct.federation.message import Wire
from fedstruct.federation.watch import Watch
from fedstruct.graph import datasets, generate, partition
from fedstruct.graph.graph import Graph
from fedstruct.methods.exchange import EXCHANGE, Blocks, ExchangeParty, StructureOptions, acquire

ROWS = ("cora:10:10", "cora:50:10", "pubmed:10:20", "pubmed:50:20", "pubmed:10:20:half")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", default=ROWS, metavar="DATASET:K:L_s[:WIRE]")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measured(*asked.rows[0].split(":"))))
        return
    heads = "dataset, K, L_s, wire, wall, CPU, peak MB, before it, entries sent, bytes each, CPU ns each, to K = 10"
    print(f"| {heads.replace(', ', ' | ')} |\n|{' --- |' * 12}")
    base: dict[tuple[str, str], float] = {}
    for row in asked.rows:
        name, parties, hops, *wire = row.split(":")
        if datasets.where(name) is None:
            print(f"| {name} | no file | | | | | | | | | | |")
            continue
        said = subprocess.run([sys.executable, __file__, "--one", row], check=True, capture_output=True, text=True)
        found = json.loads(said.stdout)
        each = 1e9 * found["cpu"] / max(found["entries"], 1)
        if parties == "10" and not wire:
            base[name, hops] = each
        ratio = f"{each / base[name, hops]:.2f}" if (name, hops) in base else ""
        sent, form = found["entries"], wire[0] if wire else "full"
        print(
            f"| {name} | {parties} | {hops} | {form} | {found['wall']:.2f} s | {found['cpu']:.2f} s "
            f"| {found['peak']:,.0f} | {found['before']:,.0f} | {sent:,} | {found['bytes'] / max(sent, 1):.2f} "
            f"| {each:.0f} | {ratio} |",
            flush=True,
        )


def measured(name: str, parties: str, hops: str, wire: Wire = "full") -> dict[str, float]:
    """One exchange; what is compiled and loaded at first is no part of it."""
    prepare_process()
    exchange(generate.planted(nodes=24), 2, 2, wire)
    return exchange(datasets.load(name), int(parties), int(hops), wire)


def exchange(graph: Graph, parties: int, hops: int, wire: Wire) -> dict[str, float]:
    parts = partition.random(graph, parties).parties
    options, names = StructureOptions(layers_structure=hops), tuple(p.name for p in parts)
    federation = LocalFederation(
        [ExchangeParty(own, names, options) for own in parts], EXCHANGE, run="measured", wire=wire
    )
    before, wall, cpu = peak_rss_mb(), time.perf_counter(), time.process_time()
    acquire(federation, options, np.array([p.nodes for p in parts]), Watch())
    sent = federation.books.sent(kind=Blocks)
    return {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "peak": peak_rss_mb(),
        "before": before,
        "entries": sent.rows,
        "bytes": sent.bytes,
    }


if __name__ == "__main__":
    main()
