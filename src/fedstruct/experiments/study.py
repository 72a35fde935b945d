"""A study: several experiments in one folder, each with a run folder of its own in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedstruct.errors import unknown
from fedstruct.experiments.batch import Batch, Unit
from fedstruct.experiments.bench import Bench
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.experiment import Runs
from fedstruct.experiments.folder import Folder, RunFolder
from fedstruct.experiments.result import RunResult
from fedstruct.experiments.track import Tracker
from fedstruct.federation.watch import Watch, Watches
from fedstruct.methods import METHODS, option_names, resolved, unknown_method


class Study:
    """Experiments by name. Each finished run is in its experiment's folder before the next one is looked at."""

    def __init__(self, experiments: Mapping[str, Experiment], bench: Bench | None = None) -> None:
        bench = bench or Bench()
        # Bad settings are found out before the first run, and before a folder is made.
        self.runs = {name: Runs(experiment, bench) for name, experiment in experiments.items()}
        self.batch = Batch(list(experiments.values()), bench)
        self.found: dict[str, list[dict[str, Any]]] = {name: [] for name in experiments}
        """The runs that are done, as JSON."""
        self._folders: dict[str, RunFolder] = {}

    @property
    def missing(self) -> list[Unit]:
        """The runs that are not done."""
        done = {(i, run["seed"]) for i, runs in enumerate(self.found.values()) for run in runs}
        return [unit for unit in self.batch.units if unit not in done]

    def resume(self, folder: Folder) -> None:
        """Take over what is done in a folder that was begun before."""
        for name in self.found:
            if (folder.path / name).exists():
                self.found[name] = self._folder(folder, name).runs

    def train(self, folder: Folder, jobs: int, watch: Watch, tracker: Tracker) -> Iterator[tuple[str, RunResult]]:
        """Do the runs that are missing; gives each, once it is saved, with the name of its experiment."""
        names = list(self.runs)

        def watching(unit: Unit) -> Watch:
            name, seed = names[unit[0]], unit[1]
            runs, history = self.runs[name], self._folder(folder, name).history
            return Watches(watch, history.watch(seed), tracker.begin(name, seed, runs.experiment, runs.method))

        for (index, _), result in self.batch.all(jobs, watching, self.missing):
            name = names[index]
            self.found[name].append(result.as_json())
            self._folder(folder, name).save(result, self.summary(name))
            tracker.finish(name, result)
            yield name, result

    def summary(self, name: str) -> dict[str, Any]:
        """One of the experiments as JSON."""
        return self.runs[name].summary(self.found[name])

    def _folder(self, folder: Folder, name: str) -> RunFolder:
        """The run folder of an experiment, made when it is first asked for."""
        if name not in self._folders:
            runs = self.runs[name]
            self._folders[name] = RunFolder(
                folder.path / name, name, runs.experiment.to_toml(), runs.about, resume=True
            )
        return self._folders[name]


def chosen(methods: str) -> list[str]:
    """The methods of a list of names with commas between them; `all` stands for every one that comes with the library.

    >>> chosen("fedstruct, local-mlp"), len(chosen("all")) == len(METHODS), chosen("local-mlp,all")[:2]
    (['fedstruct', 'local-mlp'], True, ['local-mlp', 'fedstruct'])
    """
    names = [name.strip() for name in methods.split(",") if name.strip()]
    for name in names or [methods]:
        if name not in METHODS and name != "all" and "." not in name:
            raise unknown_method(name, "all")
    return list(dict.fromkeys(each for name in names for each in (METHODS if name == "all" else [name])))


def of_methods(given: dict[str, Any], methods: list[str]) -> dict[str, Experiment]:
    """One experiment for each method. An option goes to every method that has it; one that none has is a mistake."""
    options = given.get("options", {})
    known = {method: option_names(resolved(method, options)) for method in methods}
    everything = frozenset().union(*known.values())
    for key in options:
        if key not in everything:
            raise unknown("option", key, everything)
    return {
        method: Experiment.of(
            {**given, "method": method, "options": {k: v for k, v in options.items() if k in known[method]}}
        )
        for method in methods
    }
