"""Graphs as `.npz` files, read without pickle. `docs/data-format.md` describes the keys."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, issparse

from fedstruct.atomic import replaced
from fedstruct.errors import FedstructError
from fedstruct.graph.graph import Graph
from fedstruct.graph.times import first_seen

SPARSE = ("x_data", "x_indices", "x_indptr", "x_shape")
ROLES = ("owner_attribute", "time_attribute")
"""Which attribute tells the owners, and which the times: one word each."""
RESERVED = {"edge_index", "edge_weight", "edge_time", "directed", "x", *SPARSE, "y", "classes", "ids", "split", *ROLES}
OTHER_NAMES = {"node_features": "x", "node_labels": "y", "edges": "edge_index", "edge_amount": "edge_weight"}
"""How other collections of graphs, or of payments, call the same things."""
FIRST_TIME = "first_time"
"""The attribute that is made of the times of edges."""


def read(path: Path, name: str | None = None) -> Graph:
    """The graph in a file, or the error that says what is wrong with the file."""
    name = name or path.stem
    arrays = _arrays(path)
    for other, ours in OTHER_NAMES.items():
        if other in arrays and ours not in arrays:
            values = arrays.pop(other)
            arrays[ours] = values.T if ours == "edge_index" and values.ndim == 2 and values.shape[1] == 2 else values
    missing = [key for key in ("edge_index", "y") if key not in arrays]
    if missing or not ("x" in arrays or "x_data" in arrays):
        absent = ", ".join(missing or ["x"])
        raise FedstructError(f"{path} has no array '{absent}'; a graph file needs edge_index, y and x (or x_data …)")
    n = arrays["y"].size
    attributes = {k: v for k, v in arrays.items() if k not in RESERVED and v.ndim == 1 and len(v) == n}
    roles = {role: _word(arrays, role, path) for role in ROLES if role in arrays}
    if "edge_time" in arrays and "time_attribute" not in roles:
        attributes[FIRST_TIME] = first_seen(arrays["edge_index"], arrays["edge_time"], n, str(path))
        roles["time_attribute"] = FIRST_TIME
    return Graph.from_edges(
        arrays["edge_index"],
        features=arrays["x"] if "x" in arrays else _sparse(arrays, path),
        labels=arrays["y"],
        weights=arrays.get("edge_weight"),
        directed=bool(_number(arrays, "directed", path)),
        classes=_number(arrays, "classes", path) or None,
        ids=arrays.get("ids"),
        split=arrays.get("split"),
        attributes=attributes,
        name=name,
        **roles,
    )


def check_new(path: Path) -> None:
    """Refuse a path that a new graph cannot be written to, before anything is computed."""
    if path.suffix != ".npz":
        raise FedstructError(f"a graph is written to an .npz file, and {path} is none; rename it")
    if path.exists():
        raise FedstructError(f"{path} exists and is not overwritten; give another --out")
    if not path.parent.is_dir():
        raise FedstructError(
            f"there is no folder {path.parent} to write {path.name} into; make it or give another --out"
        )


def write(graph: Graph, path: Path) -> None:
    """Write a graph so that `read` gives it back; undirected edges are stored once."""
    for name in graph.attributes.keys() & (RESERVED | OTHER_NAMES.keys()):
        raise FedstructError(f"an attribute cannot be called '{name}', which means something else in a file; rename it")
    for name in graph.attributes:
        if "\0" in name or name.endswith(".npy"):
            raise FedstructError(f"an attribute cannot be called {name!r}, which a file could not keep; rename it")
    a = graph.adjacency.tocoo()
    u, v = a.coords
    once = np.ones(len(u), bool) if graph.directed else u <= v
    arrays: dict[str, np.ndarray] = {
        "edge_index": np.stack([u[once], v[once]]).astype(np.int32),
        "y": graph.labels.astype(np.int16 if graph.classes < 1 << 15 else np.int64),
        "classes": np.array(graph.classes),
        **graph.attributes,
    }
    if graph.weighted:
        arrays["edge_weight"] = a.data[once]
    if graph.directed:
        arrays["directed"] = np.array(1, np.int8)
    if issparse(graph.features):
        f = graph.features
        arrays |= {"x_data": f.data, "x_indices": f.indices, "x_indptr": f.indptr, "x_shape": np.array(f.shape)}
    else:
        arrays["x"] = graph.features
    if graph.ids is not None:
        arrays["ids"] = graph.ids
    if graph.split is not None:
        arrays["split"] = graph.split
    arrays |= {role: np.array(named) for role in ROLES if (named := getattr(graph, role)) is not None}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replaced(path, lambda part: _write(part, arrays))
    except OSError as error:
        raise FedstructError(f"{path} cannot be written: {error.strerror or error}; write it elsewhere") from None


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    # Not by savez_compressed, whose own parameters would take attributes of their names.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(values), allow_pickle=False)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        if not path.is_file():
            raise FedstructError(f"there is no file {path}; give the path of an .npz graph or the name of a dataset")
        opened = path.open("rb")
    except OSError as error:
        raise FedstructError(f"{path} cannot be read: {error.strerror}") from None
    try:
        with opened as file:
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise FedstructError(f"{path} is a single array, not an .npz archive of a graph")
            with archive:
                return {key: a for key in archive.files if isinstance(a := archive[key], np.ndarray)}
    except FedstructError:
        raise
    except Exception as error:  # a damaged archive may raise zipfile's, zlib's, struct's or numpy's own errors
        pickled = "pickle" in str(error).lower() and zipfile.is_zipfile(path)
        why = "it holds Python objects" if pickled else "it is damaged"
        raise FedstructError(f"{path} cannot be read as an .npz graph: {why}") from None


def _number(arrays: dict[str, np.ndarray], key: str, path: Path) -> int:
    value = arrays.get(key, np.array(0))
    if value.size != 1 or value.dtype.kind not in "iub" or value < 0:
        raise FedstructError(f"{path}: '{key}' must be one whole number, not {value.dtype} of shape {value.shape}")
    return int(value.item())


def _word(arrays: dict[str, np.ndarray], key: str, path: Path) -> str:
    value = arrays[key]
    if value.size != 1 or value.dtype.kind != "U":
        raise FedstructError(f"{path}: '{key}' must be the name of an attribute, not {value.dtype} of {value.shape}")
    return str(value.item())


def _sparse(arrays: dict[str, np.ndarray], path: Path) -> csr_array:
    try:
        data, indices, indptr, shape = (arrays[key] for key in SPARSE)
        if data.dtype.kind not in "fiub" or any(a.dtype.kind not in "iu" for a in (indices, indptr, shape)):
            raise ValueError("x_data must hold numbers, and the others whole numbers")
        matrix = csr_array((data, indices, indptr), shape=tuple(int(s) for s in shape))
        matrix.check_format(full_check=True)
    except KeyError as missing:
        raise FedstructError(f"{path} has x_data but no {missing}") from None
    except (ValueError, TypeError) as error:
        raise FedstructError(f"{path}: its sparse features do not fit together: {error}") from None
    return matrix
