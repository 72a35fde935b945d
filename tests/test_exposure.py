"""A literal attack reads edges off the second hop: exactly those that the sender's own `Exposure` counts.

The attacker is one party. It uses its own `PartyGraph`, the parties' sizes and the blocks that it received, nothing
else.
"""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedstruct as fs
from strategies import bounds, exchange, looped, partitions, row_normalised, with_peer

PRUNINGS = st.one_of(
    st.just({"prune_rule": "none"}), st.builds(lambda p: {"prune_rule": "block", "prune": p}, st.integers(1, 9))
)


def attack(own, parties, sizes, received):
    """What a party reads off: sender → {(node of the sender, (owner, node)): value of Â}, nodes numbered by owner.

    A node of mine that has a single edge to the sender was sent a multiple of one row of Â. I know the multiple, the
    weight of that edge, and whose row it is, the node behind it.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)])
    found = {}
    for sender, blocks in received.items():
        if sender == own.name:
            continue
        border = with_peer(own.outgoing, own.peers.index(sender))
        edges = defaultdict(list)
        for mine, theirs, weight in zip(border.own, border.node, border.weight, strict=True):
            edges[int(mine)].append((int(theirs), weight))
        read = found.setdefault(sender, {})
        first = np.cumsum(blocks.lengths) - blocks.lengths
        for row, start, length in zip(blocks.rows_of, first, blocks.lengths, strict=True):
            if len(edges[int(row)]) != 1:
                continue
            [(behind, weight)] = edges[int(row)]
            for column, value in zip(
                blocks.columns[start : start + length], blocks.values[start : start + length], strict=True
            ):
                owner = int(np.searchsorted(starts, column, side="right")) - 1
                target = parties[owner], int(column - starts[owner])
                if target == (sender, behind) or target[0] == own.name:
                    continue  # the node itself, and my own edges, which are no news
                read.setdefault((behind, target), []).append(value / weight)
    return found


def truth(parts):
    """Every edge but self loops, (party, node) to (party, node), with its entry of Â."""
    a = row_normalised(looped(parts))
    names = [p.name for p in parts.parties]
    at = bounds(parts)
    name = [(names[i], v) for i in range(len(parts)) for v in range(at[i + 1] - at[i])]
    return {(name[u], name[v]): a[u, v] for u, v in zip(*np.nonzero(a), strict=True) if u != v}


def as_counted(edges, sender, directed):
    """Inner and border edges of one party; an undirected inner edge is one, whichever way it was read."""
    inner = {(u, v) if directed else frozenset((u, v)) for u, (owner, v) in edges if owner == sender}
    border = {(u, target) for u, target in edges if target[0] != sender}
    return inner, border


def check(parts, parties):
    """The attack of every party on every other, against what each sender counted; gives back what was read in all."""
    names = tuple(p.name for p in parts.parties)
    edges = truth(parts)
    directed = parts.graph.directed
    read = {n: {} for n in names}
    for party in parties:
        found = attack(party.own, names, np.diff(bounds(parts)), party.received[2])
        assert found.keys() == set(names) - {party.own.name}
        for sender, theirs in found.items():
            read[sender][party.own.name] = theirs
            for (node, target), values in theirs.items():
                true = edges[(sender, node), target]  # a KeyError here would be an edge that does not exist
                np.testing.assert_allclose(values, true, rtol=0, atol=1e-12)

    for party in parties:
        me, counted = party.own.name, party.exposure
        mine = {(u[1], v) for u, v in edges if u[0] == me}
        inner, border = as_counted(mine, me, directed)
        assert (counted.party, counted.inner_edges, counted.border_edges) == (me, len(inner), len(border))
        by_reader = {reader: as_counted(theirs, me, directed) for reader, theirs in read[me].items()}
        assert counted.inner == {reader: len(i) for reader, (i, _) in by_reader.items()}
        assert counted.border == {reader: len(b) for reader, (_, b) in by_reader.items()}
        assert counted.third == {r: sum(target[0] != r for _, target in border) for r in by_reader}
        assert counted.inner_by_any == len(set().union(*(i for i, _ in by_reader.values())))
        assert counted.border_by_any == len(set().union(*(b for _, b in by_reader.values())))
    return sum(len(theirs) for by_reader in read.values() for theirs in by_reader.values())


@settings(max_examples=150)
@given(partitions(12), PRUNINGS, st.booleans(), st.integers(2, 3))
def test_the_attack_recovers_exactly_what_is_counted(parts, pruning, separate, hops):
    check(parts, exchange(parts, separate, layers_structure=hops, **pruning))


@pytest.mark.parametrize("pruning", [{"prune_rule": "none"}, {"prune": 30}, {"prune": 5}], ids=str)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_on_a_graph_with_much_to_read(directed, weighted, pruning):
    rng = np.random.default_rng(5)
    graph = fs.Graph.from_edges(
        rng.integers(0, 200, size=(2, 400)),
        weights=rng.uniform(0.5, 2, 400) if weighted else None,
        features=np.ones((200, 1)),
        labels=np.zeros(200, int),
        directed=directed,
    ).without_self_loops()
    parts = fs.partition.random(graph, 5, seed=1)
    assert check(parts, exchange(parts, layers_structure=2, **pruning)) > 200


def test_an_edge_behind_two_is_not_read():
    """Node a0 sees b0 and b1 through one sum, and learns neither's neighbours; node a1 sees b1 alone."""
    u = [0, 0, 1, 2, 3]
    v = [2, 3, 3, 4, 5]
    graph = fs.Graph.from_edges([u, v], features=np.ones((6, 1)), labels=np.zeros(6, int))
    owners = ["a", "a", "b", "b", "b", "c"]
    for drop, inner, border in ((None, 0, 1), (2, 0, 0), (0, 0, 1), (1, 1, 1)):
        kept = [e for e in range(5) if e != drop]
        part = fs.Graph.from_edges([np.array(u)[kept], np.array(v)[kept]], features=graph.features, labels=graph.labels)
        parts = fs.partition.by_vector(part, owners)
        parties = exchange(parts, layers_structure=2)
        check(parts, parties)
        b = parties[1].exposure
        assert (b.inner["a"], b.border["a"]) == (inner, border), f"without edge {drop}"


def test_pruning_hides_what_it_drops():
    graph = fs.generate.planted(nodes=150, degree=10, seed=1)
    parts = fs.partition.random(graph, 3, seed=0)
    runs = [exchange(parts, layers_structure=2, prune=prune) for prune in (1, 3, 9, 90)]
    shares = [sum(p.exposure.inner_by_any for p in parties) for parties in runs]
    assert shares == sorted(shares)
    assert shares[0] < shares[-1]


def test_one_hop_sends_nothing_and_exposes_nothing():
    graph = fs.split(fs.generate.planted(nodes=60, seed=0), seed=0, train=0.3)
    parts = fs.partition.random(graph, 3, seed=0)
    assert [p.exposure for p in exchange(parts, layers_structure=1)] == [None] * 3
    assert fs.run(fs.methods.FedStruct(layers_structure=1, rounds=1), parts).exposure is None


def test_the_result_of_a_run_reports_the_shares():
    graph = fs.split(fs.generate.planted(nodes=120, seed=3), seed=0, train=0.3)
    parts = fs.partition.random(graph, 4, seed=0)
    counted = [p.exposure for p in exchange(parts, layers_structure=2, prune=12)]
    told = fs.run(fs.methods.FedStruct(layers_structure=2, prune=12, rounds=1), parts).exposure
    inner, border = sum(e.inner_edges for e in counted), sum(e.border_edges for e in counted)
    assert (told["inner_edges"], told["border_edges"]) == (inner, border)
    assert told["inner_share"] == sum(e.inner_by_any for e in counted) / inner > 0
    assert told["border_share"] == sum(e.border_by_any for e in counted) / border > 0
    for party, own in zip(told["parties"], counted, strict=True):
        assert party["party"] == own.party
        for peer, shares in party["towards"].items():
            assert shares["inner_share"] == own.inner[peer] / own.inner_edges
            assert shares["border_share"] == own.border[peer] / own.third[peer]


@pytest.mark.parametrize(("name", "share"), [("cora", 0.93), ("chameleon", 0.16)])
def test_the_measured_exposure_of_real_graphs(dataset, name, share):
    """p = 30, ten parties, random partition: the share of inner edges that somebody reads off exactly."""
    parts = fs.partition.random(fs.prepared(dataset(name)), 10, seed=0)
    counted = [p.exposure for p in exchange(parts, layers_structure=2, prune=30)]
    found = sum(e.inner_by_any for e in counted) / sum(e.inner_edges for e in counted)
    assert found == pytest.approx(share, abs=0.02)
