"""Large graphs as folders of plain arrays, which are mapped into memory and read where they are looked at.

Undirected, without weights, and with dense features; `about.json` says how many of everything there are, and keeps the
checksums of what damage would not show in.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from fedstruct.errors import FedstructError
from fedstruct.graph.graph import Graph

ABOUT = "about.json"
COUNTS = ("nodes", "entries", "classes", "features")
KINDS = {"row_starts": "<i4", "columns": "<i4", "labels": "<i8", "features": "<f4"}
"""The files, and what each holds."""

SUMS = {"row_starts": "row_starts_crc32", "columns": "columns_crc32", "labels": "labels_crc32"}
"""What the checksums of files are called; any finite features could be right."""

AT_ONCE = 1 << 24
"""Numbers whose checksum is taken at once; Ctrl-C waits for no more."""


def write(folder: Path, name: str, pieces: Iterable[np.ndarray]) -> int:
    """Write the pieces of an array, one after the other; gives back how many numbers they hold."""
    size = checksum = 0
    # Not into mapped memory, where a full disk would end the process.
    with (folder / name).open("wb") as file:
        for piece in pieces:
            raw = np.ascontiguousarray(piece, KINDS[name]).data
            file.write(raw)
            size += piece.size
            checksum = zlib.crc32(raw, checksum) if name in SUMS else 0
    if name in SUMS:
        _add(folder, {SUMS[name]: checksum})
    return size


def describe(folder: Path, nodes: int, entries: int, classes: int, features: int) -> None:
    """Say how many of everything the files hold."""
    _add(folder, dict(zip(COUNTS, (nodes, entries, classes, features), strict=True)))


def read(folder: Path, name: str) -> Graph:
    """The graph in a folder, or the error that says what is wrong with it."""
    try:
        about = _about(folder)
        nodes, entries, classes, features = (about[key] for key in COUNTS)
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
        for key, called in SUMS.items():
            if _checksum(arrays[key]) != about[called]:
                raise ValueError(f"{key} is not what was written")
        adjacency = csr_array((np.ones(entries, np.int8), columns, row_starts), shape=(nodes, nodes))
        adjacency.has_canonical_format = True
        return Graph(adjacency, arrays["features"], arrays["labels"], classes, name=name)
    except (OSError, ValueError, FedstructError) as error:
        why: object = error
        if isinstance(error, OSError) and error.filename:
            why = f"{Path(error.filename).name}: {error.strerror}"
        raise FedstructError(
            f"the graph in {folder} is damaged ({why}); delete the folder, and it is made anew"
        ) from None


def _about(folder: Path) -> dict[str, int]:
    """The counts and checksums of a folder."""
    raw = (folder / ABOUT).read_bytes()
    try:
        about = json.loads(raw)
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict):
        raise ValueError(f"{ABOUT} holds no JSON object")
    for key in (*COUNTS, *SUMS.values()):
        # JSON has numbers that are infinite or have any number of digits.
        if type(about.get(key)) is not int or not 0 <= about[key] < 1 << 32:
            raise ValueError(f"{ABOUT} does not say '{key}' as a whole number of 32 bits")
    return about


def _add(folder: Path, more: dict[str, int]) -> None:
    path = folder / ABOUT
    about: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}
    path.write_text(json.dumps(about | more))


def _checksum(array: np.ndarray) -> int:
    checksum = 0
    for begin in range(0, len(array), AT_ONCE):
        checksum = zlib.crc32(array[begin : begin + AT_ONCE].data, checksum)
    return checksum


def _mapped(path: Path, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    expected = math.prod(shape) * np.dtype(kind).itemsize
    if path.stat().st_size != expected:
        raise ValueError(f"{path.name} has {path.stat().st_size:,} bytes instead of {expected:,}")
    # Nothing cannot be mapped.
    return np.memmap(path, kind, "r", shape=shape) if expected else np.zeros(shape, kind)
