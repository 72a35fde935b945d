"""Small graphs and their parts as hypothesis draws them, and what several tests look at them with."""

from collections import namedtuple

import numpy as np
import torch
from hypothesis import strategies as st

import fedstruct as fs
from fedstruct.federation.codec import Limits
from fedstruct.federation.federation import Coordinator
from fedstruct.federation.ledger import Ledger
from fedstruct.federation.local import LocalFederation, LocalTransport
from fedstruct.federation.site import Site
from fedstruct.federation.transport import COORDINATOR
from fedstruct.federation.watch import Watch
from fedstruct.graph.party_graph import Border
from fedstruct.methods.exchange import EXCHANGE, Blocks, ExchangeParty, StructureOptions, acquire
from fedstruct.methods.fedstruct import Reach
from fedstruct.methods.opening import announced
from fedstruct.models.dropout import dropped_relu

ANY_WEIGHT = st.floats(0.1, 10)
EXACT_WEIGHT = st.integers(1, 16).map(lambda quarters: quarters / 4)
"""Weights whose sums are exact in any order."""


@st.composite
def graphs(draw, max_nodes=10, weights=ANY_WEIGHT, directed=None):
    """Directed or not, weighted or not, with isolated nodes and self loops now and then."""
    nodes = draw(st.integers(1, max_nodes))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node, weights), max_size=4 * nodes))
    return fs.Graph.from_edges(
        np.array([e[:2] for e in edges], np.int64).reshape(-1, 2).T,
        features=np.ones((nodes, 1)),
        labels=np.zeros(nodes, np.int64),
        weights=np.array([e[2] for e in edges]) if draw(st.booleans()) else None,
        directed=draw(st.booleans()) if directed is None else directed,
    )


@st.composite
def partitions(draw, max_nodes=10, weights=ANY_WEIGHT, directed=None):
    """Any number of parties, from one that owns all to one for each node."""
    graph = draw(graphs(max_nodes, weights, directed))
    parties = draw(st.integers(1, graph.nodes))
    owners = draw(st.lists(st.integers(0, parties - 1), min_size=graph.nodes, max_size=graph.nodes))
    return fs.partition.by_vector(graph, owners, seed=draw(st.integers(0, 3)))


def federation_order(parts):
    """The graph's nodes as the federation numbers them: party after party, each in its own numbering."""
    return np.concatenate(parts.nodes)


def looped(parts):
    """Ã = A + I, dense, in federation order."""
    order = federation_order(parts)
    return parts.graph.adjacency.toarray()[np.ix_(order, order)] + np.eye(len(order))


def row_normalised(looped):
    return looped / looped.sum(axis=1, keepdims=True)


def bounds(parts):
    """Where each party's nodes start in federation order, and where the last one's end."""
    return np.concatenate([[0], np.cumsum([p.nodes for p in parts.parties])])


class Witness(ExchangeParty):
    """A party that remembers which blocks it collected at each hop, by sender."""

    def __init__(self, own, parties, options):
        super().__init__(own, parties, options)
        self.received = {}

    def collect(self, question):
        self.received[question.hop] = dict(self.inbox(Blocks))
        return super().collect(question)


def exchange(parts, separate=False, **options):
    """Run Algorithm 3 as messages; gives back the parties as it leaves them."""
    structure = StructureOptions.of(**options)
    names = tuple(p.name for p in parts.parties)
    parties = [Witness(own, names, structure) for own in parts.parties]
    federation = LocalFederation(parties, EXCHANGE, run="test", separate=separate)
    acquire(federation, structure, np.diff(bounds(parts)), Watch())
    return parties


def dense(blocks, shape):
    """The rows in a `Blocks` message as a matrix of the receiver's nodes by everybody's."""
    matrix = np.zeros(shape)
    rows = np.repeat(blocks.rows_of, blocks.lengths)
    np.add.at(matrix, (rows, blocks.columns), blocks.values)
    return matrix


Record = namedtuple("Record", "step sender receiver kind frame")


class Recorder(LocalTransport):
    """Hands bytes over as the local transport does, and keeps a copy of each frame."""

    def __init__(self):
        super().__init__()
        self.records = []

    def call(self, envelopes):
        answers = super().call(envelopes)
        for party, envelope in envelopes.items():
            step, frame = int.from_bytes(envelope[:8], "little"), envelope[8:]
            self.records.append(Record(step, COORDINATOR, party, kind_of(frame), frame))
            self.records.append(Record(step, party, COORDINATOR, kind_of(answers[party]), answers[party]))
        return answers

    def deliver(self, sender, to, envelope):
        step, frame = int.from_bytes(envelope[:8], "little"), envelope[8:]
        self.records.append(Record(step, sender, to, kind_of(frame), frame))
        super().deliver(sender, to, envelope)


def kind_of(frame):
    """The name of the message in a frame: after three bytes of magic, its length and its letters."""
    return frame[4 : 4 + frame[3]].decode()


def recorded(parties, kinds, wire="full"):
    """A federation of separate sites whose every frame, posts unsealed, is kept in the recorder."""
    names = tuple(p.own.name for p in parties)
    transport = Recorder()
    for party in parties:
        transport.sites[party.own.name] = Site(party, kinds, transport, Ledger("test", party.own.name), wire=wire)
    return Coordinator(names, kinds, transport, Ledger("test", COORDINATOR), wire), transport


Ready = namedtuple("Ready", "federation parties reach")


def ready(method, parts, seed=0, separate=False):
    """Parties after the structure exchange, ready for their first round; `reach` is what each training set reaches."""
    names = tuple(p.name for p in parts.parties)
    parties = [method.party(own, names, seed) for own in parts.parties]
    federation = LocalFederation(parties, method.sends, run="test", separate=separate)
    sizes = np.array([a.nodes for a in announced(federation).values()])
    acquire(federation, method.options, sizes, Watch())
    answers = federation.ask(Reach(), Limits(sizes={"nodes": int(sizes.sum())}))
    return Ready(federation, parties, {name: a.columns for name, a in answers.items()})


def keep_mask(rows, width, rate, *when):
    """Which units dropout keeps, rows × width."""
    return dropped_relu(torch.ones(len(rows), width), rows, rate, *when) > 0


def with_peer(border, peer):
    """The part of a border that is shared with one peer."""
    at = border.peer == peer
    return Border(border.own[at], border.peer[at], border.node[at], border.weight[at])
