"""A sweep: methods over the values of one or two settings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from typing import Any

from fedstruct.errors import FedstructError, unknown
from fedstruct.experiments.config import toml
from fedstruct.experiments.process import peak_rss_mb
from fedstruct.experiments.result import mean
from fedstruct.experiments.study import Study, of_methods
from fedstruct.graph import datasets
from fedstruct.methods import option_names

SETTINGS = ("train", "validation", "split", "parties", "partition", "dataset", "preset")
"""What can be swept over beside the methods' options."""

OF_CELL = ("dataset", "protocol", "parties", "test_accuracy", "macro_f1", "auprc", "recall", "recall_at")


@dataclass(frozen=True)
class Axis:
    """A key, and the values that it takes."""

    key: str
    values: tuple[Any, ...]


def axis(text: str) -> Axis:
    """`KEY=v1,v2,…` as it is typed.

    >>> axis("train=0.05,0.1"), axis("partition=random,louvain").values, axis("betas=[0,1],[1,0]").values
    (Axis(key='train', values=(0.05, 0.1)), ('random', 'louvain'), ([0, 1], [1, 0]))
    """
    key, _, typed = text.partition("=")
    key = {"val": "validation"}.get(key.strip(), key.strip())
    words = datasets.names(typed) if key == "dataset" else [word.strip() for word in typed.split(",") if word.strip()]
    if not key or not words:
        raise FedstructError(f"--over takes KEY=v1,v2,…, for example layers_structure=1,2,5, not '{text}'")
    try:
        values = json.loads(f"[{typed}]")
    except json.JSONDecodeError:
        values = [_value(word) for word in words]
    return Axis(key, tuple(value for i, value in enumerate(values) if value not in values[:i]))


def _folder_name(method: str, point: dict[str, Any]) -> str:
    """A method at its values, as a folder may be called on any system.

    >>> _folder_name("fedstruct", {"dataset": "consortium:banks=5", "partition": "owners/a.txt"})
    'fedstruct,dataset=consortium-banks=5,partition=owners_a.txt'
    """
    name = ",".join([method, *(f"{key}={value}" for key, value in point.items())])
    return name.translate({ord("/"): "_", ord(" "): None, ord(":"): "-"})


def _value(word: str) -> Any:
    try:
        return json.loads(word)
    except json.JSONDecodeError:
        return word


class Sweep:
    """A study of every method at every combination of values.

    A method that does not have a swept option trains once, and stands beside the others at all its values.
    """

    def __init__(self, given: dict[str, Any], methods: list[str], axes: list[Axis]) -> None:
        self.methods, self.axes, self.given = methods, axes, given
        known = frozenset().union(*map(option_names, methods))
        for swept in axes:
            if swept.key not in known and swept.key not in SETTINGS:
                raise unknown("key", swept.key, [*known, *SETTINGS])
            # The dataset is always named; swept over, it is the values that count.
            if swept.key != "dataset" and swept.key in {**given, **given.get("options", {})}:
                raise FedstructError(f"'{swept.key}' is swept over and given as well; leave out one of them")
        if len({swept.key for swept in axes}) < len(axes):
            raise FedstructError("--over names a key twice; give all its values at once")
        self.cells: list[tuple[dict[str, Any], str, str]] = []
        """For each combination of values and each method, the name of its experiment."""
        experiments = {}
        for values in product(*(swept.values for swept in axes)):
            point = {swept.key: value for swept, value in zip(axes, values, strict=True)}
            settings = {key: value for key, value in point.items() if key in SETTINGS}
            options = given.get("options", {}) | {k: v for k, v in point.items() if k not in SETTINGS}
            for method, experiment in of_methods({**given, **settings, "options": options}, methods).items():
                of_it = {k: v for k, v in point.items() if k in SETTINGS or k in option_names(method)}
                name = _folder_name(method, of_it)
                experiments[name] = experiment
                self.cells.append((point, method, name))
        self.study = Study(experiments)

    def as_json(self) -> dict[str, Any]:
        """The cells that have finished runs."""
        some = next(iter(self.study.runs.values()))
        summaries = {name: self.study.summary(name) for name, runs in self.study.found.items() if runs}
        return {
            "over": {swept.key: list(swept.values) for swept in self.axes},
            "methods": self.methods,
            "partition": some.partition,
            "preset": some.experiment.preset,
            "cells": [
                {
                    "at": point,
                    "method": method,
                    "folder": name,
                    "seeds": len(summaries[name]["runs"]),
                    **{key: summaries[name][key] for key in OF_CELL if key in summaries[name]},
                    "cpu_seconds": mean([sum(run["cpu_seconds"].values()) for run in summaries[name]["runs"]]),
                    "bytes": mean([sum(run["bytes"].values()) for run in summaries[name]["runs"]]),
                }
                for point, method, name in self.cells
                if name in summaries
            ],
            "peak_rss_mb": peak_rss_mb(),
        }

    def to_toml(self) -> str:
        """What is swept."""
        settings = {key: value for key, value in self.given.items() if key != "options"}
        tables = {"options": self.given.get("options", {}), "over": {a.key: list(a.values) for a in self.axes}}
        return toml({**settings, "methods": self.methods, **tables})
