"""Communities and clusters, and the rule by which parties share them: against a slow literal version of it."""

import random
from dataclasses import replace

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import fedstruct as fs
from fedstruct.errors import FedstructError
from fedstruct.graph.communities import by_edges, by_features, shared_out
from strategies import graphs
from test_partition import rebuilt

# The rule.


def literally(communities, parties):
    """Who owns what, one sentence of the rule after the other; also who was taken above the limit."""
    nodes = sum(len(c) for c in communities)
    limit = nodes // parties + 20
    pieces = [list(c) for c in communities]
    while any(len(piece) > limit for piece in pieces):
        i = next(i for i, piece in enumerate(pieces) if len(piece) > limit)
        pieces += [pieces[i][:limit], pieces[i][limit:]]
        del pieces[i]

    def in_order():
        pieces.sort(key=lambda piece: piece[0])
        pieces.sort(key=len, reverse=True)

    in_order()
    while len(pieces) < parties:
        largest = pieces.pop(0)
        middle = (len(largest) + 1) // 2
        pieces += [largest[:middle], largest[middle:]]
        in_order()
    owned = [list(piece) for piece in pieces[:parties]]
    forced = set()
    for piece in pieces[parties:]:
        for party in owned:
            if len(party) + len(piece) <= limit:
                party += piece
                break
        else:
            smallest = min(range(parties), key=lambda i: len(owned[i]))
            owned[smallest] += piece
            forced.add(smallest)
    return owned, forced


@st.composite
def communities(draw):
    """Disjoint groups that make up all nodes: some large, some of one node."""
    sizes = draw(st.lists(st.one_of(st.integers(1, 4), st.integers(1, 90)), min_size=1, max_size=25))
    order = np.random.default_rng(draw(st.integers(0, 99))).permutation(sum(sizes))
    return np.split(order, np.cumsum(sizes)[:-1])


@given(communities(), st.data())
def test_the_rule_is_the_literal_one(groups, data):
    nodes = sum(map(len, groups))
    parties = data.draw(st.one_of(st.integers(1, min(nodes, 12)), st.integers(1, nodes)))
    owner = shared_out(groups, parties)
    owned, forced = literally(groups, parties)
    assert [set(np.flatnonzero(owner == i)) for i in range(parties)] == [set(map(int, nodes)) for nodes in owned]

    sizes = np.bincount(owner, minlength=parties)
    assert sizes.sum() == nodes == len(owner)
    assert sizes.min() >= 1
    above = set(np.flatnonzero(sizes > nodes // parties + 20).tolist())
    assert above <= forced, "nobody is above the limit but whom the rule forces"


@given(communities(), st.randoms(use_true_random=False))
def test_the_order_in_which_communities_are_found_does_not_matter(groups, rng):
    owner = shared_out(groups, min(3, sum(map(len, groups))))
    rng.shuffle(groups)
    assert np.array_equal(owner, shared_out(groups, min(3, len(owner))))


def test_the_rule_on_an_example():
    groups = [np.arange(0, 60), np.arange(60, 72), np.arange(72, 77), np.arange(77, 80)]
    owner = shared_out(groups, 4)  # 80 nodes, so at most 40: 60 is cut into 40 and 20, then come 12, 5 and 3
    assert np.bincount(owner).tolist() == [40, 23, 12, 5]
    assert (owner[:40] == 0).all()
    assert (owner[[*range(40, 60), 77, 78, 79]] == 1).all()


def test_a_party_goes_above_the_limit_only_where_nothing_fits():
    groups = np.split(np.arange(183), [61, 122])  # three of 61 for two: at most 111 each
    owner = shared_out(groups, 2)
    assert sorted(np.bincount(owner).tolist()) == [61, 122]


# Partitions made of them.


def with_features(graph, seed):
    return replace(graph, features=np.random.default_rng(seed).normal(size=(graph.nodes, 2)).astype(np.float32))


@settings(max_examples=40)
@given(graphs(max_nodes=12), st.integers(0, 3), st.data())
def test_nothing_is_lost_or_doubled(drawn, seed, data):
    graph = with_features(drawn, seed)
    parties = data.draw(st.integers(1, graph.nodes))
    for make, name in ((fs.partition.louvain, "louvain"), (fs.partition.kmeans, "kmeans")):
        parts = make(graph, parties, seed)
        assert parts.name == name
        assert [p.name for p in parts.parties] == [f"party-{i + 1}" for i in range(parties)]
        assert all(p.nodes > 0 for p in parts.parties)
        assert sorted(np.concatenate(parts.nodes).tolist()) == list(range(graph.nodes))
        for borders in ("outgoing", "incoming"):
            assert np.array_equal(rebuilt(parts, borders), graph.adjacency.toarray())
        again = make(graph, parties, seed)
        assert all(np.array_equal(mine, same) for mine, same in zip(parts.nodes, again.nodes, strict=True))


@pytest.mark.parametrize("make", [fs.partition.louvain, fs.partition.kmeans])
def test_too_many_parties_or_none(make):
    graph = fs.generate.planted(nodes=5)
    with pytest.raises(FedstructError, match="6 parties cannot share the 5 nodes of planted; ask for fewer"):
        make(graph, parties=6)
    with pytest.raises(FedstructError, match="parties must be at least 1, not 0"):
        make(graph, parties=0)
    assert [p.nodes for p in make(graph, parties=5).parties] == [1] * 5


@pytest.mark.parametrize("make", [fs.partition.louvain, fs.partition.kmeans])
def test_a_seed_is_all_that_is_drawn_from(make):
    graph = fs.generate.planted(nodes=400, seed=1)
    state, numbers = random.getstate(), np.random.get_state()[1].tolist()
    owners = [make(graph, 4, seed).owner for seed in range(6)]
    assert (random.getstate(), np.random.get_state()[1].tolist()) == (state, numbers)
    assert len({owner.tobytes() for owner in owners}) > 1


def test_fewer_edges_cross_a_border_between_communities():
    graph = fs.generate.planted(nodes=600, homophily=0.95, seed=2)
    crossing = {
        make.__name__: sum(len(p.outgoing) for p in make(graph, 4, 0).parties)
        for make in (fs.partition.random, fs.partition.louvain)
    }
    assert 2 * crossing["louvain"] < crossing["random"]


# Louvain.


def as_sets(groups):
    return {frozenset(group.tolist()) for group in groups}


def ring_of_cliques(cliques, size):
    edges = np.array(networkx.ring_of_cliques(cliques, size).edges).T
    nodes = cliques * size
    return fs.Graph.from_edges(edges, features=np.zeros((nodes, 0)), labels=np.zeros(nodes, int))


@pytest.mark.parametrize("seed", range(4))
def test_cliques_are_communities(seed):
    found = by_edges(ring_of_cliques(6, 5), seed)
    assert as_sets(found) == {frozenset(range(5 * i, 5 * i + 5)) for i in range(6)}
    assert all((np.diff(group) > 0).all() for group in found)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("weights", "pairs"), [([9, 1, 9, 1], [{0, 1}, {2, 3}]), ([1, 9, 1, 9], [{1, 2}, {3, 0}])])
def test_weights_decide(weights, pairs, directed):
    square = fs.Graph.from_edges(
        [[0, 1, 2, 3], [1, 2, 3, 0]],
        features=np.eye(4),
        labels=[0] * 4,
        weights=np.array(weights, float),
        directed=directed,
    )
    assert as_sets(by_edges(square, seed=0)) == set(map(frozenset, pairs))


@given(graphs(max_nodes=12), st.integers(0, 2))
def test_directions_and_self_loops_do_not_matter_and_isolated_nodes_stay_alone(graph, seed):
    found = as_sets(by_edges(graph, seed))
    plain = fs.prepared(graph)
    assert found == as_sets(by_edges(plain, seed))
    assert sorted(v for group in found for v in group) == list(range(graph.nodes))
    alone = np.flatnonzero(np.diff(plain.adjacency.indptr) == 0)
    assert {frozenset([v]) for v in alone.tolist()} <= found


# K-means.


def blobs(seed=0):
    """Three clouds of forty nodes, far from each other, and which of them each node is in."""
    rng = np.random.default_rng(seed)
    cloud = rng.permutation(np.repeat([0, 1, 2], 40))
    features = np.array([[0, 0, 50], [50, 0, 0], [0, 50, 0]])[cloud] + rng.normal(size=(120, 3))
    graph = fs.generate.planted(nodes=120, seed=seed)
    return replace(graph, features=features.astype(np.float32)), cloud


@pytest.mark.parametrize("scale", [1.0, 1e30], ids=["of about one", "whose squares overflow"])
def test_clouds_are_clusters(scale):
    graph, cloud = blobs()
    graph = replace(graph, features=graph.features * np.float32(scale))
    clouds = {frozenset(np.flatnonzero(cloud == i).tolist()) for i in range(3)}
    found = by_features(graph, 3, seed=1)
    assert as_sets(found) == clouds
    assert all((np.diff(group) > 0).all() for group in found)


def test_sparse_features_give_the_same_clusters_whatever_the_width_of_their_positions():
    graph, _ = blobs()
    sparse = csr_array(graph.features)
    wide = csr_array((sparse.data, sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)), sparse.shape)
    expected = as_sets(by_features(graph, 3, seed=0))
    for features in (sparse, wide):
        assert as_sets(by_features(replace(graph, features=features), 3, seed=0)) == expected


def test_nodes_that_do_not_differ_are_cut_all_the_same():
    graph = replace(fs.generate.planted(nodes=90), features=np.ones((90, 2), np.float32))
    assert as_sets(by_features(graph, 3, seed=0)) == {frozenset(range(90))}
    assert [p.nodes for p in fs.partition.kmeans(graph, 3).parties] == [40, 25, 25]


def test_without_features_there_is_nothing_to_go_by():
    graph = ring_of_cliques(3, 4)
    with pytest.raises(FedstructError, match="graph has no features for K-means to go by; take louvain or random"):
        fs.partition.kmeans(graph, 3)
    assert len(fs.partition.louvain(graph, 3)) == 3
