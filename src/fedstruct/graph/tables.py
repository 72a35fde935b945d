"""From tables to a graph: one of nodes, one of edges.

>>> import polars
>>> people = polars.DataFrame({"id": ["a", "b"], "age": [30, 50], "label": [0, 1]})
>>> read(people, polars.DataFrame({"source": ["a"], "target": ["b"]}), id="id", label="label").edges
1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from fedstruct.errors import FedstructError
from fedstruct.graph import columns
from fedstruct.graph.graph import Graph
from fedstruct.graph.table import Table
from fedstruct.graph.times import first_seen

if TYPE_CHECKING:
    import polars

OTHERS = "others"
"""The owner of what the smaller owners have, where only the largest stay by themselves."""


@dataclass(frozen=True, eq=False)
class Tables:
    """Two tables, and which of their columns is what.

    `features` are all columns of the nodes that are nothing else, unless some are named. `time` and `weight` are
    columns of the edges.
    """

    nodes: Table
    edges: Table
    id: str
    label: str
    source: str = "source"
    target: str = "target"
    owner: str | None = None
    weight: str | None = None
    time: str | None = None
    features: Sequence[str] | None = None
    attributes: Sequence[str] = ()
    directed: bool = True
    standardise: bool = True
    largest: int | None = None

    def graph(self, name: str = "graph") -> Graph:
        """The graph of these tables."""
        if len(self.nodes) == 0:
            raise FedstructError(f"{self.nodes.name} has no rows, so there is no node")
        ids = self.nodes.whole_texts(self.id)
        twice = ids.is_duplicated()
        if twice.any():
            row = int(twice.arg_max() or 0)
            again = int((ids == ids[row]).arg_true()[1])
            raise self.nodes.wrong(self.id, again, f"is '{ids[again]}' as in row {row + 1}; each node needs its own")
        edges = np.stack([self._ends(ids, end) for end in (self.source, self.target)])
        attributes = {column: self._attribute(column) for column in self.attributes}
        if self.owner is not None:
            attributes[self.owner] = self._owners(self.owner)
        first = None
        if self.time is not None:
            first = f"first_{self.time}"
            attributes[first] = first_seen(edges, columns.times(self.edges, self.time), len(ids), self.edges.name)
        labels, names = columns.labels(self.nodes, self.label)
        return Graph.from_edges(
            edges,
            features=columns.features(self.nodes, self.feature_columns, self.standardise),
            labels=labels,
            classes=len(names) or None,
            weights=None if self.weight is None else self.edges.positive(self.weight),
            directed=self.directed,
            ids=ids.to_numpy().astype(np.str_),
            attributes=attributes,
            owner_attribute=self.owner,
            time_attribute=first,
            name=name,
        )

    @property
    def feature_columns(self) -> list[str]:
        taken = {self.id, self.label, self.owner, *self.attributes}
        if self.features is None:
            return [column for column in self.nodes.columns if column not in taken]
        for column in self.features:
            if column in (self.id, self.label):
                what = "label" if column == self.label else "id"
                raise FedstructError(f"column '{column}' of {self.nodes.name} is the {what}, so it cannot be a feature")
        return list(self.features)

    @property
    def class_names(self) -> list[str]:
        """What the classes are called where they are words; the class is the place."""
        return columns.labels(self.nodes, self.label)[1]

    def flags(self) -> str:
        """How `fedstruct import` is told which column is what."""
        words = {"id": self.id, "owner": self.owner, "label": self.label, "source": self.source, "target": self.target}
        words |= {"weight": self.weight, "time": self.time}
        return " ".join(f"--{flag} {quote(column)}" for flag, column in words.items() if column not in (None, flag))

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Both tables as CSV, in a folder that has no such files."""
        paths = folder / f"{self.nodes.name}.csv", folder / f"{self.edges.name}.csv"
        for path in paths:
            if path.exists():
                raise FedstructError(f"{path} exists and is not overwritten; give another folder")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.nodes.frame.write_csv(paths[0])
            self.edges.frame.write_csv(paths[1])
        except OSError as error:
            raise FedstructError(
                f"{folder} cannot be written: {error.strerror or error}; give another folder"
            ) from None
        return paths

    def _ends(self, ids: polars.Series, column: str) -> np.ndarray:
        """The numbers of the nodes that edges name."""
        import polars

        named = self.edges.whole_texts(column)
        found = named.replace_strict(ids, np.arange(len(ids)), default=None, return_dtype=polars.Int64)
        if found.null_count():
            row = int(found.is_null().arg_max() or 0)
            says = f"is '{named[row]}', which column '{self.id}' of {self.nodes.name} does not have"
            raise self.edges.wrong(column, row, says)
        return found.to_numpy()

    def _owners(self, column: str) -> np.ndarray:
        owners = self.nodes.whole_texts(column).to_numpy().astype(np.str_)
        if self.largest is None:
            return owners
        if self.largest < 1:
            raise FedstructError(f"largest is {self.largest}, but at least one owner must stay by itself")
        names, number, counts = np.unique(owners, return_inverse=True, return_counts=True)
        # Of owners of one size, the one whose name comes first.
        small = np.argsort(-counts, kind="stable")[self.largest :]
        if OTHERS in np.delete(names, small):
            raise FedstructError(f"an owner is called '{OTHERS}', which is the name of the rest; rename it")
        kept = names.astype(np.dtype(f"<U{max(names.dtype.itemsize // 4, len(OTHERS))}"))
        kept[small] = OTHERS
        merged: np.ndarray = kept[number]
        return merged

    def _attribute(self, column: str) -> np.ndarray:
        if self.nodes.is_numeric(column):
            return self.nodes.numbers(column)
        return self.nodes.texts(column).fill_null("").to_numpy().astype(np.str_)


def read(nodes: Any, edges: Any, *, id: str, label: str, name: str | None = None, **more: Any) -> Graph:
    """The graph of two tables, each a polars frame or the path of a CSV or Parquet file; `Tables` lists the settings.

    >>> import polars
    >>> accounts = polars.DataFrame({"id": ["a", "b", "c"], "bank": ["X", "Y", "X"], "age": [30, 40, 50],
    ...     "fraud": ["no", None, "yes"]})
    >>> payments = polars.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "amount": [10.0, 2.5], "day": [1, 4]})
    >>> graph = read(accounts, payments, id="id", label="fraud", owner="bank", weight="amount", time="day")
    >>> graph.labels.tolist(), graph.owner_attribute, graph.attributes["first_day"].tolist()
    ([0, -1, 1], 'bank', [1.0, 1.0, 4.0])
    """
    both = Table.of(nodes, "nodes"), Table.of(edges, "edges")
    if name is None:
        name = Path(nodes).stem if isinstance(nodes, (str, Path)) else "graph"
    return Tables(*both, id=id, label=label, **more).graph(name)
