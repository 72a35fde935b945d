"""Large graphs as folders of plain arrays, which are mapped into memory and read where they are looked at.

Undirected, without weights, and with dense features; `about.json` says how many of everything there are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from fedstruct.errors import FedstructError
from fedstruct.graph.graph import Graph

ABOUT = "about.json"
COUNTS = ("nodes", "entries", "classes", "features")
KINDS = {"row_starts": "<i4", "columns": "<i4", "labels": "<i8", "features": "<f4"}
"""The files, and what each holds."""


def write(folder: Path, name: str, pieces: Iterable[np.ndarray]) -> int:
    """Write the pieces of an array, one after the other; gives back how many numbers they hold."""
    size = 0
    # Not into mapped memory, where a full disk would end the process.
    with (folder / name).open("wb") as file:
        for piece in pieces:
            file.write(np.ascontiguousarray(piece, KINDS[name]).data)
            size += piece.size
    return size


def describe(folder: Path, nodes: int, entries: int, classes: int, features: int) -> None:
    """Say how many of everything the files hold."""
    (folder / ABOUT).write_text(json.dumps(dict(zip(COUNTS, (nodes, entries, classes, features), strict=True))))


def read(folder: Path, name: str) -> Graph:
    """The graph in a folder, or the error that says what is wrong with it."""
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        nodes, entries, classes, features = (int(about[key]) for key in COUNTS)
        shapes = {"row_starts": (nodes + 1,), "columns": (entries,), "labels": (nodes,), "features": (nodes, features)}
        arrays = {key: _mapped(folder / key, KINDS[key], shape) for key, shape in shapes.items()}
        row_starts, columns = arrays["row_starts"], arrays["columns"]
        lengths = np.diff(row_starts)
        if row_starts[0] or row_starts[-1] != entries or lengths.min(initial=0) < 0:
            raise ValueError("its rows do not follow each other")
        if entries and not 0 <= columns.min() <= columns.max() < nodes:
            raise ValueError("an edge names a node that does not exist")
        if arrays["labels"].min(initial=0) < 0:
            raise ValueError("a label is negative")
        adjacency = csr_array((np.ones(entries, np.int8), columns, row_starts), shape=(nodes, nodes))
        adjacency.has_canonical_format = True
        return Graph(adjacency, arrays["features"], arrays["labels"], classes, name=name)
    except (OSError, ValueError, KeyError, TypeError, FedstructError) as error:
        why = f"there is no {error}" if isinstance(error, KeyError) else getattr(error, "strerror", None) or error
        raise FedstructError(
            f"the graph in {folder} is damaged ({why}); delete the folder, and it is made anew"
        ) from None


def _mapped(path: Path, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    expected = math.prod(shape) * np.dtype(kind).itemsize
    if path.stat().st_size != expected:
        raise ValueError(f"{path.name} has {path.stat().st_size:,} bytes instead of {expected:,}")
    # Nothing cannot be mapped.
    return np.memmap(path, kind, "r", shape=shape) if expected else np.zeros(shape, kind)
