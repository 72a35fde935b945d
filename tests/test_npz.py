"""Graph files: what is written is read again, and a file that is not right is refused in one sentence."""

import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array, issparse

from fedstruct.errors import FedstructError
from fedstruct.graph import datasets, npz
from fedstruct.graph.generate import planted
from fedstruct.graph.graph import Graph

ENTRY = st.floats(-1e6, 1e6, width=32)


@st.composite
def files(draw):
    """Graphs with everything that a file may hold."""
    nodes = draw(st.integers(1, 8))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node, st.floats(0.01, 100)), max_size=16))
    table = draw(arrays(np.float32, (nodes, draw(st.integers(0, 3))), elements=ENTRY))
    per_node = st.none() | arrays(np.int64, nodes) | arrays("<U5", nodes, elements=st.text("abcäß", max_size=5))
    split = st.none() | arrays(np.int8, nodes, elements=st.integers(0, 3))
    labels = draw(arrays(np.int64, nodes, elements=st.integers(-1, 4)))
    attributes = {name: draw(per_node) for name in ("bank", "country")}
    return Graph.from_edges(
        np.array([e[:2] for e in edges], np.int64).reshape(-1, 2).T,
        features=csr_array(table) if draw(st.booleans()) else table,
        labels=labels,
        weights=[e[2] for e in edges] if draw(st.booleans()) else None,
        directed=draw(st.booleans()),
        classes=int(labels.max()) + 1 + draw(st.integers(0, 2)),
        ids=draw(per_node),
        split=draw(split),
        attributes={name: values for name, values in attributes.items() if values is not None},
    )


def same(left, right):
    if left is None or right is None:
        assert left is right
        return
    if issparse(left):
        assert issparse(right)
        left, right = left.toarray(), right.toarray()
    assert left.dtype == right.dtype
    assert np.array_equal(left, right)


def same_graph(left, right):
    for what in ("adjacency", "features", "labels", "ids", "split"):
        same(getattr(left, what), getattr(right, what))
    assert left.attributes.keys() == right.attributes.keys()
    for name, values in left.attributes.items():
        same(values, right.attributes[name])
    for what in ("classes", "directed", "nodes", "edges", "weighted"):
        assert getattr(left, what) == getattr(right, what)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(files())
def test_a_graph_survives_its_file(tmp_path, graph):
    npz.write(graph, tmp_path / "some.npz")
    read = npz.read(tmp_path / "some.npz")
    same_graph(graph, read)
    assert read.name == "some"


@pytest.mark.parametrize("name", ["file", "allow_pickle", "args", "kwds", "self", "", "a b/c", "é\x1b", "../up"])
def test_an_attribute_of_any_name_survives_its_file(tmp_path, name):
    graph = replace(planted(nodes=20), attributes={name: np.arange(20)}, owner_attribute=name)
    npz.write(graph, tmp_path / "some.npz")
    read = npz.read(tmp_path / "some.npz")
    same_graph(graph, read)
    assert read.owner_attribute == name


@pytest.mark.parametrize("name", ["a\0b", "ids.npy"])
def test_an_attribute_that_a_file_could_not_keep_is_refused(tmp_path, name):
    with pytest.raises(FedstructError, match="an attribute cannot be called"):
        npz.write(replace(planted(nodes=20), attributes={name: np.arange(20)}), tmp_path / "some.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_of_many_classes_survives_its_file(tmp_path):
    labels = np.array([40_000, 0, 70_000, -1])
    npz.write(
        Graph.from_edges([[0], [1]], features=np.zeros((4, 1)), labels=labels, classes=70_001), tmp_path / "g.npz"
    )
    assert npz.read(tmp_path / "g.npz").labels.tolist() == labels.tolist()


def test_undirected_edges_are_stored_once_and_features_as_sparse_as_they_are(tmp_path):
    graph = planted(nodes=60)
    npz.write(graph, tmp_path / "new" / "folder" / "dense.npz")
    with np.load(tmp_path / "new" / "folder" / "dense.npz", allow_pickle=False) as file:
        assert set(file.files) >= {"edge_index", "x", "y"}
        assert file["edge_index"].shape == (2, graph.edges)
        assert (file["edge_index"][0] <= file["edge_index"][1]).all()
    sparse = Graph.from_edges([[0], [1]], features=csr_array(np.eye(2)), labels=[0, 1], directed=True)
    npz.write(sparse, tmp_path / "sparse.npz")
    with np.load(tmp_path / "sparse.npz", allow_pickle=False) as file:
        assert {"x_data", "x_indices", "x_indptr", "x_shape", "directed"} <= set(file.files)
        assert "x" not in file.files
        assert int(file["directed"]) == 1


# The forms that files have.


def arrays_of_a_file(**changed):
    given = {
        "edge_index": np.array([[0, 1, 2], [1, 2, 3]], np.int32),
        "x": np.arange(8, dtype=np.float32).reshape(4, 2),
        "y": np.array([0, 1, 0, 2], np.int16),
        **changed,
    }
    return {key: value for key, value in given.items() if value is not None}


def saved(path, **changed):
    np.savez(path, **arrays_of_a_file(**changed))
    return path


def sparse_parts(**changed):
    parts = {
        "x": None,
        "x_data": np.ones(4, np.float32),
        "x_indices": np.array([0, 1, 0, 1], np.int32),
        "x_indptr": np.arange(5, dtype=np.int32),
        "x_shape": np.array([4, 2]),
    }
    return {**parts, **changed}


def test_the_least_that_a_file_needs(tmp_path):
    graph = npz.read(saved(tmp_path / "small.npz"))
    assert (graph.nodes, graph.edges, graph.classes, graph.directed, graph.name) == (4, 3, 3, False, "small")
    assert npz.read(tmp_path / "small.npz", "mine").name == "mine"
    assert npz.read(saved(tmp_path / "d.npz", directed=np.int64(1))).directed
    assert not npz.read(saved(tmp_path / "d.npz", directed=np.array(0))).directed


def test_sparse_features_are_read_sparse(tmp_path):
    graph = npz.read(saved(tmp_path / "sparse.npz", **sparse_parts()))
    assert issparse(graph.features)
    assert graph.features.toarray().tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]


def test_further_arrays_with_a_value_per_node_are_attributes(tmp_path):
    more = {"bank": np.array(["a", "b", "a", "c"]), "edge_kind": np.arange(3), "grid": np.zeros((4, 4)), "one": 1}
    graph = npz.read(saved(tmp_path / "bank.npz", **more))
    assert list(graph.attributes) == ["bank"]
    assert graph.attributes["bank"].tolist() == ["a", "b", "a", "c"]


def heterophilous(edges):
    """The form of the heterophilous-graphs collection: other names, an edge per row, ten masks of each kind."""
    n = 6
    return {
        "node_features": np.arange(3 * n, dtype=np.float32).reshape(n, 3),
        "node_labels": np.array([0, 1, 2, 3, 4, 0]),
        "edges": np.array(edges),
        "train_masks": np.zeros((10, n), bool),
        "val_masks": np.zeros((10, n), bool),
        "test_masks": np.ones((10, n), bool),
    }


@pytest.mark.parametrize("edges", [[[0, 1], [2, 1], [4, 5], [0, 5]], [[0, 1], [4, 5]], [[3, 0]]])
def test_the_form_of_the_heterophilous_graphs_reads(tmp_path, edges):
    np.savez(tmp_path / "web.npz", **heterophilous(edges))
    graph = npz.read(tmp_path / "web.npz")
    assert (graph.nodes, graph.edges, graph.classes, graph.directed, graph.split) == (6, len(edges), 5, False, None)
    assert graph.features.tolist() == heterophilous(edges)["node_features"].tolist()
    dense = graph.adjacency.toarray()
    assert all(dense[u, v] == dense[v, u] == 1 for u, v in edges)
    assert graph.attributes == {}


def test_amazon_ratings_loads_by_name_from_a_file_of_that_form(tmp_path, monkeypatch):
    np.savez(tmp_path / "amazon_ratings.npz", **heterophilous([[0, 1], [2, 1], [4, 5], [0, 5]]))
    monkeypatch.setenv(datasets.DATA_VARIABLE, str(tmp_path))
    graph = datasets.load("amazon_ratings")
    assert (graph.name, graph.nodes, graph.edges, graph.classes) == ("amazon_ratings", 6, 4, 5)
    assert graph.features.shape == (6, 3)
    assert graph.split is None


# Files that are not right.


def refuses(path, match):
    with pytest.raises(FedstructError, match=match) as caught:
        npz.read(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value) or path.stem in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    refuses(tmp_path / "none.npz", "there is no file .*none.npz; give the path")
    (tmp_path / "folder.npz").mkdir()
    refuses(tmp_path / "folder.npz", "there is no file")
    refuses(tmp_path / "none.npz" / "deeper.npz", "there is no file")


def test_a_file_cut_short_anywhere(tmp_path):
    npz.write(planted(nodes=40, features=4), tmp_path / "whole.npz")
    whole = (tmp_path / "whole.npz").read_bytes()
    for end in {0, 1, 4, 30, 100, len(whole) // 4, len(whole) // 2, len(whole) - 300, len(whole) - 22, len(whole) - 1}:
        (tmp_path / "cut.npz").write_bytes(whole[:end])
        refuses(tmp_path / "cut.npz", "cut.npz cannot be read as an .npz graph")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
def test_a_damaged_file_is_refused_in_a_sentence_or_its_damage_is_harmless(tmp_path, at, change):
    if not (tmp_path / "whole.npz").exists():
        npz.write(planted(nodes=20, features=2), tmp_path / "whole.npz")
    raw = bytearray((tmp_path / "whole.npz").read_bytes())
    raw[int(at * len(raw))] ^= change
    (tmp_path / "damaged.npz").write_bytes(raw)
    said = ""
    try:
        assert npz.read(tmp_path / "damaged.npz").nodes == 20
    except FedstructError as error:
        said = str(error)
    assert "\n" not in said


@pytest.mark.parametrize(
    "raw", [b"\0" * 500, b"nodes,edges\n1,2\n", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), b"\x93NUMPY"]
)
def test_a_file_that_is_no_archive_of_arrays(tmp_path, raw):
    (tmp_path / "other.npz").write_bytes(raw)
    refuses(tmp_path / "other.npz", "other.npz")


def test_a_single_array_is_no_graph(tmp_path):
    with (tmp_path / "single.npz").open("wb") as file:
        np.save(file, np.zeros((2, 3)))
    refuses(tmp_path / "single.npz", "single array, not an .npz archive")


def test_an_archive_of_other_things(tmp_path):
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("notes.txt", "hello")
    refuses(tmp_path / "text.npz", "has no array 'edge_index, y'")
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        for name in ("edge_index", "x", "y"):
            archive.writestr(f"{name}.npy", "not an array")
    refuses(tmp_path / "text.npz", "text")


def test_a_graph_with_a_note_beside_its_arrays_reads(tmp_path):
    saved(tmp_path / "noted.npz")
    with zipfile.ZipFile(tmp_path / "noted.npz", "a") as archive:
        archive.writestr("README.txt", "four")
    assert npz.read(tmp_path / "noted.npz").nodes == 4


def test_python_objects_are_refused_unread(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was run",))

    for name in ("x", "y", "extra"):
        held = np.empty(4, object)
        held[:] = [Trap() for _ in range(4)]
        np.savez(tmp_path / "trap.npz", **arrays_of_a_file(**{name: held}))
        refuses(tmp_path / "trap.npz", "it holds Python objects")


@pytest.mark.parametrize(
    ("missing", "named"),
    [({"edge_index"}, "edge_index"), ({"y"}, "y"), ({"x"}, "x"), ({"edge_index", "y", "x"}, "edge_index, y")],
)
def test_missing_arrays_are_named(tmp_path, missing, named):
    refuses(saved(tmp_path / "less.npz", **dict.fromkeys(missing), more=np.ones(1)), f"has no array '{named}'")


@pytest.mark.parametrize("part", ["x_indices", "x_indptr", "x_shape"])
def test_missing_parts_of_sparse_features_are_named(tmp_path, part):
    refuses(saved(tmp_path / "less.npz", **sparse_parts(**{part: None})), f"has x_data but no '{part}'")


@pytest.mark.parametrize(
    "changed",
    [
        {"x_indices": np.array([0, 1, 2, 1])},
        {"x_indices": np.array([0, -1, 0, 1])},
        {"x_indices": np.array([0, 1, 0])},
        {"x_indices": np.array([0.5, 1, 0, 1])},
        {"x_indptr": np.array([0, 1, 2, 3, 5])},
        {"x_indptr": np.array([0, 3, 2, 3, 4])},
        {"x_indptr": np.array([1, 1, 2, 3, 4])},
        {"x_indptr": np.array([0, 4])},
        {"x_data": np.ones(3)},
        {"x_data": np.ones((4, 1))},
        {"x_data": np.array(["a", "b", "c", "d"])},
        {"x_shape": np.array([4])},
        {"x_shape": np.array(4)},
        {"x_shape": np.array([4, 1])},
        {"x_shape": np.array([-4, 2])},
        {"x_shape": np.array([4, 2, 1])},
        {"x_shape": np.array(["four", "two"])},
    ],
    ids=lambda changed: " ".join(f"{k}={np.array2string(v)}" for k, v in changed.items()),
)
def test_sparse_features_that_do_not_fit_together(tmp_path, changed):
    refuses(saved(tmp_path / "sparse.npz", **sparse_parts(**changed)), "sparse features do not fit together")


def test_sparse_features_for_another_number_of_nodes(tmp_path):
    parts = sparse_parts(x_indptr=np.array([0, 1, 2, 4]), x_shape=np.array([3, 2]))
    refuses(saved(tmp_path / "sparse.npz", **parts), "features has 3 rows for 4 nodes")


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"edge_index": np.array([[0, 1], [1, 4]])}, "edge 1 joins nodes 1 and 4, but the nodes are 0 to 3"),
        ({"edge_index": np.array([[0, -1], [1, 2]])}, "edge 1 joins nodes -1 and 2"),
        ({"edge_index": np.array([0, 1])}, "edge_index must be whole numbers in two rows"),
        ({"edge_index": np.array([["a"], ["b"]])}, "edge_index must be whole numbers in two rows"),
        ({"x": np.array([[0.0], [1], [np.nan], [0]])}, "features of node 2 are not finite"),
        ({"x": np.zeros(4)}, "features must be a table of numbers"),
        ({"x": np.zeros((5, 2))}, "features has 5 rows for 4 nodes"),
        ({"y": np.array([0, 0.5, 1, 0])}, "labels must be whole numbers"),
        ({"y": np.array(["a", "b", "c", "d"])}, "labels must be whole numbers"),
        ({"y": np.zeros((4, 2), int)}, "labels must be one number per node"),
        ({"y": np.array(3)}, "labels must be one number per node"),
        ({"edge_weight": np.array([1.0, 0, 2])}, "weight of edge 1 is 0.0"),
        ({"edge_weight": np.ones(2)}, "2 edge weights for 3 edges"),
        ({"edge_weight": np.array(["a", "b", "c"])}, "weight"),
        ({"split": np.array([1, 2, 3, 4])}, "split must hold"),
        ({"split": np.ones((4, 3), int)}, "split"),
        ({"split": np.array([1, 2])}, "split has 2 rows for 4 nodes"),
        ({"split": np.array(1)}, "split"),
        ({"ids": np.arange(3)}, "ids has 3 rows for 4 nodes"),
        ({"ids": np.array(3)}, "ids"),
        ({"directed": np.array([1, 0, 1])}, "directed"),
    ],
)
def test_arrays_that_are_wrong_are_named(tmp_path, changed, match):
    refuses(saved(tmp_path / "wrong.npz", **changed), match)


def test_labels_out_of_range_are_refused(tmp_path):
    """A single absurd label must not make a model of a billion classes."""
    refuses(saved(tmp_path / "wrong.npz", y=np.array([0, 1, 10**9, 2])), "label 1000000000")
