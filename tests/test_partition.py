"""Partitions: nothing of the graph is lost, and each party holds its own and no more."""

import tracemalloc
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, issparse

import fedstruct as fs
from fedstruct.errors import FedstructError
from fedstruct.graph.cut import _check_both_ways
from fedstruct.graph.generate import planted
from fedstruct.graph.graph import Graph
from fedstruct.graph.partition import cut, read_owners, write_owners
from fedstruct.graph.party_graph import Border
from fedstruct.seeds import stream
from strategies import graphs, partitions, with_peer


def rebuilt(parts, borders):
    """The graph's adjacency from what the parties hold: inner edges, and the borders of one direction."""
    n = parts.graph.nodes
    dense = np.zeros((n, n))
    place = {p.name: nodes for p, nodes in zip(parts.parties, parts.nodes, strict=True)}
    for party in parts.parties:
        mine = place[party.name]
        dense[np.ix_(mine, mine)] += party.inner.toarray()
        border = getattr(party, borders)
        for own, peer, node, weight in zip(border.own, border.peer, border.node, border.weight, strict=True):
            here, there = mine[own], place[party.peers[peer]][node]
            at = (here, there) if borders == "outgoing" else (there, here)
            assert dense[at] == 0, "an edge is held twice"
            dense[at] = weight
    return dense


# Nothing is lost, and nothing doubled.


@given(partitions())
def test_every_edge_is_held_once_with_its_weight(parts):
    whole = parts.graph.adjacency.toarray()
    assert np.array_equal(rebuilt(parts, "outgoing"), whole)
    assert np.array_equal(rebuilt(parts, "incoming"), whole)
    held = sum(p.inner.nnz + len(p.outgoing) for p in parts.parties)
    assert held == parts.graph.adjacency.nnz


@given(partitions())
def test_every_node_has_one_owner_and_one_number(parts):
    together = np.concatenate(parts.nodes)
    assert sorted(together.tolist()) == list(range(parts.graph.nodes))
    for i, (party, nodes) in enumerate(zip(parts.parties, parts.nodes, strict=True)):
        assert party.nodes == len(nodes) > 0
        assert (parts.owner[nodes] == i).all()


@given(graphs(max_nodes=8), st.data())
def test_nodes_keep_what_belongs_to_them(drawn, data):
    n = drawn.nodes
    graph = replace(
        drawn,
        features=np.arange(2.0 * n, dtype=np.float32).reshape(n, 2),
        labels=np.arange(n) % 3,
        classes=3,
        ids=np.array([f"node {i}" for i in range(n)]),
        split=np.arange(n) % 4,
    )
    parts = fs.partition.by_vector(graph, data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    sparse = fs.partition.by_vector(replace(graph, features=csr_array(graph.features)), parts.owner)
    for party, other, nodes in zip(parts.parties, sparse.parties, parts.nodes, strict=True):
        assert np.array_equal(party.features, graph.features[nodes])
        assert np.array_equal(other.features.toarray(), party.features)
        for what in ("labels", "ids", "split"):
            assert np.array_equal(getattr(party, what), getattr(graph, what)[nodes])
        assert (party.classes, party.directed) == (3, graph.directed)


def edges(parts, party, borders):
    """A party's border edges as (source, number, target, number, weight)."""
    border = getattr(party, borders)
    theirs = [(party.peers[p], int(v)) for p, v in zip(border.peer, border.node, strict=True)]
    mine = [(party.name, int(u)) for u in border.own]
    pairs = zip(mine, theirs, strict=True) if borders == "outgoing" else zip(theirs, mine, strict=True)
    return {(*u, *v, float(w)) for (u, v), w in zip(pairs, border.weight, strict=True)}


ONE_WAY = "payments: its edges do not go both ways with the same weight; build it with Graph.from_edges or say directed"


def said_undirected(adjacency):
    """The graph of this adjacency, whatever it is."""
    n = adjacency.shape[0]
    return Graph(csr_array(adjacency), np.ones((n, 1), np.float32), np.zeros(n, np.int64), 1, name="payments")


@given(graphs(directed=False), st.sampled_from([np.int8, np.float32, np.float64]), st.data())
def test_undirected_edges_go_both_ways_with_one_weight(drawn, kind, data):
    """Up to rounding, and to the order in which the edges stand there."""
    dense, rounded = drawn.adjacency.toarray(), 1.0
    if kind is np.int8:
        dense = np.ceil(dense)
    else:
        rounded = np.random.default_rng(0).choice([1, 1 + np.finfo(kind).eps], dense.shape)
    for adjacency in (dense, dense * rounded):
        fs.partition.random(said_undirected(adjacency.astype(kind)), parties=1)
    u, v = (data.draw(st.integers(0, drawn.nodes - 1)) for _ in range(2))
    if u == v:
        return
    wrong = dense.astype(kind)
    wrong[u, v] = 0 if wrong[u, v] > 0 and data.draw(st.booleans()) else wrong[u, v] + 1
    with pytest.raises(FedstructError, match=ONE_WAY):
        fs.partition.random(said_undirected(wrong), parties=1)
    assert fs.partition.random(replace(said_undirected(wrong), directed=True), parties=1)


@given(st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), min_size=1, max_size=80))
def test_any_edges_that_go_one_way_are_refused(edges):
    dense = np.zeros((30, 30), np.int8)
    dense[tuple(np.transpose(edges))] = 1
    if (dense == dense.T).all():
        fs.partition.random(said_undirected(dense), parties=3)
    else:
        with pytest.raises(FedstructError, match=ONE_WAY):
            fs.partition.random(said_undirected(dense), parties=3)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_hub_of_any_weights_goes_both_ways(kind):
    """Its sums are rounded in another order there and back."""
    n = 50_000
    weights = (10 ** np.random.default_rng(0).uniform(-6, 6, n - 1)).astype(kind)
    ends = np.zeros(n - 1, np.int64), np.arange(1, n)
    star = csr_array((weights, ends), shape=(n, n))
    fs.partition.random(said_undirected(star + star.T), parties=2)
    with pytest.raises(FedstructError, match=ONE_WAY):
        fs.partition.random(said_undirected(star), parties=2)


def test_looking_both_ways_makes_no_copy_of_the_edges():
    n, each = 2_000, 500
    columns = (np.arange(n)[:, None] + np.concatenate([np.arange(1, each + 1), -np.arange(1, each + 1)])) % n
    ring = csr_array((np.ones(2 * n * each, np.int8), columns.ravel(), np.arange(n + 1) * 2 * each), shape=(n, n))
    graph = said_undirected(ring)
    _check_both_ways(graph)
    tracemalloc.start()
    try:
        _check_both_ways(graph)
        assert tracemalloc.get_traced_memory()[1] < graph.adjacency.nnz
    finally:
        tracemalloc.stop()


@given(partitions())
def test_a_border_edge_is_known_to_its_two_owners_and_to_nobody_else(parts):
    everything = {"outgoing": set(), "incoming": set()}
    for party in parts.parties:
        for borders, seen in everything.items():
            mine = edges(parts, party, borders)
            assert len(mine) == len(getattr(party, borders))
            assert all(party.name in (edge[0], edge[2]) and edge[0] != edge[2] for edge in mine)
            assert not mine & seen
            seen |= mine
    assert everything["outgoing"] == everything["incoming"]
    for party in parts.parties:
        for i, peer in enumerate(party.peers):
            other = next(p for p in parts.parties if p.name == peer)
            mine = replace(party, outgoing=with_peer(party.outgoing, i))
            theirs = replace(other, incoming=with_peer(other.incoming, other.peers.index(party.name)))
            assert edges(parts, mine, "outgoing") == edges(parts, theirs, "incoming")


@given(partitions())
def test_peers_are_the_others_in_federation_order(parts):
    names = [party.name for party in parts.parties]
    assert len(set(names)) == len(names) == len(parts)
    for party in parts.parties:
        assert list(party.peers) == [name for name in names if name != party.name]


@given(partitions())
def test_what_a_party_holds_is_in_order(parts):
    for party in parts.parties:
        assert party.inner.has_sorted_indices
        assert party.inner.has_canonical_format
        for border in (party.outgoing, party.incoming):
            order = list(zip(border.own.tolist(), border.peer.tolist(), border.node.tolist(), strict=True))
            assert order == sorted(set(order))


def plainly_cut(graph, owner, names, seed):
    """The parts of a graph, edge by edge."""
    order = stream(seed, "partition", "numbers").permutation(graph.nodes).tolist()
    nodes = [[v for v in order if owner[v] == i] for i in range(len(names))]
    number = {v: (i, at) for i, mine in enumerate(nodes) for at, v in enumerate(mine)}
    inner = [np.zeros((len(mine), len(mine))) for mine in nodes]
    outgoing, incoming = ([[] for _ in names] for _ in range(2))
    for u, v in zip(*(end.tolist() for end in graph.adjacency.tocoo().coords), strict=True):
        (i, here), (j, there), weight = number[u], number[v], graph.adjacency[u, v]
        if i == j:
            inner[i][here, there] = weight
        else:
            outgoing[i].append((here, j - (j > i), there, weight))
            incoming[j].append((there, i - (i > j), here, weight))
    return nodes, inner, [sorted(border) for border in outgoing], [sorted(border) for border in incoming]


@given(partitions(max_nodes=16), st.integers(0, 3))
def test_a_cut_is_that_of_plain_loops(parts, seed):
    names = [party.name for party in parts.parties]
    found = cut(parts.graph, parts.owner, names, seed, "again")
    for party, mine, nodes, inner, *borders in zip(
        found.parties, found.nodes, *plainly_cut(parts.graph, parts.owner, names, seed), strict=True
    ):
        assert mine.tolist() == nodes
        assert np.array_equal(party.inner.toarray(), inner)
        for border, rows in zip((party.outgoing, party.incoming), borders, strict=True):
            columns = (border.own, border.peer, border.node, border.weight)
            assert list(zip(*(column.tolist() for column in columns), strict=True)) == rows


@pytest.mark.parametrize("directed", [False, True])
def test_long_rows_are_cut_as_short_ones_are(directed):
    ends = stream(0, "hubs").integers(0, 400, size=(2, 6_000))
    ends[0, :3_000] %= 3
    graph = Graph.from_edges(ends, features=np.ones((400, 1)), labels=[0] * 400, directed=directed,
                             weights=stream(1, "hubs").random(6_000) + 0.1)  # fmt: skip
    parts = fs.partition.random(graph, parties=4)
    assert np.diff(graph.adjacency.indptr).max() > 300
    for borders in ("outgoing", "incoming"):
        assert np.array_equal(rebuilt(parts, borders), graph.adjacency.toarray())


def test_what_a_party_holds_is_narrow_and_undirected_edges_stand_there_once():
    for graph in (planted(nodes=60), replace(planted(nodes=60), directed=True)):
        for party in fs.partition.random(graph, parties=3).parties:
            assert [getattr(party.outgoing, name).dtype for name in ("own", "peer", "node")] == ["i4", "i2", "i4"]
            assert party.inner.indices.dtype == party.inner.indptr.dtype == np.int32
            assert (party.incoming is party.outgoing) == (not graph.directed)


# A party holds nothing of others.


def arrays_in(thing):
    if is_dataclass(thing):
        return [a for f in fields(thing) for a in arrays_in(getattr(thing, f.name))]
    if issparse(thing):
        return [thing.data, thing.indices, thing.indptr]
    return [thing] if isinstance(thing, np.ndarray) else []


def same(left, right):
    left, right = arrays_in(left), arrays_in(right)
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)


@pytest.mark.parametrize("sparse", [False, True])
def test_what_others_have_changes_nothing_of_a_party(sparse):
    graph = planted(nodes=90, seed=3)
    graph = replace(graph, split=np.arange(90, dtype=np.int8) % 4, ids=np.arange(90))
    parts = fs.partition.random(graph, parties=3, seed=1)
    a = graph.adjacency.toarray()
    for i in range(len(parts)):
        others = parts.owner != i
        inner = np.outer(others, others)
        features = np.where(others[:, None], -graph.features, graph.features)
        changed = replace(
            graph,
            adjacency=csr_array(np.where(inner, np.roll(a, (7, 7), axis=(0, 1)), a)),
            features=csr_array(features) if sparse else features,
            labels=np.where(others, 3 - graph.labels, graph.labels),
            ids=np.where(others, 1000, graph.ids),
            split=np.where(others, 3 - graph.split, graph.split),
        )
        before = replace(graph, features=csr_array(graph.features)) if sparse else graph
        mine = fs.partition.by_vector(before, parts.owner, seed=1).parties[i]
        same(fs.partition.by_vector(changed, parts.owner, seed=1).parties[i], mine)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_party_holds_no_memory_of_the_whole_graph(sparse):
    graph = planted(nodes=90, seed=3)
    if sparse:
        graph = replace(graph, features=csr_array(graph.features))
    parts = fs.partition.random(graph, parties=3, seed=1)
    whole = [*arrays_in(graph), parts.owner, *parts.nodes]
    for party in parts.parties:
        for held in arrays_in(party):
            assert not any(np.shares_memory(held, other) for other in whole)
            root = held
            while isinstance(root.base, np.ndarray):
                root = root.base
            assert root.size <= max(party.features.size, party.inner.nnz + 1, len(party.outgoing), len(party.incoming))
    first = {id(held) for held in arrays_in(parts.parties[0])}
    assert not first & {id(held) for party in parts.parties[1:] for held in arrays_in(party)}


def test_a_party_has_no_field_for_the_whole_graph():
    assert [f.name for f in fields(fs.PartyGraph)] == [
        "name",
        "peers",
        "features",
        "labels",
        "classes",
        "inner",
        "outgoing",
        "incoming",
        "directed",
        "ids",
        "split",
    ]
    assert [f.name for f in fields(Border)] == ["own", "peer", "node", "weight"]


# Numbers are drawn, once.


def test_the_same_seed_gives_the_same_partition():
    graph = planted(nodes=80)
    for make in (
        lambda seed: fs.partition.random(graph, parties=4, seed=seed),
        lambda seed: fs.partition.by_vector(graph, np.arange(80) % 4, seed=seed),
    ):
        one, again, other = make(5), make(5), make(6)
        for mine, same_seed in zip(one.parties, again.parties, strict=True):
            same(mine, same_seed)
        assert not all(np.array_equal(m, o) for m, o in zip(one.nodes, other.nodes, strict=True))
    assert not np.array_equal(fs.partition.random(graph, 4, seed=5).owner, fs.partition.random(graph, 4, seed=6).owner)


def test_numbers_do_not_tell_a_nodes_place_in_the_graph():
    parts = fs.partition.by_vector(planted(nodes=80), np.zeros(80, int), seed=0)
    assert sorted(parts.nodes[0].tolist()) == list(range(80))
    assert np.count_nonzero(np.diff(parts.nodes[0]) > 0) < 60


@given(graphs(), st.integers(0, 5), st.data())
def test_a_random_partition_leaves_nobody_empty(graph, seed, data):
    parties = data.draw(st.integers(1, graph.nodes))
    parts = fs.partition.random(graph, parties, seed)
    assert [p.name for p in parts.parties] == [f"party-{i + 1}" for i in range(parties)]
    assert all(p.nodes > 0 for p in parts.parties)
    assert parts.name == "random"
    assert np.array_equal(rebuilt(parts, "outgoing"), graph.adjacency.toarray())


def test_a_random_partition_draws_each_owner_alike():
    parts = fs.partition.random(planted(nodes=4000), parties=4, seed=0)
    sizes = np.array([p.nodes for p in parts.parties])
    assert (abs(sizes - 1000) < 5 * np.sqrt(4000 * 0.25 * 0.75)).all()
    assert len(set(sizes.tolist())) > 1


# Owners as given.


def test_owners_by_name_are_parties_in_the_order_of_their_names():
    graph = planted(nodes=6)
    parts = fs.partition.by_vector(graph, ["nord", "sued", "nord", "ost", "ost", "nord"])
    assert [p.name for p in parts.parties] == ["nord", "ost", "sued"]
    assert [sorted(nodes.tolist()) for nodes in parts.nodes] == [[0, 2, 5], [3, 4], [1]]
    assert parts.name == "given"


def test_owners_by_number_are_in_the_order_of_their_numbers():
    parts = fs.partition.by_vector(planted(nodes=4), [10, 9, 2, 10])
    assert [p.name for p in parts.parties] == ["party-2", "party-9", "party-10"]
    assert [sorted(nodes.tolist()) for nodes in parts.nodes] == [[2], [1], [0, 3]]


def test_numbers_in_names_are_in_order_too():
    graph = planted(nodes=5)
    parts = fs.partition.by_vector(graph, ["bank 10", "bank 9", "9", "10", "bank 9b"])
    assert [p.name for p in parts.parties] == ["9", "10", "bank 9", "bank 9b", "bank 10"]
    assert [nodes.tolist() for nodes in parts.nodes] == [[2], [3], [1], [4], [0]]


def test_owners_from_an_attribute():
    graph = replace(planted(nodes=4), attributes={"bank": np.array(["b", "a", "b", "c"]), "year": np.arange(4)})
    parts = fs.partition.by_attribute(graph, "bank")
    assert [p.name for p in parts.parties] == ["a", "b", "c"]
    assert parts.name == "attribute:bank"
    with pytest.raises(FedstructError, match="unknown attribute 'bnak': did you mean 'bank'"):
        fs.partition.by_attribute(graph, "bnak")
    with pytest.raises(FedstructError, match="planted has no attributes, so none named 'bank'"):
        fs.partition.by_attribute(planted(nodes=4), "bank")


@pytest.mark.parametrize("owners", [[0, 1], np.zeros((4, 1), int), np.zeros(5, int), 1])
def test_owners_of_another_shape(owners):
    with pytest.raises(FedstructError, match=r"owners are of shape .* but planted has 4 nodes"):
        fs.partition.by_vector(planted(nodes=4), owners)


@pytest.mark.parametrize(
    ("owners", "said"),
    [
        ([0.0, 1.0, 1.0, np.nan], "node 3 of planted is nan"),
        ([np.inf, 1.0, 1.0, 0.0], "node 0 of planted is inf"),
        (["a", "b\udcff", "b", "a"], r"node 1 of planted is 'b\\udcff'"),
    ],
)
def test_nodes_that_nobody_owns(owners, said):
    with pytest.raises(FedstructError, match=f"the owner of {said}; each node needs an owner"):
        fs.partition.by_vector(planted(nodes=4), owners)


def test_a_file_does_not_say_by_minus_one_that_nobody_owns_a_node(tmp_path):
    np.save(tmp_path / "owners.npy", np.array([0, 1, -1, 1]))
    with pytest.raises(FedstructError, match=r"the owner of node 2 in .*owners\.npy is -1; each node needs an owner"):
        read_owners(tmp_path / "owners.npy")


def test_too_many_parties_or_none():
    graph = planted(nodes=5)
    with pytest.raises(FedstructError, match="6 parties cannot share the 5 nodes of planted; ask for fewer"):
        fs.partition.random(graph, parties=6)
    for parties in (0, -1):
        with pytest.raises(FedstructError, match=f"parties must be at least 1, not {parties}"):
            fs.partition.random(graph, parties=parties)
    assert [p.nodes for p in fs.partition.random(graph, parties=5).parties] == [1] * 5


def test_owners_are_read_from_a_file(tmp_path):
    (tmp_path / "owners.txt").write_text("nord\n sued \n\nnord\n")
    assert read_owners(tmp_path / "owners.txt").tolist() == ["nord", "sued", "nord"]
    (tmp_path / "marked.txt").write_text("nord\nsued\n", encoding="utf-8-sig")
    assert read_owners(tmp_path / "marked.txt").tolist() == ["nord", "sued"]
    np.save(tmp_path / "owners.npy", np.array([3, 1, 2]))
    assert read_owners(tmp_path / "owners.npy").tolist() == [3, 1, 2]


@pytest.mark.parametrize("name", ["owners.txt", "owners.npy"])
def test_owners_that_are_written_give_the_same_parts_again(tmp_path, name):
    graph = replace(planted(nodes=60), attributes={"year": np.arange(60) % 3 - 1, "rate": np.arange(60) % 4 / 8})
    made = [
        fs.partition.random(graph, parties=12, seed=3),
        fs.partition.louvain(graph, parties=11, seed=3),
        fs.partition.kmeans(graph, parties=3, seed=3),
        fs.partition.by_attribute(graph, "year", seed=3),
        fs.partition.by_attribute(graph, "rate", seed=3),
        fs.partition.by_vector(graph, ["Bank 10", "bank 9", "Übersee", "b"] * 15, seed=3),
    ]
    for i, parts in enumerate(made):
        path = tmp_path / f"{i}-{name}"
        write_owners(parts, path)
        again = fs.partition.by_vector(graph, read_owners(path), seed=3)
        assert [p.name for p in again.parties] == [p.name for p in parts.parties]
        assert np.array_equal(again.owner, parts.owner)
        for mine, same_file in zip(parts.parties, again.parties, strict=True):
            same(mine, same_file)


@pytest.mark.parametrize("odd", ["a,b", "a\nb", " a", "a ", "", "a\x85b"])
def test_names_that_no_line_can_hold(tmp_path, odd):
    parts = fs.partition.by_vector(planted(nodes=4), np.array([odd, "c", "c", odd]))
    with pytest.raises(FedstructError, match=r"a comma, a line break or a space at its end; write to a \.npy file"):
        write_owners(parts, tmp_path / "owners.txt")
    assert list(tmp_path.iterdir()) == []
    write_owners(parts, tmp_path / "owners.npy")
    assert read_owners(tmp_path / "owners.npy").tolist() == [odd, "c", "c", odd]


def test_a_file_of_owners_is_not_written_over(tmp_path):
    parts = fs.partition.random(planted(nodes=4), parties=2)
    (tmp_path / "owners.txt").write_text("mine")
    with pytest.raises(FedstructError, match=r"owners\.txt exists and is not overwritten; give another --out"):
        write_owners(parts, tmp_path / "owners.txt")
    assert (tmp_path / "owners.txt").read_text() == "mine"
    with pytest.raises(FedstructError, match=r"there is no folder .*none to write owners\.txt into"):
        write_owners(parts, tmp_path / "none" / "owners.txt")
    with pytest.raises(FedstructError, match=r"written to a \.npy or \.txt file, and .*owners\.csv is none"):
        write_owners(parts, tmp_path / "owners.csv")


@pytest.mark.parametrize("name", ["owners.txt", "owners.npy"])
def test_a_file_of_owners_that_is_not_there_or_no_file(tmp_path, name):
    with pytest.raises(FedstructError, match=f"there is no file of owners {tmp_path / name}"):
        read_owners(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(FedstructError, match=f"the file of owners {tmp_path / name} cannot be read"):
        read_owners(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("owners.txt", b"\xff\xfe\xfd"),
        ("owners.npy", b""),
        ("owners.npy", b"\x93NUMPY\x01\x00"),
        ("owners.npy", b"not an array"),
    ],
)
def test_a_file_of_owners_that_is_damaged(tmp_path, name, raw):
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(FedstructError, match=f"the file of owners .*{name} cannot be read") as caught:
        read_owners(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_python_objects_are_no_owners(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was run",))

    np.save(tmp_path / "owners.npy", np.array([Trap(), Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(FedstructError, match="cannot be read"):
        read_owners(tmp_path / "owners.npy")


# What a party refuses to hold.


def a_party(**changed):
    parts = fs.partition.by_vector(Graph.from_edges([[0, 1], [1, 2]], features=np.eye(3), labels=[0, 1, 0]), [0, 0, 1])
    return replace(parts.parties[0], **changed)


@pytest.mark.parametrize(
    ("border", "match"),
    [
        ((2, 0, 0), "names an own node that does not exist"),
        ((-1, 0, 0), "names an own node that does not exist"),
        ((0, 1, 0), "names a peer that does not exist"),
        ((0, -1, 0), "names a peer that does not exist"),
        ((0, 0, -1), "names a peer that does not exist"),
    ],
)
def test_border_edges_that_lead_nowhere(border, match):
    wrong = Border(*(np.array([value]) for value in border), np.ones(1))
    for borders in ("outgoing", "incoming"):
        with pytest.raises(FedstructError, match=f"party-0: an {borders} border edge {match}"):
            a_party(**{borders: wrong})


def test_a_partys_own_split_comes_from_its_own_nodes():
    party = fs.partition.random(planted(nodes=400), parties=2, seed=0).parties[0]
    assert party.known(1).size == 0
    split = party.with_own_split(seed=3, train=0.1, validation=0.2).split
    assert np.bincount(split, minlength=4).tolist() == [
        0,
        round(0.1 * party.nodes),
        round(0.3 * party.nodes) - round(0.1 * party.nodes),
        party.nodes - round(0.3 * party.nodes),
    ]
    assert np.array_equal(party.with_own_split(3, 0.1, 0.2).split, split)
    assert not np.array_equal(party.with_own_split(4, 0.1, 0.2).split, split)
    other = replace(party, name="party-9")
    assert not np.array_equal(other.with_own_split(3, 0.1, 0.2).split, split), "parties draw each for themselves"
    for train, validation in ((0, 0.1), (0.5, 0.5), (0.1, -0.1), (1.5, 0.1)):
        with pytest.raises(FedstructError, match="do not leave a test set"):
            party.with_own_split(0, train, validation)
