"""What an experiment is: a small file, checked before anything runs."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fedstruct.errors import FedstructError, explained, unknown
from fedstruct.experiments.alerts import Alerts
from fedstruct.experiments.presets import recipe
from fedstruct.graph import datasets, partition
from fedstruct.graph.graph import Graph
from fedstruct.graph.partition import Partition
from fedstruct.methods import Method, made, resolved

DRAWN = {"random": partition.random, "louvain": partition.louvain, "kmeans": partition.kmeans}
"""Partitions into as many parties as asked for, drawn anew for each seed."""


class Experiment(BaseModel):
    """A dataset, a method and its options, a partition, and how many seeds."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    dataset: str
    method: str = "fedstruct"
    parties: int | None = Field(default=None, ge=1)
    partition: str | None = None
    """None: the owners that the graph itself names, where it names some and no number of parties is asked for."""
    seeds: int = Field(default=1, ge=1, le=100_000)
    preset: str = "ours"
    train: float = Field(default=0.1, gt=0, lt=1)
    validation: float = Field(default=0.1, ge=0, lt=1)
    split: Literal["random", "time"] = "random"
    recall_at: Alerts = 100
    separate: bool = False
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _named_in_full(cls, given: Any) -> Any:
        options = given.get("options")
        if isinstance(options, dict) and isinstance(given.get("method", "fedstruct"), str):
            return {**given, "method": resolved(given.get("method", "fedstruct"), options)}
        return given

    @classmethod
    def of(cls, given: dict[str, Any]) -> Self:
        """The experiment, or the error that says which setting is wrong."""
        if "dataset" not in given:
            raise FedstructError("no dataset is named; give one, for example: fedstruct run cora")
        try:
            return cls(**given)
        except ValidationError as error:
            raise explained(error, cls.model_fields, "setting") from None

    def build_method(self) -> Method:
        """The method with the preset's options, those of the experiment over them."""
        return made(self.method, **{**recipe(self.preset, self.dataset, self.method), **self.options})

    def load_graph(self) -> Graph:
        return datasets.load(self.dataset)

    def cut(self, graph: Graph, seed: int) -> Partition:
        """The partition of one seed; the same for every method."""
        how = self.partition
        if how is None:
            named = graph.owner_attribute if self.parties is None else None
            how = "random" if named is None else f"attribute:{named}"
        if how in DRAWN:
            return DRAWN[how](graph, 10 if self.parties is None else self.parties, seed)
        if how.startswith("attribute:"):
            return self._as_many(partition.by_attribute(graph, how.removeprefix("attribute:"), seed))
        if Path(how).suffix in partition.OWNER_FILES:
            return self._as_many(partition.by_vector(graph, partition.read_owners(Path(how)), seed, name=how))
        raise unknown(
            "partition", how, [*DRAWN, "attribute:NAME"], "; or give a file of owners (.npy, .txt), one per node"
        )

    def cut_key(self, seed: int) -> tuple[Any, ...]:
        """What `cut` depends on, beside the split of the graph."""
        return self.dataset, self.partition, self.parties, seed

    def _as_many(self, parts: Partition) -> Partition:
        if self.parties not in (None, len(parts)):
            raise FedstructError(f"{self.partition} names {len(parts)} owners, not {self.parties}; leave out --parties")
        return parts

    def to_toml(self) -> str:
        """The experiment as it was asked for; `read` gives the same runs again, and another preset other options."""
        return toml(self.model_dump())


def toml(settings: dict[str, Any]) -> str:
    """Settings as TOML, tables last; what is None is left out.

    >>> print(toml({"dataset": "cora", "options": {"prune": 30}, "parties": None}), end="")
    dataset = "cora"
    <BLANKLINE>
    [options]
    prune = 30
    """
    tables = {key: value for key, value in settings.items() if isinstance(value, dict)}
    lines = [f"{k} = {_toml(v)}" for k, v in settings.items() if k not in tables and v is not None]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{k} = {_toml(v)}" for k, v in table.items() if v is not None)]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """Text, numbers, truth values and lists are written in TOML as in JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def read(path: Path) -> dict[str, Any]:
    """The settings in a TOML file."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise FedstructError(f"there is no configuration file {path}; check the path given to --config") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FedstructError(f"the configuration file {path} cannot be read: {error}") from None
    except (ValueError, RecursionError) as error:  # endless numbers and brackets have errors of their own
        raise FedstructError(f"the configuration file {path} is not valid TOML: {error}") from None


def setting(text: str) -> tuple[str, Any]:
    """A `key=value` of the command line.

    >>> setting("prune=30"), setting("betas=[0, 1]"), setting("keep=none"), setting("prune_rule=none")
    (('prune', 30), ('betas', [0, 1]), ('keep', None), ('prune_rule', 'none'))
    """
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise FedstructError(f"--set takes key=value, for example prune=30, not '{text}'")
    if (key.strip(), value.strip()) == ("keep", "none"):
        return "keep", None
    try:
        return key.strip(), json.loads(value)
    except (ValueError, RecursionError):  # no JSON, or too much of it
        return key.strip(), value.strip()
