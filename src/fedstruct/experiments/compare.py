"""Methods side by side, on the same parts of the same graph."""

from __future__ import annotations

from math import sqrt
from typing import Any

import polars

from fedstruct.experiments.config import toml
from fedstruct.experiments.folder import Folder, read_ledger
from fedstruct.experiments.process import peak_rss_mb
from fedstruct.experiments.result import mean, std
from fedstruct.experiments.study import Study
from fedstruct.experiments.words import leaving

SHARED = ("dataset", "protocol", "preset", "parties", "partition", "recall_at")
"""What the summaries of all methods agree on."""

OF_METHOD = ("method", "test_accuracy", "macro_f1", "auprc", "recall", "options", "runs")


class Comparison:
    """A study of several methods; the first of them is the one that the others are set beside."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._leaves: dict[str, dict[str, str]] = {}

    def resume(self, folder: Folder) -> None:
        """Take over what is done in a folder that was begun before."""
        self.study.resume(folder)
        for method, runs in self.study.found.items():
            if runs:
                self.saw(method, read_ledger(folder.path / method))

    def saw(self, method: str, book: polars.DataFrame) -> None:
        """Take note of what leaves a party, from the ledger of a method's first run."""
        if method not in self._leaves:
            self._leaves[method] = leaving(book)

    def as_json(self) -> dict[str, Any]:
        """The methods that have finished runs."""
        summaries = {name: self.study.summary(name) for name, runs in self.study.found.items() if runs}
        some = next(iter(summaries.values()))
        first = next(iter(self.study.found))
        return {
            **{key: some[key] for key in SHARED if key in some},
            "methods": [
                {
                    **{key: summary[key] for key in OF_METHOD if key in summary},
                    "pooled": self.study.runs[name].method.pooled,
                    "difference": paired(self.study.found[name], self.study.found[first]) if name != first else None,
                    "cpu_seconds": mean([sum(run["cpu_seconds"].values()) for run in summary["runs"]]),
                    "bytes": mean([sum(run["bytes"].values()) for run in summary["runs"]]),
                    "leaves": self._leaves.get(name),
                }
                for name, summary in summaries.items()
            ],
            "peak_rss_mb": peak_rss_mb(),
        }

    def to_toml(self) -> str:
        """What was compared."""
        experiments = self.study.batch.experiments
        options = {key: value for e in experiments for key, value in e.options.items()}
        shared = experiments[0].model_dump(exclude={"method", "options"})
        return toml({**shared, "methods": list(self.study.runs), "options": options})


def paired(runs: list[dict[str, Any]], others: list[dict[str, Any]]) -> dict[str, float | None]:
    """The mean difference in test accuracy over the seeds that both have, and its standard error.

    >>> a, b = ([{"seed": s, "test_accuracy": v} for s, v in enumerate(vs)] for vs in ((0.75, 0.5), (0.5, 0.5)))
    >>> paired(a, b)
    {'mean': 0.125, 'standard_error': 0.125}
    """
    accuracy = {run["seed"]: run["test_accuracy"] for run in others}
    both = [(run["test_accuracy"], accuracy.get(run["seed"])) for run in runs]
    differences = [a - b for a, b in both if a is not None and b is not None]
    deviation = std(differences)
    error = None if deviation is None else deviation / sqrt(len(differences))
    return {"mean": mean(differences), "standard_error": error}
