"""An experiment: the same method over several seeds, one after the other or in several processes."""

from __future__ import annotations

import ctypes
import multiprocessing
import resource
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from fedstruct.errors import FedstructError
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.protocol import GIVEN, ICLR2025, prepared, split
from fedstruct.experiments.result import RunResult, mean, std
from fedstruct.experiments.run import run
from fedstruct.federation.watch import Watch
from fedstruct.graph.graph import Graph


class Runs:
    """The runs of an experiment; iterating trains them, in the order in which they finish."""

    def __init__(self, experiment: Experiment, graph: Graph | None = None) -> None:
        self.experiment = experiment
        self.method = experiment.build_method()
        self.graph = prepared(graph or experiment.load_graph())
        # Bad settings are found out before the first run, and before a folder is made.
        self._first = experiment.cut(self._split(0), 0)
        self.parties = len(self._first)

    def one(self, seed: int, watch: Watch | None = None) -> RunResult:
        e = self.experiment
        protocol = GIVEN if self.graph.split is not None else ICLR2025
        parts = e.cut(self._split(seed), seed) if seed else self._first
        return run(self.method, parts, seed, separate=e.separate, protocol=protocol, watch=watch)

    def all(self, jobs: int = 1, watch: Watch | None = None) -> Iterator[RunResult]:
        seeds = range(self.experiment.seeds)
        if jobs == 1 or len(seeds) == 1:
            yield from (self.one(seed, watch) for seed in seeds)
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(jobs, len(seeds)), context, _begin_worker, (self.experiment, self.graph)) as pool:
            futures = [pool.submit(_work, seed) for seed in seeds]
            try:
                for future in as_completed(futures):
                    yield future.result()
            except BrokenProcessPool:
                raise FedstructError(
                    "a worker process died, perhaps for lack of memory; the runs before it are saved; try fewer --jobs"
                ) from None
            finally:
                pool.shutdown(cancel_futures=True)

    def _split(self, seed: int) -> Graph:
        if self.graph.split is not None:
            return self.graph
        return split(self.graph, seed, self.experiment.train, self.experiment.validation)

    def summary(self, runs: list[RunResult]) -> dict[str, Any]:
        """The experiment as JSON."""
        e = self.experiment
        runs = sorted(runs, key=lambda r: r.seed)
        measures = ["test_accuracy", "macro_f1"] + (["auprc"] if self.graph.classes == 2 else [])
        return {
            "dataset": e.dataset,
            "method": e.method,
            "protocol": runs[0].protocol,
            "preset": e.preset,
            "parties": self.parties,
            "partition": e.partition,
            **{
                name: {"mean": mean([getattr(r, name) for r in runs]), "std": std([getattr(r, name) for r in runs])}
                for name in measures
            },
            "options": self.method.options.model_dump(),
            "runs": [r.as_json() for r in runs],
            "peak_rss_mb": peak_rss_mb(),
        }


def peak_rss_mb() -> float:
    """The most memory that this process, or any that it started, has held."""
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(most / (1 << 20 if sys.platform == "darwin" else 1 << 10), 1)


def prepare_process() -> None:
    """Make this process ready for many short runs: one thread each, and freed memory kept for the next.

    One thread, because the sums are small, and because their order then is the same everywhere. glibc hands large
    arrays back to the system as soon as they are freed and faults them in again: a fifth of the exchange's time.
    """
    import torch

    torch.set_num_threads(1)
    if sys.platform == "linux":
        try:
            mallopt = ctypes.CDLL(None).mallopt
        except (OSError, AttributeError):
            return
        trim_threshold, mmap_threshold = -1, -3
        mallopt(trim_threshold, 1 << 30)
        mallopt(mmap_threshold, 1 << 25)


_runs: Runs | None = None


def _begin_worker(experiment: Experiment, graph: Graph) -> None:
    global _runs
    prepare_process()
    _runs = Runs(experiment, graph)


def _work(seed: int) -> RunResult:
    assert _runs is not None
    return _runs.one(seed)


def folder_name(experiment: Experiment) -> str:
    return f"{Path(experiment.dataset).stem}-{experiment.method}"
