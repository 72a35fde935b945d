"""One run: a method, the parts of a graph and a seed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy

from fedstruct.errors import FedstructError
from fedstruct.experiments import metrics
from fedstruct.experiments.alerts import budget
from fedstruct.experiments.memory import Memory, RememberingFederation
from fedstruct.experiments.protocol import GIVEN, PER_PARTY, split
from fedstruct.experiments.result import PHASES, RunResult, exchanged, exposures, sums_told
from fedstruct.federation.federation import Federation
from fedstruct.federation.local import LocalFederation
from fedstruct.federation.message import Message
from fedstruct.federation.watch import Watch
from fedstruct.graph.generate import planted
from fedstruct.graph.graph import TEST, VALIDATION
from fedstruct.graph.partition import Partition, pooled, random
from fedstruct.methods.evaluation import Counts
from fedstruct.methods.method import Method, Trained
from fedstruct.methods.propagated import PropagatedParty


class Clock(Watch):
    """Measures a run, phase by phase, and passes on what it sees."""

    def __init__(self, onward: Watch | None = None) -> None:
        self.federation: Federation | None = None
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self.cpu_seconds = dict.fromkeys(PHASES, 0.0)
        self.steps = dict.fromkeys(PHASES, range(0))
        self.history: list[dict[str, float]] = []
        self._onward = onward or Watch()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        assert self.federation is not None
        first, wall, cpu = self.federation.step + 1, time.perf_counter(), time.process_time()
        with self._onward.phase(name):
            yield
        self.seconds[name] = time.perf_counter() - wall
        self.cpu_seconds[name] = time.process_time() - cpu
        self.steps[name] = range(first, self.federation.step + 1)

    def charge(self, name: str, seconds: float, cpu_seconds: float) -> None:
        """Add what a phase was spared, because it was measured in another run."""
        self.seconds[name] += seconds
        self.cpu_seconds[name] += cpu_seconds

    def advance(self, done: int, of: int, **figures: float) -> None:
        if figures:
            self.history.append({"round": done, **figures})
        self._onward.advance(done, of, **figures)


def run(
    method: Method,
    parts: Partition,
    seed: int = 0,
    *,
    separate: bool = False,
    protocol: str | None = None,
    recall_at: int | str = 100,
    memory: Memory | None = None,
    watch: Watch | None = None,
) -> RunResult:
    """Train on the parts of a graph and count how well it went.

    Where the graph has no split, each party draws its own: a tenth of its nodes for training, a tenth for validation.
    With `separate`, parties step one by one and every message is encoded and sealed, as on a network; without it, a
    `memory` that is handed from run to run spares them the structure exchanges that are in it. With two classes, recall
    is counted among the `recall_at` test nodes that look most like class 1: so many, or a share such as "1%".

    >>> from fedstruct.graph import generate, partition
    >>> from fedstruct.methods import FedStruct
    >>> parts = partition.random(generate.planted(nodes=300), parties=3)
    >>> result = run(FedStruct(rounds=5), parts)
    >>> result.protocol, result.ledger.messages == result.messages
    ('per-party-split', True)
    """
    if method.pooled:
        parts = pooled(parts)
    graphs = parts.parties
    if graphs[0].split is None:
        graphs = tuple(g.with_own_split(seed, 0.1, 0.1) for g in graphs)
        protocol = PER_PARTY
    _rehearse(method)
    names = tuple(g.name for g in graphs)
    parties = [method.party(g, names, seed) for g in graphs]
    clock = Clock(watch)
    name, reused = f"{method.name}-{seed}", None
    if memory is None or separate:
        federation = LocalFederation(parties, method.sends, name, separate, method.wire)
    else:
        federation = RememberingFederation(parties, method.sends, name, memory, method.wire)
    clock.federation = federation
    trained = method.train(federation, seed, clock)
    if isinstance(federation, RememberingFederation):
        reused = federation.repeated is not None
        if federation.repeated is not None:
            clock.charge("structure", federation.repeated.seconds, federation.repeated.cpu_seconds)
    ledger = federation.books
    found = [e for e in (getattr(p, "exposure", None) for p in parties) if e is not None]
    return RunResult(
        seed=seed,
        protocol=protocol or parts.graph.protocol or GIVEN,
        **{"auprc": None, "recall": None, **_measures(trained, recall_at)},
        validation_accuracy=metrics.accuracy(trained.confusion[VALIDATION]),
        by_party=_by_party(method, federation.answers, recall_at),
        seconds=clock.seconds,
        cpu_seconds=clock.cpu_seconds,
        bytes={phase: ledger.sent(steps).bytes for phase, steps in clock.steps.items()},
        messages=ledger.messages,
        exchange=exchanged(ledger, method, parts.graph.nodes, len(parts)),
        exposure=exposures(found),
        sums=sums_told([p.told for p in parties if isinstance(p, PropagatedParty)], method),
        reused=reused,
        history=clock.history,
        ledger=ledger,
        trained=trained,
    )


_rehearsed: set[str] = set()
"""Methods that have run in this process."""


def _rehearse(method: Method) -> None:
    """Let a method run once on almost nothing: what it loads and compiles at first is no part of what a run takes."""
    if method.name in _rehearsed:
        return
    _rehearsed.add(method.name)
    small, once = copy(method), {"rounds", "local_epochs"} & type(method.options).model_fields.keys()
    small.options = method.options.model_copy(update=dict.fromkeys(once, 1))
    graph = split(planted(nodes=24, classes=2, features=2), 0, 0.5, 0.25)
    with suppress(FedstructError):
        run(small, random(graph, parties=2))


def _measures(found: Trained | Counts, recall_at: int | str) -> dict[str, float | None]:
    """The measures of the test nodes; with two classes, AUPRC and recall among them."""
    confusion, scores = found.confusion[TEST], found.scores[TEST]
    measures = {"test_accuracy": metrics.accuracy(confusion), "macro_f1": metrics.macro_f1(confusion)}
    if scores.shape[-1]:
        alerts = budget(recall_at, int(scores.sum()))
        measures |= {"auprc": metrics.auprc(scores), "recall": metrics.recall_at(scores, alerts)}
    return measures


def _by_party(
    method: Method, last: Mapping[str, Message], recall_at: int | str
) -> dict[str, dict[str, float | None]] | None:
    """The measures of each party's own test nodes, where the parties counted them one by one."""
    counts = {name: answer for name, answer in last.items() if isinstance(answer, Counts)}
    return {name: _measures(c, recall_at) for name, c in counts.items()} if counts and not method.pooled else None
