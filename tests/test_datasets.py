"""Graphs by name: from the folder, from the cache, downloaded; and what is said when none of these has it."""

import socket
import sys

import numpy as np
import pytest
import torch

import fedstruct as fs
from fedstruct.errors import FedstructError
from fedstruct.graph import datasets, npz
from fedstruct.graph.datasets import DATA_VARIABLE, DATASETS
from fedstruct.graph.generate import planted

# What torch-geometric says of torch while it is imported is no concern of ours.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder with one public name and one own name in it, and an empty cache beside it."""
    (tmp_path / "graphs").mkdir()
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "graphs"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    npz.write(planted(nodes=30, seed=1), tmp_path / "graphs" / "cora.npz")
    npz.write(planted(nodes=40, seed=2), tmp_path / "graphs" / "banks.npz")
    return tmp_path / "graphs"


@pytest.fixture
def nothing_here(tmp_path, monkeypatch):
    """No data folder, and an empty cache."""
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "fedstruct"


def one_sentence(caught):
    said = str(caught.value)
    assert "\n" not in said
    return said


# From the folder.


def test_a_name_is_read_from_the_folder(folder):
    graph = datasets.load("cora")
    assert (graph.nodes, graph.name) == (30, "cora")
    assert datasets.where("cora") == folder / "cora.npz"
    assert datasets.load("banks").nodes == 40


@pytest.mark.parametrize("as_text", [str, lambda path: path])
def test_a_path_is_read_wherever_it_leads(folder, tmp_path, as_text):
    npz.write(planted(nodes=50), tmp_path / "elsewhere" / "mine.npz")
    graph = datasets.load(as_text(tmp_path / "elsewhere" / "mine.npz"))
    assert (graph.nodes, graph.name) == (50, "mine")


def test_a_relative_path_is_read_from_here(folder, tmp_path, monkeypatch):
    npz.write(planted(nodes=50), tmp_path / "here.npz")
    monkeypatch.chdir(tmp_path)
    assert datasets.load("here.npz").nodes == 50
    assert datasets.load("./here.npz").nodes == 50
    assert datasets.load("graphs/cora.npz").nodes == 30


def test_a_path_in_the_home_folder(folder, tmp_path, monkeypatch):
    npz.write(planted(nodes=50), tmp_path / "home.npz")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert datasets.load("~/home.npz").nodes == 50
    monkeypatch.setenv(DATA_VARIABLE, "~/graphs")
    assert datasets.load("cora").nodes == 30


def test_the_folder_goes_before_the_cache(folder, tmp_path):
    npz.write(planted(nodes=60), tmp_path / "cache" / "fedstruct" / "cora.npz")
    npz.write(planted(nodes=70), tmp_path / "cache" / "fedstruct" / "pubmed.npz")
    assert datasets.load("cora").nodes == 30
    assert datasets.load("pubmed").nodes == 70


@pytest.mark.parametrize(("name", "near"), [("Cora", "cora"), ("pubmd", "pubmed"), ("amazon_foto", "amazon_photo")])
def test_an_unknown_name_suggests_the_nearest(folder, name, near):
    with pytest.raises(FedstructError, match=f"unknown dataset '{name}': did you mean '{near}'"):
        datasets.load(name)


def test_a_name_like_no_other_lists_them_all(folder):
    with pytest.raises(FedstructError, match="unknown dataset 'zzz': choose one of") as caught:
        datasets.load("zzz")
    assert all(name in one_sentence(caught) for name in DATASETS)


@pytest.mark.parametrize("name", ["cora", "coar", "zzz"])
def test_a_data_folder_that_is_none(tmp_path, monkeypatch, name):
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "none", tmp_path / "file"):
        monkeypatch.setenv(DATA_VARIABLE, str(wrong))
        with pytest.raises(FedstructError, match=f"{DATA_VARIABLE} names {wrong}, which is not a folder"):
            datasets.load(name)


def test_an_empty_variable_is_no_folder(nothing_here, monkeypatch):
    monkeypatch.setenv(DATA_VARIABLE, "")
    assert datasets.where("cora") is None


def test_a_damaged_file_in_the_folder_is_named(folder):
    (folder / "cora.npz").write_bytes(b"PK")
    with pytest.raises(FedstructError, match=r"cora\.npz cannot be read as an \.npz graph"):
        datasets.load("cora")


# Downloaded.


def test_a_loader_says_nothing_beside_the_graph(nothing_here, monkeypatch, capsys):
    from torch_geometric import datasets as loaders

    def planetoid(root, name):
        sys.stderr.write("Downloading …")
        return [name]

    monkeypatch.setattr(loaders, "Planetoid", planetoid)
    assert datasets._through_pyg(DATASETS["cora"], nothing_here) == "Cora"
    assert capsys.readouterr() == ("", "")


def closed_network(dataset, root):
    raise OSError("[Errno -3] Temporary failure in name resolution\nand more")


def test_without_data_and_network_one_sentence_names_both_ways(nothing_here):
    for name in (name for name, dataset in DATASETS.items() if dataset.loader):
        with pytest.raises(FedstructError) as caught:
            datasets._download(DATASETS[name], closed_network)
        said = one_sentence(caught)
        assert f"put {name}.npz into a folder and set {DATA_VARIABLE} to it" in said
        assert "go online" in said
        assert "name resolution" in said
    assert not list(nothing_here.glob("*.npz"))


def test_the_network_is_not_waited_for_without_end_and_others_are_left_as_they_were(nothing_here):
    patience = []

    def ask(dataset, root):
        patience.append(socket.getdefaulttimeout())
        raise OSError

    before = socket.getdefaulttimeout()
    for given in (None, 1234.0):
        socket.setdefaulttimeout(given)
        try:
            with pytest.raises(FedstructError):
                datasets._download(DATASETS["cora"], ask)
            assert patience.pop() is not None
            assert socket.getdefaulttimeout() == given
        finally:
            socket.setdefaulttimeout(before)


def downloaded(**more):
    from torch_geometric.data import Data

    return Data(
        x=torch.eye(4),
        y=torch.tensor([0, 1, 2, 1]),
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        **more,
    )


def test_what_was_downloaded_is_read_from_the_cache_from_then_on(nothing_here, monkeypatch):
    asked = []

    def fetch(dataset, root):
        asked.append((dataset.name, root))
        return downloaded()

    graph = datasets._download(DATASETS["citeseer"], fetch)
    assert asked == [("citeseer", nothing_here / "downloads")]
    assert (graph.name, graph.nodes, graph.edges, graph.classes) == ("citeseer", 4, 2, 3)

    monkeypatch.setattr(datasets, "_through_pyg", closed_network)
    assert datasets.where("citeseer") == nothing_here / "citeseer.npz"
    again = datasets.load("citeseer")
    assert np.array_equal(again.adjacency.toarray(), graph.adjacency.toarray())
    assert np.array_equal(again.features, graph.features)
    assert again.labels.tolist() == [0, 1, 2, 1]
    with pytest.raises(FedstructError, match="cora is not here and its download failed"):
        datasets.load("cora")


def test_a_download_has_no_split_as_the_files_have_none(nothing_here):
    """The same name is the same graph, run under the same protocol, wherever it came from."""
    masks = {f"{which}_mask": torch.arange(4) == i for i, which in enumerate(("train", "val", "test"))}
    assert datasets._download(DATASETS["cora"], lambda dataset, root: downloaded(**masks)).split is None
    assert datasets.load("cora").split is None


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(FedstructError, match="cora") as caught:
        datasets._download(DATASETS["cora"], lambda dataset, root: downloaded())
    assert DATA_VARIABLE in one_sentence(caught)


def test_what_nobody_offers_for_download_can_only_be_put_there(nothing_here):
    with pytest.raises(FedstructError, match="amlsim_20k is not here and cannot be downloaded") as caught:
        datasets.load("amlsim_20k")
    assert f"put amlsim_20k.npz into a folder and set {DATA_VARIABLE} to it" in one_sentence(caught)


@pytest.mark.parametrize("name", [name for name, dataset in DATASETS.items() if dataset.loader])
def test_every_other_name_has_a_loader_of_torch_geometric(name):
    from torch_geometric import datasets as loaders

    assert callable(getattr(loaders, DATASETS[name].loader))


def test_the_names_are_those_of_the_paper_and_four_more():
    assert list(DATASETS) == [
        "cora",
        "citeseer",
        "pubmed",
        "chameleon",
        "amazon_photo",
        "amazon_ratings",
        "amazon_computers",
        "coauthor_physics",
        "minesweeper",
        "amlsim_20k",
    ]


# The public graphs themselves, where their files are here.

FIGURES = {
    "cora": (2708, 5278, 1433, 7, 0.8100),
    "citeseer": (3327, 4552, 3703, 6, 0.7355),
    "pubmed": (19717, 44324, 500, 3, 0.8024),
    "chameleon": (2277, 36101, 2325, 5, 0.2350),
    "amazon_photo": (7650, 119081, 745, 8, 0.8272),
    "amazon_computers": (13752, 245861, 767, 10, 0.7772),
    "coauthor_physics": (34493, 247962, 8415, 5, 0.9314),
    "minesweeper": (10000, 39402, 7, 2, 0.6828),
}
"""Nodes, edges, features, classes and the share of stored edges whose ends have the same label."""


@pytest.mark.parametrize("name", FIGURES)
def test_public_graphs_have_the_figures_that_are_known_of_them(dataset, name):
    graph = dataset(name)
    nodes, edges, features, classes, homophily = FIGURES[name]
    assert (graph.nodes, graph.edges) == (nodes, edges)
    assert graph.features.shape == (nodes, features)
    assert graph.classes == classes
    assert round(graph.homophily, 4) == homophily
    assert graph.directed == (name == "chameleon")
    assert graph.split is None
    assert not graph.weighted


def test_chameleon_loses_its_loops_and_directions_when_prepared(dataset):
    graph = fs.prepared(dataset("chameleon"))
    assert (graph.edges, graph.directed) == (31371, False)
    assert round(graph.homophily, 4) == 0.2299


def test_simulated_payments_come_with_their_amounts_and_times(dataset):
    """Of the 120,558 transactions 3,217 repeat an ordered pair of accounts: one edge, and their amounts add up."""
    graph = dataset("amlsim_20k")
    assert (graph.nodes, graph.edges, graph.classes, graph.directed) == (20000, 120558 - 3217, 2, True)
    assert graph.features.shape == (20000, 1)
    assert int((graph.labels == 1).sum()) == 1804
    with np.load(datasets.where("amlsim_20k")) as file:
        source, target = file["edge_index"]
        amount, time = file["edge_amount"], file["edge_time"]
    assert graph.adjacency.sum() == pytest.approx(amount.astype(float).sum())
    first = graph.attributes[graph.time_attribute]
    for node in (10, 216, 19_999):
        assert first[node] == time[(source == node) | (target == node)].min()
