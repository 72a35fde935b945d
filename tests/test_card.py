"""The card of a partition: each figure against a count by hand, edge by edge."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedstruct as fs
from fedstruct.experiments.card import Card, label_skew
from strategies import exchange, partitions


@st.composite
def labelled(draw, max_parties=None):
    """Parts of a small graph whose nodes have one of three classes, or none that is known."""
    parts = draw(partitions())
    n = parts.graph.nodes
    labels = np.array(draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n)))
    owner = parts.owner if max_parties is None else parts.owner % max_parties
    return fs.partition.by_vector(replace(parts.graph, labels=labels, classes=3), owner)


def edges(graph):
    """Each edge once, as a pair of nodes."""
    u, v = np.nonzero(graph.adjacency.toarray())
    return [(int(a), int(b)) for a, b in zip(u, v, strict=True) if graph.directed or a <= b]


def share(true):
    return sum(true) / len(true) if true else None


@given(labelled())
def test_counts_are_those_of_the_graph(parts):
    graph, owner, card = parts.graph, parts.owner, Card.of(parts)
    for i, part in enumerate(card.parties):
        touching = [(u, v) for u, v in edges(graph) if i in (owner[u], owner[v])]
        border = [(u, v) for u, v in touching if owner[u] != owner[v]]
        assert part.party == parts.parties[i].name
        assert part.nodes == (owner == i).sum()
        assert part.inner_edges == len(touching) - len(border)
        assert part.border_edges == len(border)
        assert part.neighbours == len({int(owner[w]) for edge in border for w in edge} - {i})
        assert part.classes == [int((graph.labels[owner == i] == c).sum()) for c in range(3)]
    assert sum(p.nodes for p in card.parties) == card.nodes == graph.nodes
    assert sum(2 * p.inner_edges + p.border_edges for p in card.parties) == 2 * card.edges == 2 * graph.edges
    assert card.classes == [int((graph.labels == c).sum()) for c in range(3)]
    assert card.border_share == share([owner[u] != owner[v] for u, v in edges(graph)])


@given(labelled())
def test_homophily_inside_and_across(parts):
    labels, card = parts.graph.labels, Card.of(parts)
    ends = [(u, v) for u, v in edges(parts.graph) if labels[u] >= 0 and labels[v] >= 0]
    for found, crossing in ((card.homophily_inside, False), (card.homophily_across, True)):
        here = [labels[u] == labels[v] for u, v in ends if (parts.owner[u] != parts.owner[v]) == crossing]
        assert found == share(here)


@given(labelled())
def test_label_skew_is_the_share_that_would_have_to_change(parts):
    labels, owner = parts.graph.labels, parts.owner
    everybody = [share((labels[labels >= 0] == c).tolist()) for c in range(3)]
    distances = []
    for i in range(len(parts)):
        mine = labels[(owner == i) & (labels >= 0)]
        if mine.size:
            distances.append(sum(max(0, np.mean(mine == c) - everybody[c]) for c in range(3)))
    found = Card.of(parts).label_skew
    assert found == (pytest.approx(np.mean(distances), abs=1e-12) if distances else None)


def read_by_some_peer(parts, k):
    """Party k's inner edges that somebody else reads, where nothing is pruned: those of a node behind a single edge."""
    a = parts.graph.adjacency.toarray() > 0
    read = set()
    for v in np.flatnonzero(parts.owner != k):
        behind = np.flatnonzero(a[v] & (parts.owner == k))
        if len(behind) == 1:
            u = int(behind[0])
            read |= {(u, int(w)) for w in np.flatnonzero(a[u] & (parts.owner == k)) if w != u}
    return read if parts.graph.directed else {(min(e), max(e)) for e in read}


@given(labelled(max_parties=3))
def test_what_is_read_off_is_what_lies_behind_single_edges(parts):
    card = Card.of(parts)  # ten nodes or fewer of three parties or fewer: p = 30 prunes nothing
    read = [read_by_some_peer(parts, k) for k in range(len(parts))]
    inner = [
        [e for e in edges(parts.graph) if parts.owner[e[0]] == parts.owner[e[1]] == k and e[0] != e[1]]
        for k in range(len(parts))
    ]
    for part, theirs, mine in zip(card.parties, read, inner, strict=True):
        assert part.read_off == (len(theirs) / len(mine) if mine else None)
    everything = sum(map(len, inner))
    assert card.read_off == (sum(map(len, read)) / everything if everything else None)


def test_what_is_read_off_is_what_the_parties_of_a_run_find():
    graph = fs.prepared(fs.generate.planted(nodes=400, degree=20, seed=4))
    parts = fs.partition.louvain(graph, 5, seed=0)
    card = Card.of(parts)
    exposed = [party.exposure for party in exchange(parts, layers_structure=2, prune=card.prune)]
    assert [p.read_off for p in card.parties] == [e.inner_by_any / e.inner_edges for e in exposed]
    result = fs.run(fs.methods.FedStruct(rounds=1), parts)
    assert card.read_off == result.exposure["inner_share"]
    assert 0 < card.read_off < 1


def test_skew_of_extremes():
    assert label_skew(np.array([[3, 1], [6, 2]])) == 0
    assert label_skew(np.eye(4, dtype=int) * 7) == pytest.approx(0.75)
    assert label_skew(np.array([[5, 5], [0, 0]])) == 0
    assert label_skew(np.zeros((3, 2), int)) is None


@settings(max_examples=30)
@given(labelled())
def test_a_card_is_json(parts):
    card = Card.of(parts)
    told = json.loads(json.dumps(card.as_json(), allow_nan=False))
    assert told == card.as_json()
    assert [p["party"] for p in told["parties"]] == [p.name for p in parts.parties]
