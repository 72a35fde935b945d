"""Cut one graph into the parts of many owners.

>>> from fedstruct.graph import generate
>>> [len(random(generate.planted(nodes=60), parties=3, seed=seed)) for seed in (0, 1)]
[3, 3]
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedstruct.atomic import replaced
from fedstruct.errors import FedstructError, unknown
from fedstruct.graph import communities
from fedstruct.graph.cut import cut_up
from fedstruct.graph.graph import Graph
from fedstruct.graph.party_graph import PartyGraph
from fedstruct.seeds import stream

OWNER_FILES = (".npy", ".txt")
"""The files that name the owner of each node: a NumPy array, or text with one owner per line."""


@dataclass(frozen=True, eq=False)
class Partition:
    """A graph and its owners: the view from above, which no party has.

    `nodes[i]` lists the graph's nodes that party i owns, in the party's own numbering.

    >>> from fedstruct.graph import generate
    >>> parts = random(generate.planted(nodes=60), parties=3)
    >>> sum(len(nodes) for nodes in parts.nodes), [party.name for party in parts.parties]
    (60, ['party-1', 'party-2', 'party-3'])
    """

    graph: Graph
    owner: np.ndarray
    parties: tuple[PartyGraph, ...]
    nodes: tuple[np.ndarray, ...]
    name: str

    def __len__(self) -> int:
        return len(self.parties)

    def on(self, graph: Graph) -> Partition:
        """The same owners of a graph that differs from this one in its labels and its split alone."""
        parties = tuple(
            replace(own, labels=graph.labels[mine], split=None if graph.split is None else graph.split[mine])
            for own, mine in zip(self.parties, self.nodes, strict=True)
        )
        return replace(self, graph=graph, parties=parties)


def random(graph: Graph, parties: int, seed: int = 0) -> Partition:
    """Draw each node's owner independently; nobody is left without a node.

    >>> ring = Graph.from_edges([[0, 1, 2, 3], [1, 2, 3, 0]], features=np.eye(4), labels=[0, 1, 0, 1])
    >>> parts = random(ring, parties=2, seed=1)
    >>> sum(p.nodes for p in parts.parties), len(parts)
    (4, 2)
    """
    _check_count(parties, graph)
    draw = stream(seed, "partition", "random", parties)
    owner = draw.integers(parties, size=graph.nodes)
    counts = np.bincount(owner, minlength=parties)
    for empty in np.flatnonzero(counts == 0):
        giver = np.argmax(counts)
        node = draw.choice(np.flatnonzero(owner == giver))
        owner[node] = empty
        counts[giver] -= 1
        counts[empty] += 1
    return cut(graph, owner, _numbered(parties), seed, "random")


def louvain(graph: Graph, parties: int, seed: int = 0) -> Partition:
    """Communities found by the Louvain method, so that few edges cross a border; parties are of about the same size.

    >>> graph = Graph.from_edges([[0, 1, 2, 3], [1, 0, 3, 2]], features=np.eye(4), labels=[0, 1, 0, 1])
    >>> [len(p.outgoing) for p in louvain(graph, parties=2).parties]
    [0, 0]
    """
    _check_count(parties, graph)
    owner = communities.shared_out(communities.by_edges(graph, seed), parties)
    return cut(graph, owner, _numbered(parties), seed, "louvain")


def kmeans(graph: Graph, parties: int, seed: int = 0) -> Partition:
    """Clusters of nodes with similar features, found by K-means; parties are of about the same size.

    >>> graph = Graph.from_edges([[0, 1], [2, 3]], features=[[0.0], [0.1], [5.0], [5.1]], labels=[0, 0, 1, 1])
    >>> [sorted(nodes.tolist()) for nodes in kmeans(graph, parties=2).nodes]
    [[0, 1], [2, 3]]
    """
    _check_count(parties, graph)
    owner = communities.shared_out(communities.by_features(graph, parties, seed), parties)
    return cut(graph, owner, _numbered(parties), seed, "kmeans")


def pooled(parts: Partition) -> Partition:
    """The same graph in one hand."""
    return cut(parts.graph, np.zeros(parts.graph.nodes, np.int64), ["everybody"], 0, "pooled")


def by_vector(graph: Graph, owners: Any, seed: int = 0, name: str = "given") -> Partition:
    """Owners as given: one name or number per node; parties are in the order of their names, 2 before 10.

    >>> from fedstruct.graph import generate
    >>> [p.name for p in by_vector(generate.planted(nodes=4), ["b-10", "b-2", "b-2", "b-10"]).parties]
    ['b-2', 'b-10']
    """
    owners = np.asarray(owners)
    if owners.shape != (graph.nodes,):
        raise FedstructError(f"the owners are of shape {owners.shape}, but {graph.name} has {graph.nodes} nodes")
    names, owner = np.unique(owners, return_inverse=True)
    for number, named in enumerate(names):
        if not _names_somebody(named):
            raise FedstructError(
                f"the owner of node {np.argmax(owner == number)} of {graph.name} is {named.item()!r}; "
                "each node needs an owner, named by a number or a UTF-8 text"
            )
    labels = [f"party-{n}" if owners.dtype.kind in "iu" else str(n) for n in names]
    order = sorted(range(len(labels)), key=lambda i: (_numbers_padded(labels[i]), labels[i]))
    return cut(graph, np.argsort(order)[owner], [labels[i] for i in order], seed, name)


def by_attribute(graph: Graph, attribute: str, seed: int = 0) -> Partition:
    """Owners from one of the graph's attributes, say `bank`.

    >>> from fedstruct.graph import generate
    >>> len(by_attribute(generate.consortium(banks=3, accounts=200).graph(), "bank"))
    3
    """
    if attribute not in graph.attributes:
        if not graph.attributes:
            raise FedstructError(f"{graph.name} has no attributes, so none named '{attribute}' can name the owners")
        raise unknown("attribute", attribute, graph.attributes)
    return by_vector(graph, graph.attributes[attribute], seed, f"attribute:{attribute}")


def cut(graph: Graph, owner: np.ndarray, names: list[str], seed: int, how: str) -> Partition:
    """Give each party what it owns; its nodes are renumbered in a random order, drawn once."""
    shuffled = stream(seed, "partition", "numbers").permutation(graph.nodes)
    # Of narrow numbers, which are sorted fastest.
    order = shuffled[np.argsort(owner[shuffled].astype(np.min_scalar_type(len(names))), kind="stable")]
    nodes = tuple(np.split(order, np.cumsum(np.bincount(owner, minlength=len(names)))[:-1]))
    return Partition(graph, owner, cut_up(graph, names, nodes), nodes, how)


def _numbered(parties: int) -> list[str]:
    return [f"party-{i + 1}" for i in range(parties)]


def _names_somebody(owner: Any) -> bool:
    if owner.dtype.kind == "f":
        return bool(np.isfinite(owner))
    return not any("\ud800" <= letter <= "\udfff" for letter in str(owner))  # halves of letters, which no file takes


def _numbers_padded(name: str) -> str:
    """A text that sorts as people count: party-2 before party-10."""
    return re.sub(r"\d+", lambda digits: digits[0].zfill(20), name)


def _check_count(parties: int, graph: Graph) -> None:
    if parties < 1:
        raise FedstructError(f"parties must be at least 1, not {parties}")
    if parties > graph.nodes:
        raise FedstructError(f"{parties} parties cannot share the {graph.nodes} nodes of {graph.name}; ask for fewer")


def read_owners(path: Path) -> np.ndarray:
    """The owners in a file: a `.npy` array, or text with one owner per line."""
    try:
        if path.suffix == ".npy":
            with path.open("rb") as file:
                owners: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
            if owners.dtype.kind in "if" and (owners < 0).any():
                raise FedstructError(
                    f"the owner of node {np.argmax(owners < 0)} in {path} is {owners.flat[np.argmax(owners < 0)]}; "
                    "each node needs an owner, and owners are counted from 0"
                )
            return owners
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
        if any("," in line for line in lines):
            raise FedstructError(f"{path} holds a table; give a file with one owner per line and nothing else")
        return np.array(lines)
    except FileNotFoundError:
        raise FedstructError(f"there is no file of owners {path}") from None
    except (OSError, ValueError, EOFError) as error:
        raise FedstructError(f"the file of owners {path} cannot be read: {error}") from None


def check_new(path: Path) -> None:
    """Refuse what `write_owners` would refuse, before anything is computed."""
    if path.suffix not in OWNER_FILES:
        raise FedstructError(f"owners are written to a {' or '.join(OWNER_FILES)} file, and {path} is none; rename it")
    if path.exists():
        raise FedstructError(f"{path} exists and is not overwritten; give another --out")
    if not path.parent.is_dir():
        raise FedstructError(
            f"there is no folder {path.parent} to write {path.name} into; make it or give another --out"
        )


def write_owners(parts: Partition, path: Path) -> None:
    """Write the name of each node's owner into a new file; `read_owners` and `by_vector` give the same parts again."""
    check_new(path)
    names = [party.name for party in parts.parties]
    if path.suffix == ".txt" and any("," in n or n != n.strip() or len(n.splitlines()) != 1 for n in names):
        raise FedstructError("a party's name has a comma, a line break or a space at its end; write to a .npy file")
    owners = np.array(names)[parts.owner]
    raw = io.BytesIO()
    if path.suffix == ".npy":
        np.save(raw, owners)
    else:
        raw.write("".join(f"{name}\n" for name in owners).encode())
    try:
        replaced(path, lambda part: part.write_bytes(raw.getbuffer()))
    except OSError as error:
        raise FedstructError(f"{path} cannot be written: {error.strerror}; give another --out") from None
