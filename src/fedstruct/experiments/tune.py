"""Choosing a method's options on the validation nodes, within a budget of runs.

The presets `code` and `ours`, where they know the dataset, and random neighbours of them each train with the first
seed; the better half of them trains with the second seed too, the better half of these with the third, and so on. Of
those that trained with every seed, the one with the best mean is chosen: of validation accuracy, or of what `by` names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fedstruct.errors import FedstructError, unknown
from fedstruct.experiments import metrics
from fedstruct.experiments.batch import Batch, Outcome
from fedstruct.experiments.bench import Bench
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.presets import recipe, tables
from fedstruct.experiments.result import RunResult, mean, std
from fedstruct.federation.watch import Watch
from fedstruct.graph.generators import family
from fedstruct.graph.graph import VALIDATION, Graph
from fedstruct.methods import made, option_names
from fedstruct.methods.method import Trained
from fedstruct.seeds import stream

SPACE: dict[str, tuple[Any, ...]] = {
    "lr": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
    "lr_structure": (0.002, 0.01, 0.05, 0.1, 0.3, 1.0, 2.0),
    "weight_decay": (1e-4, 5e-4, 1e-3, 5e-3),
    "dropout": (0.0, 0.3, 0.5, 0.7, 0.8),
    "rounds": (40, 60, 100, 150),
    "local_epochs": (1, 2, 5),
    "layers_feature": (1, 2, 3),
    "layers_structure": (1, 2, 3, 5, 10),
    "feature_hidden": (64, 128, 256),
    "sage_hidden": ((64,), (128,), (64, 64), (128, 64), (256, 128)),
    "teleport": (0.0, 0.05, 0.1, 0.2),
    "free": (True, False),
    "local": (True, False),
}
"""What is tried for each option: values that are usual in the field. A method is tuned in the options that it has."""

MEASURES: dict[str, Callable[[Trained], float | None]] = {
    "accuracy": lambda trained: metrics.accuracy(trained.confusion[VALIDATION]),
    "macro_f1": lambda trained: metrics.macro_f1(trained.confusion[VALIDATION]),
    "auprc": lambda trained: metrics.auprc(trained.scores[VALIDATION]),
}
"""By what a candidate may be judged. Where one class is rare, accuracy says little."""

TRIED, BEST = "tried.jsonl", "best.toml"


class Tuning:
    """A search for one method's options; the experiment's own options stay as they are.

    No label of a test node is there: the bench removes them before anything else sees the graph.
    """

    def __init__(
        self,
        experiment: Experiment,
        budget: int,
        graphs: Mapping[str, Graph] | None = None,
        by: str = "accuracy",
    ) -> None:
        if by not in MEASURES:
            raise unknown("measure", by, MEASURES)
        self.experiment, self.by = experiment, by
        self.stages = stages(budget, experiment.seeds)
        self.bench = Bench(graphs, blind=True)
        self.candidates = self._drawn(self.stages[0])
        self.batch = Batch([experiment.model_copy(update={"options": c}) for c in self.candidates], self.bench)
        self.stages = [min(many, len(self.candidates)) for many in self.stages]
        if not any(len(own.known(VALIDATION)) for own in self.bench.parts(experiment, 0).parties):
            raise FedstructError("tune chooses by the validation nodes, but no node is for validation; raise --val")
        if by == "auprc" and self.bench.graph(experiment).classes != 2:
            raise FedstructError("auprc is a measure of two classes; tune by accuracy or macro_f1")
        self.tried: list[dict[str, Any]] = []
        """Every run, by seed and then by candidate; a run that failed has no accuracy but a reason."""

    @property
    def measure(self) -> str:
        """What the figures are called where they are kept."""
        return f"validation_{self.by}"

    @property
    def runs(self) -> int:
        return sum(self.stages)

    def search(self, folder: Path, jobs: int = 1, watch: Watch | None = None) -> Iterator[dict[str, Any]]:
        """Try the candidates; gives each run. What was tried and what is best so far is always in the folder."""
        order = list(range(len(self.candidates)))
        for seed, many in enumerate(self.stages):
            units = [(candidate, seed) for candidate in order[:many]]
            for (candidate, _), outcome in self.batch.outcomes(jobs, lambda _: watch or Watch(), units):
                noted = self._note(candidate, seed, outcome)
                lines = [json.dumps(line) + "\n" for line in self.tried]
                (folder / TRIED).write_text("".join(lines), encoding="utf-8")
                yield noted
            order = self.ranking()
            if not any(figure is not None for figure in self.figures(order[0])):
                raise FedstructError(f"every candidate failed, the first because {self.tried[0]['failed']}")
            best = self.experiment.model_copy(update={"options": self.candidates[order[0]]})
            (folder / BEST).write_text(best.to_toml(), encoding="utf-8")

    def figures(self, candidate: int) -> list[float | None]:
        """What a candidate came to with each seed that it was tried with."""
        return [line[self.measure] for line in self.tried if line["candidate"] == candidate]

    def ranking(self) -> list[int]:
        """The candidates, best first: those that were tried with more seeds go before the others."""

        def merit(candidate: int) -> tuple[int, float, int]:
            found = [figure for figure in self.figures(candidate) if figure is not None]
            return -len(found), -(mean(list(found)) or 0.0), candidate

        return sorted(range(len(self.candidates)), key=merit)

    def as_json(self) -> dict[str, Any]:
        """The search; the candidates that were tried, best first."""
        e = self.experiment
        parts = self.bench.parts(e, 0)
        return {
            "dataset": e.dataset,
            "method": e.method,
            "protocol": self.bench.protocol(e),
            "parties": len(parts),
            "partition": parts.name,
            "seeds": e.seeds,
            "by": self.measure,
            "runs": len(self.tried),
            "candidates": [
                {
                    "candidate": candidate,
                    "options": self.candidates[candidate],
                    "seeds": len(found),
                    self.measure: {"mean": mean(found), "std": std(found)},
                }
                for candidate in self.ranking()
                if (found := self.figures(candidate))
            ],
        }

    def _drawn(self, many: int) -> list[dict[str, Any]]:
        """The starting points, and neighbours of each in turn, which differ from it in about half of the options."""
        e = self.experiment
        names = [n for n in SPACE if n in option_names(e.method) and n not in e.options]
        if "betas" in e.options:
            names = [n for n in names if n not in ("layers_structure", "teleport")]
        defaults = made(e.method).options.model_dump()
        known = [p for p in ("code", "ours") if family(e.dataset) in tables(p) and recipe(p, e.dataset, e.method)]
        candidates: list[dict[str, Any]] = []
        for preset in known or [e.preset]:
            start = {**{n: defaults[n] for n in names}, **recipe(preset, e.dataset, e.method), **e.options}
            if start not in candidates:
                candidates.append(start)
        starts, random = candidates[:many], stream(0, "tune", e.method)
        candidates = list(starts)
        for turn in range(20 * many):
            if len(candidates) >= many or not names:
                break
            neighbour = dict(starts[turn % len(starts)])
            for name in names:
                if random.random() < 0.5:
                    neighbour[name] = SPACE[name][random.integers(len(SPACE[name]))]
            if neighbour not in candidates and _fits(e.method, neighbour):
                candidates.append(neighbour)
        return candidates

    def _note(self, candidate: int, seed: int, outcome: Outcome) -> dict[str, Any]:
        line: dict[str, Any] = {"candidate": candidate, "seed": seed, "options": self.candidates[candidate]}
        if isinstance(outcome, RunResult):
            seconds = round(sum(outcome.seconds.values()), 3)
            line |= {self.measure: MEASURES[self.by](outcome.trained), "seconds": seconds}
        else:
            line |= {self.measure: None, "seconds": None, "failed": str(outcome)}
        self.tried.append(line)
        self.tried.sort(key=lambda line: (line["seed"], line["candidate"]))
        return line


def _fits(method: str, options: dict[str, Any]) -> bool:
    """Whether these options make sense together."""
    try:
        made(method, **options)
    except FedstructError:
        return False
    return True


def stages(budget: int, seeds: int) -> list[int]:
    """How many candidates train with each seed: half as many each time, as many in all as the budget allows.

    >>> stages(20, 2), stages(20, 3), stages(5, 1)
    ([13, 7], [11, 6, 3], [5])
    """
    if budget < seeds:
        raise FedstructError(f"a budget of {budget} runs is less than one for each of {seeds} seeds; raise --budget")

    def halved(first: int) -> list[int]:
        return [-(-first // 2**seed) for seed in range(seeds)]

    return next(halved(first) for first in range(budget, 0, -1) if sum(halved(first)) <= budget)
