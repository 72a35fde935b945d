"""The graph: what it holds, what it refuses, and its way to torch-geometric and back."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import fedstruct as fs
from fedstruct.errors import FedstructError
from fedstruct.graph.graph import TEST, TRAIN, UNKNOWN, UNUSED, VALIDATION, Graph, edge_pieces
from strategies import EXACT_WEIGHT, graphs

# What torch-geometric says of torch while it is imported is no concern of ours.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")

LABELS = [0, 1, 0, 2]


def graph(edges=((0, 1, 2), (1, 2, 3)), **changed):
    given = {"features": np.arange(8.0).reshape(4, 2), "labels": LABELS, **changed}
    return Graph.from_edges(edges, **given)


@st.composite
def edge_lists(draw, weights=EXACT_WEIGHT):
    """A number of nodes, edges between them, repeated ones and loops among them, and a weight for each."""
    nodes = draw(st.integers(1, 8))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node, weights), max_size=20))
    return nodes, np.array([e[:2] for e in edges], np.int64).reshape(-1, 2).T, np.array([e[2] for e in edges])


def made(nodes, edges, weights=None, **more):
    return Graph.from_edges(
        edges, features=np.ones((nodes, 1)), labels=np.zeros(nodes, int), weights=weights, name="made", **more
    )


def pyg_data(**given):
    from torch_geometric.data import Data

    return Data(**given)


# What a graph holds.


@given(edge_lists())
def test_unweighted_edges_count_once(drawn):
    nodes, edges, _ = drawn
    pairs = set(map(tuple, edges.T.tolist()))
    directed = made(nodes, edges, directed=True)
    dense = np.zeros((nodes, nodes))
    for u, v in pairs:
        dense[u, v] = 1
    assert np.array_equal(directed.adjacency.toarray(), dense)
    assert directed.edges == len(pairs)
    assert not directed.weighted

    undirected = made(nodes, edges)
    assert np.array_equal(undirected.adjacency.toarray(), np.maximum(dense, dense.T))
    assert undirected.edges == len({frozenset(pair) for pair in pairs})
    assert not undirected.weighted
    assert undirected.nodes == nodes


@given(edge_lists())
def test_weights_of_repeated_edges_add_up(drawn):
    nodes, edges, weights = drawn
    dense = np.zeros((nodes, nodes))
    np.add.at(dense, tuple(edges), weights)
    assert np.array_equal(made(nodes, edges, weights, directed=True).adjacency.toarray(), dense)
    assert np.array_equal(made(nodes, edges, weights).adjacency.toarray(), np.maximum(dense, dense.T))


@given(graphs())
def test_the_adjacency_is_in_order_and_has_no_empty_entries(some):
    a = some.adjacency
    assert a.has_sorted_indices
    assert a.has_canonical_format
    assert (a.data > 0).all()
    assert some.directed or np.array_equal(a.toarray(), a.T.toarray())
    assert some.edges == (a.nnz if some.directed else np.count_nonzero(np.triu(a.toarray())))
    assert some.weighted == bool((a.data != 1).any())


def test_labels_may_be_unknown():
    for unknown in (-1, -7, np.nan):
        some = graph(labels=[0, unknown, 1.0, 2])
        assert some.labels.tolist() == [0, UNKNOWN, 1, 2]
        assert some.labels.dtype == np.int64
        assert some.classes == 3
    assert graph(labels=[-1] * 4).classes == 0
    assert graph(labels=[True, False, True, True]).labels.tolist() == [1, 0, 1, 1]
    assert graph(labels=[0, 1, 0, 1], classes=7).classes == 7


def test_features_are_float32_dense_or_sparse():
    dense = graph()
    assert dense.features.dtype == np.float32
    sparse = graph(features=csr_array(np.eye(4)))
    assert isinstance(sparse.features, csr_array)
    assert sparse.features.dtype == np.float32
    assert graph(features=np.eye(4, dtype=bool)).features.dtype == np.float32


def test_a_graph_may_have_no_edges_and_no_features():
    for edges in ([[], []], np.zeros((2, 0), np.int64)):
        empty = graph(edges, features=np.zeros((4, 0)))
        assert (empty.edges, empty.nodes, empty.weighted) == (0, 4, False)
        assert np.isnan(empty.homophily)


def test_a_graph_takes_a_copy_of_what_it_was_given():
    features, labels, edges = np.ones((4, 1), np.float32), np.array(LABELS), np.array([[0, 1], [1, 2]])
    some = graph(edges, features=features, labels=labels)
    features[:], labels[:], edges[:] = 9, 9, 3
    assert some.features.tolist() == [[1.0]] * 4
    assert some.labels.tolist() == LABELS
    assert some.adjacency.toarray()[0].tolist() == [0, 1, 0, 0]


# What it refuses.


@pytest.mark.parametrize(("u", "v"), [(0, 4), (4, 0), (-1, 2), (2, -5), (2**40, 1), (1, 2**62)])
def test_edges_to_nodes_that_do_not_exist(u, v):
    with pytest.raises(FedstructError, match=f"made: edge 2 joins nodes {u} and {v}, but the nodes are 0 to 3"):
        made(4, [[0, 1, u, 9], [1, 2, v, 9]])


@pytest.mark.parametrize(
    "edges",
    [
        np.zeros((3, 2), int),
        np.zeros((1, 2), int),
        np.zeros(4, int),
        np.zeros((2, 2, 2), int),
        np.array([[0.0, 1.0], [1.0, 2.0]]),
        [["0", "1"], ["1", "2"]],
        np.array([[0, 1], [1, None]], dtype=object),
        3,
    ],
)
def test_edges_of_the_wrong_shape_or_type(edges):
    with pytest.raises(FedstructError, match="edge_index must be whole numbers in two rows"):
        made(4, edges)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("node", [0, 3, 5])
def test_features_that_are_not_finite_name_their_node(bad, node):
    values = np.zeros((6, 3))
    values[2] = values[node] = [0, 1, 2]
    values[node, 1] = bad
    for features in (values, csr_array(values), csr_array(values).tocsc(), csr_array(values).tocoo()):
        with pytest.raises(FedstructError, match=f"features of node {node} are not finite"):
            Graph.from_edges([[0], [1]], features=features, labels=np.zeros(6))


def test_features_that_do_not_fit_in_float32():
    with pytest.raises(FedstructError, match="features of node 1 are not finite"):
        graph(features=np.array([[0.0], [1e300], [0.0], [0.0]]))


@pytest.mark.parametrize("features", [np.zeros(4), np.zeros((4, 1, 1)), [["a"]] * 4, np.zeros((4, 1), complex), None])
def test_features_that_are_no_table_of_numbers(features):
    with pytest.raises(FedstructError, match="features must be a table of numbers"):
        graph(features=features)


def test_tables_of_another_length():
    for changed, what in (
        ({"features": np.zeros((3, 1))}, "features has 3 rows for 4 nodes"),
        ({"features": csr_array((5, 1))}, "features has 5 rows for 4 nodes"),
        ({"ids": np.arange(5)}, "ids has 5 rows for 4 nodes"),
        ({"split": np.zeros(2, np.int8)}, "split has 2 rows for 4 nodes"),
        ({"attributes": {"bank": np.arange(3)}}, "attribute 'bank' has 3 values for 4 nodes"),
    ):
        with pytest.raises(FedstructError, match=what):
            graph(**changed)
    with pytest.raises(FedstructError, match="labels has 3 rows for 4 nodes"):
        replace(graph(), labels=np.zeros(3, np.int64))


def test_labels_out_of_range():
    with pytest.raises(FedstructError, match="label 2 of node 3 is not below classes = 2"):
        graph(classes=2)
    with pytest.raises(FedstructError, match="label 0 of node 0 is not below classes = 0"):
        graph(labels=[0, -1, -1, -1], classes=0)


@pytest.mark.parametrize("labels", [[0, 1.5, 0, 1], [0, np.inf, 0, 1], ["a", "b", "c", "d"], [0, 1, 0, None], [0j] * 4])
def test_labels_that_are_not_whole_numbers(labels):
    with pytest.raises(FedstructError, match="labels must be whole numbers"):
        graph(labels=labels)


@pytest.mark.parametrize("labels", [np.zeros((4, 1)), np.zeros((4, 3), int), 5])
def test_labels_of_the_wrong_shape(labels):
    with pytest.raises(FedstructError, match="labels must be one number per node"):
        graph(labels=labels)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_weights_that_are_not_positive_and_finite(bad):
    with pytest.raises(FedstructError, match=f"weight of edge 1 is {bad}; weights must be positive and finite"):
        graph(weights=[1.0, bad, 1.0])


@pytest.mark.parametrize("weights", [[1.0], np.ones(4)])
def test_weights_of_another_length(weights):
    with pytest.raises(FedstructError, match="edge weights for 3 edges"):
        graph(weights=weights)


@pytest.mark.parametrize("weights", [np.ones((3, 1)), 1.0])
def test_weights_of_another_shape(weights):
    with pytest.raises(FedstructError, match="edge weights must be one number per edge"):
        graph(weights=weights)


@pytest.mark.parametrize("weights", [["a", "b", "c"], [1.0, 2.0, None], [1j, 1.0, 1.0]])
def test_weights_that_are_no_numbers(weights):
    with pytest.raises(FedstructError, match="weight"):
        graph(weights=np.array(weights))


@pytest.mark.parametrize("split", [[0, 1, 2, 4], [-1, 1, 2, 3], [0, 1, 2, 1.5], [0, 1, 2, np.nan]])
def test_split_values_that_mean_nothing(split):
    with pytest.raises(FedstructError, match="split must hold 0"):
        graph(split=np.array(split))


@pytest.mark.parametrize("split", [np.zeros((4, 1), np.int8), np.ones((4, 10), bool)])
def test_a_split_is_one_number_per_node(split):
    with pytest.raises(FedstructError, match="split"):
        graph(split=split)


# Both ways, and without loops.


@given(graphs(directed=True))
def test_undirected_has_every_edge_both_ways(some):
    before = some.adjacency.toarray()
    both = some.undirected()
    loops = np.diag(np.diag(before))
    expected = before + before.T - loops if some.weighted else np.maximum(before, before.T)
    np.testing.assert_allclose(both.adjacency.toarray(), expected, rtol=1e-15)
    assert not both.directed
    assert np.array_equal(both.adjacency.toarray(), both.adjacency.T.toarray())
    assert both.weighted == some.weighted or not (both.adjacency.data != 1).any()
    assert both.undirected() is both
    assert np.array_equal(some.adjacency.toarray(), before)


def test_opposite_weights_add_up_and_unweighted_stay_one():
    edges = [[0, 1, 0, 2], [1, 0, 2, 2]]
    assert made(3, edges, [2.0, 3.0, 4.0, 5.0], directed=True).undirected().adjacency.toarray().tolist() == [
        [0, 5, 4],
        [5, 0, 0],
        [4, 0, 5],
    ]
    assert made(3, edges, directed=True).undirected().adjacency.toarray().tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 1]]


@given(graphs())
def test_without_self_loops_the_rest_is_as_it_was(some):
    rest = some.without_self_loops()
    expected = some.adjacency.toarray()
    np.fill_diagonal(expected, 0)
    assert np.array_equal(rest.adjacency.toarray(), expected)
    assert rest.adjacency.nnz == np.count_nonzero(expected)
    assert rest.directed == some.directed
    assert rest.without_self_loops() is rest


def test_nodes_keep_what_they_have_when_edges_change():
    some = graph(
        [[0, 1, 1], [1, 0, 1]],
        directed=True,
        ids=np.array(["p", "q", "r", "s"]),
        split=np.array([1, 2, 3, 0], np.int8),
        attributes={"bank": np.array([0, 0, 1, 1])},
        name="kept",
    )
    for changed in (some.undirected(), some.without_self_loops(), fs.prepared(some)):
        for what in ("features", "labels", "classes", "ids", "split", "attributes", "name"):
            assert getattr(changed, what) is getattr(some, what)
    assert fs.prepared(some).adjacency.toarray()[:2, :2].tolist() == [[0, 1], [1, 0]]
    assert some.with_split(np.array([3, 3, 3, 3])).split.tolist() == [3, 3, 3, 3]
    assert some.split.tolist() == [1, 2, 3, 0]


# Homophily.


@given(graphs(), st.data())
def test_homophily_is_the_share_of_edges_between_equal_labels(some, data):
    labels = data.draw(st.lists(st.integers(-1, 2), min_size=some.nodes, max_size=some.nodes))
    labelled = replace(some, labels=np.array(labels), classes=3)
    pairs = zip(*(c.tolist() for c in some.adjacency.tocoo().coords), strict=True)
    edges = set(pairs) if some.directed else {tuple(sorted(pair)) for pair in pairs}
    same = [labels[u] == labels[v] for u, v in edges if UNKNOWN not in (labels[u], labels[v])]
    if same:
        assert labelled.homophily == pytest.approx(np.mean(same), abs=1e-12)
    else:
        assert np.isnan(labelled.homophily)


@given(graphs(), st.integers(1, 8))
def test_pieces_hold_every_edge_once_and_whole_rows(some, at_once):
    pieces = list(edge_pieces(some.adjacency, at_once))
    together = [np.concatenate(ends).tolist() for ends in zip(*pieces, strict=True)]
    assert together == [c.tolist() for c in some.adjacency.tocoo().coords]
    for source, _ in pieces:
        assert len(source) < at_once + np.diff(some.adjacency.indptr).max()


# To torch-geometric and back.


def same_graph(left, right):
    assert np.array_equal(left.adjacency.toarray(), right.adjacency.toarray())
    dense = [g.features if isinstance(g.features, np.ndarray) else g.features.toarray() for g in (left, right)]
    assert np.array_equal(*dense)
    assert np.array_equal(left.labels, right.labels)
    assert left.directed == right.directed
    assert left.classes == right.classes
    assert (left.split is None) == (right.split is None)
    assert left.split is None or np.array_equal(left.split, right.split)


SPLIT = np.array([TRAIN, VALIDATION, TEST, UNUSED], np.int8)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weights", [None, [0.5, 2.0, 1.0]])
@pytest.mark.parametrize("split", [None, SPLIT])
@pytest.mark.parametrize("features", [np.arange(8.0).reshape(4, 2), csr_array(np.eye(4)), np.zeros((4, 0))])
@pytest.mark.parametrize("labels", [LABELS, [0, -1, 1, -1]])
def test_a_graph_goes_to_torch_geometric_and_back(directed, weights, split, features, labels):
    some = graph(directed=directed, weights=weights, split=split, features=features, labels=labels, name="there")
    data = some.to_pyg()
    assert data.num_nodes == 4
    assert data.num_edges == some.adjacency.nnz
    assert data.is_directed() == directed
    assert data.validate()
    back = Graph.from_pyg(data, "back")
    same_graph(back, some)
    assert back.name == "back"


def test_torch_geometric_cannot_write_to_a_graph():
    some = graph(split=SPLIT)
    data = some.to_pyg()
    for tensor in (data.x, data.y, data.edge_index):
        tensor.fill_(0)
    data.train_mask.fill_(True)
    same_graph(some, graph(split=SPLIT))


def test_data_without_features_or_labels():
    data = pyg_data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3)
    some = Graph.from_pyg(data)
    assert some.features.shape == (3, 0)
    assert some.labels.tolist() == [UNKNOWN] * 3
    assert (some.classes, some.edges, some.directed, some.split) == (0, 1, False, None)


def test_data_that_is_directed_or_weighted():
    data = pyg_data(x=torch.ones(3, 1), y=torch.tensor([0, 1, 0]), edge_index=torch.tensor([[0, 1], [1, 2]]))
    assert Graph.from_pyg(data).directed
    data.edge_weight = torch.tensor([0.5, 2.0])
    assert Graph.from_pyg(data).adjacency.toarray().tolist() == [[0, 0.5, 0], [0, 0, 2], [0, 0, 0]]
    data.edge_index = torch.tensor([[0, 1], [1, 0]])
    data.edge_weight = torch.tensor([0.5, 2.0])
    assert Graph.from_pyg(data).directed
    assert Graph.from_pyg(data).adjacency.toarray()[:2, :2].tolist() == [[0, 0.5], [2, 0]]
    data.edge_weight = torch.tensor([2.0, 2.0])
    assert not Graph.from_pyg(data).directed


def test_masks_become_the_split_only_when_there_is_one_of_each():
    data = graph(split=SPLIT).to_pyg()
    assert Graph.from_pyg(data).split.tolist() == SPLIT.tolist()
    several = data.clone()
    for mask in ("train_mask", "val_mask", "test_mask"):
        several[mask] = torch.stack([several[mask]] * 10, dim=1)
    assert Graph.from_pyg(several).split is None
    del data.val_mask
    assert Graph.from_pyg(data).split is None


def test_data_that_is_wrong_is_refused_in_a_sentence():
    data = pyg_data(x=torch.ones(3, 1), y=torch.tensor([0, 1, 0]), edge_index=torch.tensor([[0, 1], [1, 7]]))
    with pytest.raises(FedstructError, match="web: edge 1 joins nodes 1 and 7"):
        Graph.from_pyg(data, "web")
    data = pyg_data(x=torch.full((3, 1), torch.nan), y=torch.tensor([0, 1, 0]), edge_index=torch.tensor([[0], [1]]))
    with pytest.raises(FedstructError, match="web: the features of node 0 are not finite"):
        Graph.from_pyg(data, "web")


@pytest.mark.filterwarnings("error")
def test_labels_in_half_precision():
    labels = np.array([0, 1, np.nan, 1], np.float16)
    graph = Graph.from_edges([[0, 1], [1, 2]], features=np.eye(4), labels=labels)
    assert graph.labels.tolist() == [0, 1, -1, 1]


def test_weights_in_a_column():
    with pytest.raises(FedstructError, match=r"one number per edge, not an array of shape \(2, 1\)"):
        Graph.from_edges([[0, 1], [1, 2]], features=np.eye(4), labels=[0, 1, 0, 1], weights=np.ones((2, 1)))
