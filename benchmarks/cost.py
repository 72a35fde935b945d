"""What a run costs: CPU seconds, memory and bytes on Cora with 5, 10 and 50 parties, one thread.

The parties' counts are interleaved, so that a machine that slows down slows all of them; medians over the seeds.

    FEDSTRUCT_DATA=… python benchmarks/cost.py [--seeds 10]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from statistics import median

from fedstruct.experiments.config import Experiment
from fedstruct.experiments.experiment import Runs
from fedstruct.experiments.process import peak_rss_mb, prepare_process
from fedstruct.graph import datasets

PARTIES = (5, 10, 50)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    asked = parser.parse_args()
    if datasets.where("cora") is None:
        print("no file of cora: set FEDSTRUCT_DATA")
        return
    prepare_process()
    experiments = {k: Runs(Experiment(dataset="cora", parties=k)) for k in PARTIES}
    for runs in experiments.values():
        runs.one(0)
    results = {k: [] for k in PARTIES}
    for seed in range(asked.seeds):
        for k, runs in experiments.items():
            results[k].append(runs.one(seed))
    print("| parties | structure | training | evaluation | training + evaluation | to 5 parties | MB sent | messages |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    base = 0.0
    for k, runs in results.items():
        cpu = {phase: median(r.cpu_seconds[phase] for r in runs) for phase in runs[0].cpu_seconds}
        both = median(r.cpu_seconds["training"] + r.cpu_seconds["evaluation"] for r in runs)
        base = base or both
        sent = median(sum(r.bytes.values()) for r in runs) / 1e6
        print(
            f"| {k} | {cpu['structure']:.2f} s | {cpu['training']:.3f} s | {cpu['evaluation']:.3f} s | {both:.3f} s "
            f"| {both / base:.2f} | {sent:,.0f} | {runs[0].messages:,} |"
        )
    print(f"\npeak memory of this process: {peak_rss_mb():,.0f} MB")
    best = min(_help() for _ in range(5))
    print(f"fedstruct --help: {best:.2f} s")


def _help() -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-m", "fedstruct", "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
