"""The batch engine: many experiments and seeds, in one process or in several, each shared step taken once."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeAlias

from fedstruct.errors import FedstructError
from fedstruct.experiments.bench import Bench
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.memory import Memory
from fedstruct.experiments.process import use_cores
from fedstruct.experiments.result import RunResult
from fedstruct.experiments.worker import Advance, Begin, serve
from fedstruct.federation.watch import Watch
from fedstruct.methods.exchange import StructureOptions

Unit: TypeAlias = tuple[int, int]
"""A run to be done: the position of its experiment, and its seed."""

Outcome: TypeAlias = RunResult | FedstructError
"""A run, or why there is none."""

Watching: TypeAlias = Callable[[Unit], Watch]
"""Gives each run a watch. Of a run in another process it sees the rounds, and no phases."""


def unwatched(unit: Unit) -> Watch:
    return Watch()


class Batch:
    """Experiments whose runs are done together.

    Runs with the same exchange form a group: one process does them one after the other and keeps the exchange in
    memory until the group is done. Groups that will take long go first.
    """

    def __init__(self, experiments: Sequence[Experiment], bench: Bench | None = None) -> None:
        self.experiments = list(experiments)
        self.methods = [e.build_method() for e in self.experiments]
        self.bench = bench or Bench()

    @property
    def units(self) -> list[Unit]:
        """Every seed of every experiment."""
        return [(i, seed) for i, e in enumerate(self.experiments) for seed in range(e.seeds)]

    def all(
        self, jobs: int = 1, watching: Watching = unwatched, units: Iterable[Unit] | None = None
    ) -> Iterator[tuple[Unit, RunResult]]:
        """Do the runs, or some of them; gives each as it finishes, and ends where one fails."""
        for (index, seed), outcome in self.outcomes(jobs, watching, units):
            if isinstance(outcome, RunResult):
                yield (index, seed), outcome
            elif len(self.experiments) == 1:
                raise outcome
            else:
                raise FedstructError(f"{self.experiments[index].method}, seed {seed}: {outcome}")

    def outcomes(
        self, jobs: int = 1, watching: Watching = unwatched, units: Iterable[Unit] | None = None
    ) -> Iterator[tuple[Unit, Outcome]]:
        """The same, where a run that fails does not end the others."""
        groups = self.groups(self.units if units is None else units)
        if min(jobs, len(groups)) <= 1:
            use_cores(max((self.bench.graph(e).adjacency.nnz for e in self.experiments), default=0))
            for group in groups:
                yield from self.together(group, watching)
        else:
            yield from self._by_workers(groups, min(jobs, len(groups)), watching)

    def groups(self, units: Iterable[Unit]) -> list[list[Unit]]:
        """Units that share an exchange side by side, the longest work first."""
        grouped: dict[Any, list[Unit]] = {}
        for unit in units:
            grouped.setdefault(self._shares(unit), []).append(unit)
        return sorted(grouped.values(), key=lambda group: -sum(map(self._effort, group)))

    def together(self, group: Sequence[Unit], watching: Watching = unwatched) -> Iterator[tuple[Unit, Outcome]]:
        """The runs of one group, in this process."""
        memory: Memory | None = {} if len(group) > 1 else None
        for index, seed in group:
            outcome: Outcome
            try:
                watch = watching((index, seed))
                outcome = self.bench.one(self.experiments[index], self.methods[index], seed, memory, watch)
            except FedstructError as error:
                outcome = error
            yield (index, seed), outcome

    def _shares(self, unit: Unit) -> Any:
        index, seed = unit
        experiment, options = self.experiments[index], self.methods[index].options
        if experiment.separate or not isinstance(options, StructureOptions):
            return unit
        return experiment.cut_key(seed), options.exchange_key

    def _effort(self, unit: Unit) -> int:
        """A rough measure of the work in a run: the exchange's hops for each party, and the rounds."""
        experiment, options = self.experiments[unit[0]], self.methods[unit[0]].options
        hops = options.exchange_hops if isinstance(options, StructureOptions) else 0
        rounds: int = getattr(options, "rounds", 1)
        return self.bench.graph(experiment).edges * (hops * (experiment.parties or 10) + rounds)

    def _by_workers(self, groups: list[list[Unit]], jobs: int, watching: Watching) -> Iterator[tuple[Unit, Outcome]]:
        context = multiprocessing.get_context("spawn")
        todo = deque(groups)
        workers, busy = [], list[Connection]()
        watches: dict[Unit, Watch] = {}
        for _ in range(jobs):
            ours, theirs = context.Pipe()
            worker = context.Process(target=serve, args=(theirs,), daemon=True)
            worker.start()
            theirs.close()
            workers.append(worker)
            busy.append(ours)
        try:
            for pipe in busy:
                pipe.send((self.experiments, self.bench.elsewhere()))
                pipe.send(todo.popleft())
            while busy:
                ready = wait(busy)
                for pipe in [p for p in busy if p in ready]:
                    said = pipe.recv()
                    if isinstance(said, Exception):
                        raise said
                    if isinstance(said, Begin):
                        watches[said.unit] = watching(said.unit)
                    elif isinstance(said, Advance):
                        watches[said.unit].advance(said.done, said.of, **said.figures)
                    elif said is not None:
                        yield said
                    elif todo:
                        pipe.send(todo.popleft())
                    else:
                        busy.remove(pipe)
                        pipe.close()
        except (EOFError, ConnectionError):
            raise FedstructError(
                "a worker process died, perhaps for lack of memory; the runs before it are saved; try fewer --jobs"
            ) from None
        finally:
            for worker in workers:
                worker.terminate()
                worker.join()
