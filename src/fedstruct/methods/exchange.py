"""Algorithm 3: each party acquires its rows of Ā, the combined adjacency, from its peers.

Reference: Aliakbari, Östman and Graell i Amat, "Decoupled Subgraph Federated Learning", appendix "Scheme to obtain the
local partition of the L-hop combined adjacency matrix".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array

from fedstruct.errors import FedstructError, RefusedMessage
from fedstruct.federation.codec import Limits
from fedstruct.federation.federation import Federation
from fedstruct.federation.message import Done, Message, Source, array
from fedstruct.federation.party import answers
from fedstruct.federation.watch import Watch
from fedstruct.graph.party_graph import PartyGraph
from fedstruct.methods.hops import HopOptions
from fedstruct.methods.opening import MOST_NODES, OPENING, OpeningParty
from fedstruct.methods.options import WireOptions
from fedstruct.structure import exposure
from fedstruct.structure.kernels import added, compressed, divide_rows, from_entries, row_sums, with_self_loops
from fedstruct.structure.prune import Rows, joined, pruned, pruned_product


class StructureOptions(HopOptions, WireOptions):
    """How Ā = Σ β_l Â^l is acquired."""

    prune: int = Field(30, ge=1, description="p, entries kept per node; each block keeps ⌈p/K⌉ per row")
    prune_rule: Literal["block", "none"] = Field("block", description="prune each block, or nothing")
    keep: int | None = Field(None, ge=1, description="a party prunes its own rows to so many entries per node")

    @property
    def exchange_hops(self) -> int:
        """How far the exchange runs; further than Ā needs where the diagonals of further powers are features."""
        return self.layers_structure

    @property
    def exchange_key(self) -> tuple[Any, ...]:
        """All that an exchange and what it leaves depend on, beside the graph and its owners."""
        return self.exchange_hops, self.layers_structure, self.prune, self.prune_rule, self.keep, self.betas, self.wire

    def entries_per_row(self, parties: int) -> int:
        """⌈p/K⌉."""
        return -(-self.prune // parties)

    def entries_at_most(self, nodes: int, parties: int) -> dict[str, int]:
        """How many entries may be sent: by the algorithm, n (L_s-1) K (K-1) ⌈p/K⌉, and as the paper counts, L K p n."""
        hops = self.exchange_hops
        pruned = nodes * (hops - 1) * parties * (parties - 1) * self.entries_per_row(parties)
        return {
            "at_most": pruned if self.prune_rule == "block" else nodes * nodes * (hops - 1) * (parties - 1),
            "paper": hops * parties * self.prune * nodes,
        }


@dataclass(frozen=True, eq=False)
class Sizes(Message):
    """How many nodes each party has: set Ā = β_1 Â."""

    sources = Source.COUNTS
    tells = "how many nodes each party has"
    reply = Done
    unit = "nodes"
    nodes: np.ndarray = array("i8", "parties")

    def complaint(self) -> str | None:
        if (self.nodes < 0).any() or sum(self.nodes.tolist()) > MOST_NODES:
            return "no federation can have such sizes"
        return None


@dataclass(frozen=True, eq=False)
class Multiply(Message):
    """Compute B_ijk = Ã^[i]_k [Â^[k]_j]^{l-1} for all i and j, prune it and post it to i."""

    sources = Source.NOTHING
    tells = "that a hop of the structure exchange begins"
    reply = Done
    hop: int


@dataclass(frozen=True, eq=False)
class Collect(Message):
    """Add up what was posted: [Â^[i]_j]^l = D⁻¹ Σ_k B_ijk, and Ā += β_l [Â^[i]]^l."""

    sources = Source.NOTHING
    tells = "that a hop of the structure exchange ends"
    reply = Done
    hop: int


@dataclass(frozen=True, eq=False)
class Blocks(Message):
    """The pruned B_ijk for all j: the rows of the receiver's border nodes, columns in federation order."""

    sources = Source.STRUCTURE | Source.COUNTS
    tells = "weighted walks that pass through the sender, from the receiver's nodes to everybody's"
    peer = True
    unit = "columns"
    rows_of: np.ndarray = array("i4", "rows", below="own", coded="gaps")
    lengths: np.ndarray = array("i4", "rows", coded="numbers")
    columns: np.ndarray = array("i4", "entries", below="nodes", coded="gaps", within="lengths")
    values: np.ndarray = array("f8", "entries")

    def complaint(self) -> str | None:
        if (self.lengths < 1).any():
            return "a row has no entry"
        if (self.values <= 0).any():
            return "a walk has a weight that is not positive"
        return None


EXCHANGE = OPENING | {Sizes, Multiply, Collect, Blocks, Done}


def acquire(federation: Federation, options: StructureOptions, nodes: np.ndarray, watch: Watch) -> None:
    """Algorithm 3, the coordinator's side: it calls the steps and sees no entry."""
    federation.ask(Sizes(nodes))
    for hop in range(2, options.exchange_hops + 1):
        federation.ask(Multiply(hop))
        federation.ask(Collect(hop))
        watch.advance(hop, options.exchange_hops)


class ExchangeParty(OpeningParty):
    """Algorithm 3, the party's side."""

    def __init__(self, own: PartyGraph, parties: tuple[str, ...], options: StructureOptions) -> None:
        super().__init__(own, parties)
        self.structure = options
        self.exposure: exposure.Exposure | None = None
        """What this party's peers read off what it sent; it stays here."""
        self._sizes: np.ndarray | None = None

    def limits(self) -> Limits:
        known = super().limits()
        if self._sizes is None:
            return known
        nodes, own = int(self._sizes.sum()), self.own.nodes
        row = nodes
        if self.structure.prune_rule == "block":
            row = min(nodes, self.structure.entries_per_row(len(self.parties)) * len(self.parties))
        return Limits(
            sizes={**known.sizes, "nodes": nodes, "own": own},
            most={"rows": own, "entries": own * row},
        )

    @answers(Sizes)
    def begin(self, question: Sizes) -> Done:
        sizes = question.nodes
        if sizes[self.me] != self.own.nodes:
            raise FedstructError(f"{self.own.name} has {self.own.nodes} nodes, not {sizes[self.me]}")
        self._sizes = sizes
        self._hop = 1
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.owner = np.repeat(np.arange(len(sizes)), sizes)
        self.rows = self._own_rows()
        self.columns = self._own_columns()
        self.degrees = row_sums(self.rows)
        self.power = divide_rows(self.rows, self.degrees)
        self.reach = csr_array(self.power.shape)
        self._add_to_reach(1)
        return Done()

    @answers(Multiply, after=Sizes)
    def multiply(self, question: Multiply) -> Done:
        # The party counts the hops itself: what it gives away, and what it says of that, is not for others to steer.
        if question.hop != self._hop + 1 or question.hop > self.structure.exchange_hops:
            raise RefusedMessage(
                f"{self.own.name} is at hop {self._hop} of the exchange, and not asked for {question.hop}"
            )
        product = self._product()
        if question.hop == 2:
            read = exposure.read_off(joined(product, len(self.owner)), self.columns, self.owner, self.me)
            self.exposure = exposure.count(self.own.name, self.parties, self.power, read, self.owner, self.own.directed)
        for peer, rows in zip(self.parties, product, strict=True):
            self.post(peer, _packed(rows))
        return Done()

    @answers(Collect, after=Multiply)
    def collect(self, question: Collect) -> Done:
        shape = (self.own.nodes, int(self.starts[-1]))
        came = [blocks for _, blocks in self.inbox(Blocks)]
        if question.hop != self._hop + 1 or len(came) != len(self.parties):
            raise RefusedMessage(
                f"{self.own.name} cannot finish hop {question.hop}: it is at hop {self._hop}, "
                f"and {len(came)} of {len(self.parties)} blocks have come"
            )
        self._hop = question.hop
        total = added(_on_top_of_each_other(came, shape), len(came))
        self.power = divide_rows(total, self.degrees)
        if self.structure.keep is not None:
            self.power.sort_indices()
            self.power = pruned(self.power, self.structure.keep * shape[0])
        self._add_to_reach(question.hop)
        return Done()

    def _product(self) -> list[Rows]:
        """B_ijk for all j, pruned, for each i; without pruning, all columns are one block that keeps what it holds."""
        sizes = np.diff(self.starts)
        if self.structure.prune_rule == "none":
            nodes = self.starts[-1]
            return pruned_product(self.columns, self.power, self.starts, np.array([0, nodes]), sizes * nodes)
        budget = self.structure.entries_per_row(len(self.parties)) * sizes
        return pruned_product(self.columns, self.power, self.starts, self.starts, budget)

    def _add_to_reach(self, hop: int) -> None:
        beta = self.structure.beta(hop)
        if beta:
            self.power.sort_indices()
            self.reach = (self.reach + self.power * beta).tocsr()

    def _own_rows(self) -> csr_array:
        """Ã^[i]: this party's rows over everybody's nodes."""
        inner, out = with_self_loops(self.own.inner).tocoo(), self.own.outgoing
        columns = np.concatenate([inner.coords[1] + self.starts[self.me], self._numbered(out.peer, out.node)])
        rows = np.concatenate([inner.coords[0], out.own])
        values = np.concatenate([inner.data, out.weight])
        return from_entries(values, rows, columns, (self.own.nodes, int(self.starts[-1])))

    def _own_columns(self) -> csr_array:
        """Ã_k: everybody's rows over this party's nodes, as far as it may know them: those of edges that enter it."""
        inner, into = with_self_loops(self.own.inner).tocoo(), self.own.incoming
        rows = np.concatenate([inner.coords[0] + self.starts[self.me], self._numbered(into.peer, into.node)])
        columns = np.concatenate([inner.coords[1], into.own])
        values = np.concatenate([inner.data, into.weight])
        return from_entries(values, rows, columns, (int(self.starts[-1]), self.own.nodes))

    def _numbered(self, peer: np.ndarray, node: np.ndarray) -> np.ndarray:
        """Peers' nodes by their place in federation order."""
        places = np.array([self.parties.index(p) for p in self.own.peers], np.int64)[peer]
        beyond = node >= np.diff(self.starts)[places]
        if beyond.any():
            bad = int(np.argmax(beyond))
            raise FedstructError(
                f"{self.own.name}: a border edge names node {node[bad]} of {self.own.peers[peer[bad]]}, "
                f"which has only {np.diff(self.starts)[places[bad]]} nodes"
            )
        numbers: np.ndarray = node + self.starts[places]
        return numbers


def _packed(rows: Rows) -> Blocks:
    filled = np.flatnonzero(rows.lengths)
    return Blocks(filled.astype(np.int32), rows.lengths[filled], rows.columns, rows.values)


def _on_top_of_each_other(came: Sequence[Blocks], shape: tuple[int, int]) -> csr_array:
    """The blocks that came, each of this shape."""
    lengths = np.zeros((len(came), shape[0]), np.int32)
    for row, blocks in zip(lengths, came, strict=True):
        row[blocks.rows_of] = blocks.lengths
    return compressed(
        np.concatenate([blocks.values for blocks in came]),
        np.concatenate([blocks.columns for blocks in came]),
        np.concatenate([[0], np.cumsum(lengths)]),
        (lengths.size, shape[1]),
    )
