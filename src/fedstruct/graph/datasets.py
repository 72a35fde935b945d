"""Graphs by name: from a folder, from the cache, or downloaded through torch-geometric; or made from a seed.

>>> load("consortium:banks=3,accounts=200").nodes
200
"""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fedstruct.errors import FedstructError, unknown
from fedstruct.graph import generators, npz
from fedstruct.graph.cache import cache
from fedstruct.graph.graph import Graph

DATA_VARIABLE = "FEDSTRUCT_DATA"
"""The environment variable that names the folder of graph files."""


@dataclass(frozen=True)
class Dataset:
    """A public graph: what it is, and the torch-geometric loader that downloads it."""

    name: str
    about: str
    loader: str | None = None
    """None where the graph can only be put into the folder."""
    arguments: dict[str, Any] = field(default_factory=dict)


DATASETS = {
    d.name: d
    for d in (
        Dataset("cora", "citations", "Planetoid", {"name": "Cora"}),
        Dataset("citeseer", "citations", "Planetoid", {"name": "CiteSeer"}),
        Dataset("pubmed", "citations", "Planetoid", {"name": "PubMed"}),
        Dataset(
            "chameleon",
            "Wikipedia links",
            "WikipediaNetwork",
            {"name": "chameleon", "geom_gcn_preprocess": True},
        ),
        Dataset("amazon_photo", "bought together", "Amazon", {"name": "Photo"}),
        Dataset(
            "amazon_ratings",
            "bought together",
            "HeterophilousGraphDataset",
            {"name": "Amazon-ratings"},
        ),
        Dataset("amazon_computers", "bought together", "Amazon", {"name": "Computers"}),
        Dataset("coauthor_physics", "joint papers", "Coauthor", {"name": "Physics"}),
        Dataset("minesweeper", "a grid with mines", "HeterophilousGraphDataset", {"name": "Minesweeper"}),
        Dataset("amlsim_20k", "simulated payments"),
    )
}


def load(name: str | Path) -> Graph:
    """The graph of this name, the one in this `.npz` file, or the one that a generator makes.

    >>> load("consortium:banks=2,accounts=100,illicit=0.1").owner_attribute
    'bank'
    """
    text = str(name)
    if text.endswith(".npz") or os.sep in text:
        return npz.read(Path(os.path.expanduser(text)))
    if generators.is_generated(text):
        return generators.graph(text)
    folder = _folder()
    if text not in DATASETS and not (folder and (folder / f"{text}.npz").is_file()):
        known = [*DATASETS, *generators.GENERATORS]
        if ":" in text:
            raise unknown("generator", generators.family(text), generators.GENERATORS)
        raise unknown("dataset", text, known, "; or give the path of an .npz file")
    found = where(text)
    return npz.read(found, text) if found else _download(DATASETS[text])


def stem(name: str) -> str:
    """What a dataset is called in the name of a folder.

    >>> stem("data/mine.npz"), stem("consortium:banks=5,cross=0.3")
    ('mine', 'consortium-banks5-cross0.3')
    """
    if generators.is_generated(name):
        return name.replace(":", "-").replace(",", "-").replace("=", "").replace(" ", "")
    return Path(name).stem


def names(text: str) -> list[str]:
    """Several datasets with commas between them, where a name may have parameters with commas of its own.

    >>> names("cora,consortium:banks=5,cross=0.3,consortium")
    ['cora', 'consortium:banks=5,cross=0.3', 'consortium']
    """
    found: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        if found and generators.is_generated(found[-1]) and ":" in found[-1] and "=" in part and ":" not in part:
            found[-1] += f",{part}"
        elif part:
            found.append(part)
    return found


def where(name: str) -> Path | None:
    """The file that `load` would read, if there is one: in the data folder first, then in the cache."""
    folders = [f for f in (_folder(), cache()) if f is not None]
    return next((f / f"{name}.npz" for f in folders if (f / f"{name}.npz").is_file()), None)


def _folder() -> Path | None:
    given = os.environ.get(DATA_VARIABLE)
    if not given:
        return None
    folder = Path(os.path.expanduser(given))
    if not folder.is_dir():
        raise FedstructError(f"{DATA_VARIABLE} names {folder}, which is not a folder; correct it or unset it")
    return folder


def _download(dataset: Dataset, fetch: Callable[[Dataset, Path], Any] | None = None) -> Graph:
    put_there = f"put {dataset.name}.npz into a folder and set {DATA_VARIABLE} to it"
    if dataset.loader is None:
        raise FedstructError(f"{dataset.name} is not here and cannot be downloaded: {put_there}")
    both_ways = f"{put_there}, or go online to download it"
    patience = socket.getdefaulttimeout()
    socket.setdefaulttimeout(60)
    try:
        data = (fetch or _through_pyg)(dataset, cache() / "downloads")
        # Some loaders bring a fixed split; a name means the same graph and protocol wherever it came from.
        graph = replace(Graph.from_pyg(data, dataset.name), split=None)
        npz.write(graph, cache() / f"{dataset.name}.npz")
    except Exception as error:  # whatever a network, a proxy or a changed server may raise
        raise FedstructError(
            f"{dataset.name} is not here and its download failed ({_short(error)}): {both_ways}"
        ) from None
    finally:
        socket.setdefaulttimeout(patience)
    return graph


def _through_pyg(dataset: Dataset, root: Path) -> Any:
    from torch_geometric import datasets

    assert dataset.loader is not None
    # What the loader says of its progress would stand before the one sentence, should it fail.
    with redirect_stderr(io.StringIO()):
        return getattr(datasets, dataset.loader)(root=str(root / dataset.name), **dataset.arguments)[0]


def _short(error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first[:80]}" if first else type(error).__name__
