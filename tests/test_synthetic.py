"""Synthetic graphs: what is drawn, that it is drawn once, and that a folder is whole or not taken."""

import json
import resource
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import fedstruct as fs
from command import assert_one_sentence, typed
from fedstruct.atomic import made_once
from fedstruct.errors import FedstructError
from fedstruct.graph import datasets, mapped, synthetic
from fedstruct.graph.graph import Graph
from fedstruct.graph.mapped import KINDS
from fedstruct.graph.synthetic import Blocks

NAME = "synthetic:n=2e4,features=8"
SMALL = "synthetic:n=300,features=4,classes=3,degree=6"


@pytest.fixture(autouse=True)
def cached(tmp_path, monkeypatch):
    """An empty cache; gives the folder that synthetic graphs are kept in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "fedstruct" / "synthetic"


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def same(left, right):
    return (
        np.array_equal(left.features, right.features)
        and np.array_equal(left.labels, right.labels)
        and (left.adjacency != right.adjacency).nnz == 0
    )


# What is drawn.


def test_the_graph_is_the_one_asked_for():
    graph = datasets.load(NAME)
    degrees = np.diff(graph.adjacency.indptr)
    assert (graph.nodes, graph.classes, graph.features.shape) == (20_000, 10, (20_000, 8))
    assert graph.features.dtype == np.float32
    assert isinstance(graph.features, np.memmap)
    assert 9.7 < degrees.mean() < 10.1  # edges drawn again count once
    assert abs(graph.homophily - 0.7) < 0.015
    assert (np.bincount(graph.labels) == 2_000).all()
    assert not graph.directed
    assert not graph.weighted
    assert graph.without_self_loops().undirected() is graph


def test_edges_stand_there_both_ways_and_once():
    a = datasets.load(NAME).adjacency
    again = Graph.from_edges(np.stack(a.tocoo().coords), features=np.ones((20_000, 1)), labels=np.zeros(20_000, int))
    assert a.indptr.tolist() == again.adjacency.indptr.tolist()
    assert a.indices.tolist() == again.adjacency.indices.tolist()
    assert not a.diagonal().any()


@pytest.mark.parametrize("homophily", [0, 1])
def test_edges_may_all_be_inside_or_all_across(homophily):
    graph = datasets.load(f"synthetic:n=2e3,classes=7,homophily={homophily}")
    assert graph.homophily == homophily


def test_degrees_follow_a_power_law():
    blocks = Blocks(n=20_000, degree=10, classes=10, homophily=0.7, features=8, signal=1.8, seed=0)
    expected = blocks.expected_degrees()
    assert expected.mean() == pytest.approx(10)
    assert expected.max() < 1.1 * np.sqrt(20_000 * 10)
    # Hill's estimate from the tail, far below the end.
    tail = expected[(expected > 10) & (expected < 400)]
    assert abs(1 + 1 / np.log(tail / 10).mean() - 2.5) < 0.15
    degrees = np.diff(datasets.load(NAME).adjacency.indptr)
    for low, high in [(3, 5), (5, 10), (10, 30), (30, 100)]:
        some = (expected >= low) & (expected < high)
        assert degrees[some].mean() == pytest.approx(expected[some].mean(), rel=0.05)


def test_features_say_something_but_not_all():
    graph = datasets.load("synthetic:n=2e4")
    known, other = graph.features[:2_000], graph.features[2_000:]
    centres = np.stack([known[graph.labels[:2_000] == c].mean(axis=0) for c in range(10)])
    nearest = ((other[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert 0.45 < (nearest == graph.labels[2_000:]).mean() < 0.75


def test_a_seed_and_its_parameters_make_one_graph(cached):
    first = datasets.load(SMALL)
    (folder,) = cached.iterdir()
    whole = files(folder)
    folder.rename(cached / "elsewhere")
    assert same(datasets.load(SMALL), first)
    assert files(folder) == whole
    for other in ("seed=1", "homophily=0.2", "degree=7"):
        assert not same(datasets.load(SMALL.replace(",degree=6", "") + f",{other}"), first)


def test_edges_do_not_depend_on_how_many_are_held_at_once(cached, monkeypatch):
    datasets.load(SMALL)
    (folder,) = cached.iterdir()
    whole = files(folder)
    folder.rename(cached / "elsewhere")
    monkeypatch.setattr(synthetic, "ENDS_AT_ONCE", 100)
    datasets.load(SMALL)
    assert files(folder) == whole


@pytest.mark.parametrize("method", ["FedStruct", "PropagatedFedStruct", "FedSGD"])
def test_narrow_weights_train_as_wide_ones_do(method):
    graph = fs.split(datasets.load(SMALL), seed=0)
    wide = replace(graph, adjacency=graph.adjacency.astype(np.float64))
    kind = getattr(fs.methods, method)
    made = kind("gnn", rounds=2) if method == "FedSGD" else kind(rounds=2)
    results = [fs.run(made, fs.partition.random(g, parties=3)) for g in (graph, wide)]
    for what in ("confusion", "scores"):
        assert np.array_equal(*(getattr(r.trained, what) for r in results))
    assert results[0].ledger.bytes == results[1].ledger.bytes


# What cannot be had.


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("n=3", "parameter of synthetic 'n' is 3, but it should be greater than or equal to 4"),
        ("n=10.5", "parameter of synthetic 'n' is 10.5, but it should be a whole number"),
        ("n=10", "synthetic: n = 10 nodes are too few for 10 classes"),
        ("n=40,degree=11", "synthetic: degree = 11 is too large for n = 40; 10 is most"),
        ("n=1e8,degree=30", "synthetic: degree = 30 is too large for n = 100,000,000; 20 is most"),
        ("degree=0", "parameter of synthetic 'degree' is 0"),
        ("nodes=10", "unknown parameter of synthetic 'nodes'"),
    ],
)
def test_parameters_that_do_not_fit_are_one_sentence(cached, parameters, expected):
    assert_one_sentence(typed("run", f"synthetic:{parameters}"), expected)
    assert not cached.exists()


# A folder is whole, or not there.


def test_a_graph_is_made_once(cached):
    datasets.load(SMALL)
    (folder,) = cached.iterdir()
    made = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert datasets.load(SMALL).name == SMALL
    assert {path: path.stat().st_mtime_ns for path in cached.glob("*/*")} == made


def test_a_full_disk_is_one_sentence_and_leaves_nothing(cached):
    limit, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, most))
    try:
        with pytest.raises(FedstructError, match=r"GB cannot be written to .*: File too large; make room"):
            datasets.load(SMALL)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    assert list(cached.iterdir()) == []
    assert datasets.load(SMALL).nodes == 300


def test_a_cache_that_cannot_be_made_is_one_sentence(cached):
    cached.parents[1].parent.mkdir(exist_ok=True)
    cached.parents[1].write_text("a file")
    assert_one_sentence(typed("run", SMALL), "set XDG_CACHE_HOME to another folder")


def test_what_a_killed_process_left_is_not_taken(tmp_path):
    folder = tmp_path / "made"
    killed = """
import os, signal, sys
from pathlib import Path
from fedstruct.atomic import made_once
def make(part):
    (part / "half").write_text("a half")
    os.kill(os.getpid(), signal.SIGKILL)
made_once(Path(sys.argv[1]), make)
"""
    done = subprocess.run([sys.executable, "-c", killed, folder], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert not folder.exists()
    assert [path.name for path in tmp_path.rglob("half")] == ["half"]
    made_once(folder, lambda part: (part / "whole").write_text("all"))
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["made", "made/whole"]


def test_who_comes_meanwhile_waits(tmp_path):
    makers, inside, go = [], threading.Event(), threading.Event()

    def make(part):
        makers.append(part)
        inside.set()
        assert go.wait(60)
        (part / "whole").write_text("all")

    threads = [threading.Thread(target=made_once, args=(tmp_path / "made", make)) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert inside.wait(60)
    assert not (tmp_path / "made").exists()
    go.set()
    for thread in threads:
        thread.join()
    assert len(makers) == 1
    assert (tmp_path / "made" / "whole").read_text() == "all"


def shortened(folder):
    path = folder / "features"
    path.write_bytes(path.read_bytes()[:-4])


def lost(folder):
    (folder / "labels").unlink()


def put(folder, name, at, value):
    """Another value in one place of a file."""
    values = np.fromfile(folder / name, KINDS[name])
    values[at] = value
    values.tofile(folder / name)


def beyond(folder):
    put(folder, "columns", 5, 300)


def backwards(folder):
    put(folder, "row_starts", 7, (folder / "columns").stat().st_size // 4)


def infinite(folder):
    put(folder, "features", 9, np.inf)


def many_classes(folder):
    put(folder, "labels", 0, 3)


def no_class(folder):
    put(folder, "labels", 0, -7)


def no_json(folder):
    (folder / "about.json").write_text("{")


def changed(folder, **more):
    about = json.loads((folder / "about.json").read_text())
    (folder / "about.json").write_text(json.dumps({k: v for k, v in (about | more).items() if v is not None}))


def no_count(folder):
    changed(folder, entries=None)


def no_checksum(folder):
    changed(folder, columns_crc32=None)


def a_list(folder):
    (folder / "about.json").write_text("[]")


def nested(folder):
    (folder / "about.json").write_text("[" * 100_000)


def infinitely_many(folder):
    about = (folder / "about.json").read_text()
    (folder / "about.json").write_text(about.replace('"nodes": 300', '"nodes": 1e400'))
    assert "1e400" in (folder / "about.json").read_text()


def huge(folder):
    changed(folder, nodes=10**30)


def less_than_none(folder):
    changed(folder, nodes=-1)


def not_described(folder):
    (folder / "about.json").unlink()


def reversed_rows(folder):
    starts, columns = (np.fromfile(folder / name, "<i4") for name in ("row_starts", "columns"))
    for begin, end in pairwise(starts):
        columns[begin:end] = columns[begin:end][::-1].copy()
    columns.tofile(folder / "columns")


def others(folder):
    """Any nodes in place of those that there are."""
    columns = np.fromfile(folder / "columns", "<i4")
    np.random.default_rng(0).integers(300, size=len(columns), dtype=np.int32).tofile(folder / "columns")


def swapped(folder):
    labels = np.fromfile(folder / "labels", "<i8")
    labels[::-1].tofile(folder / "labels")


def one_longer(folder):
    """A row that begins one edge later, as it well could."""
    starts = np.fromfile(folder / "row_starts", "<i4")
    at = np.flatnonzero(np.diff(starts))[3]
    starts[at + 1 :][starts[at + 1 :] == starts[at + 1]] -= 1
    starts.tofile(folder / "row_starts")


DAMAGE = {
    shortened: "features has 4,796 bytes instead of 4,800",
    lost: "labels: No such file or directory",
    beyond: "an edge names a node that does not exist",
    backwards: "its rows do not follow each other",
    infinite: "are not finite",
    many_classes: "labels is not what was written",
    no_class: "a label is negative",
    no_json: "about.json holds no JSON object",
    no_count: "about.json does not say 'entries' as a whole number of 32 bits",
    no_checksum: "about.json does not say 'columns_crc32' as a whole number",
    a_list: "about.json holds no JSON object",
    nested: "about.json holds no JSON object",
    infinitely_many: "about.json does not say 'nodes' as a whole number",
    huge: "about.json does not say 'nodes' as a whole number",
    less_than_none: "about.json does not say 'nodes' as a whole number",
    not_described: "about.json: No such file or directory",
    reversed_rows: "columns is not what was written",
    others: "columns is not what was written",
    swapped: "labels is not what was written",
    one_longer: "row_starts is not what was written",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_one_sentence(cached, damage):
    datasets.load(SMALL)
    (folder,) = cached.iterdir()
    damage(folder)
    said = typed("run", SMALL)
    assert_one_sentence(said, f"the graph in {folder} is damaged (")
    assert DAMAGE[damage] in said.err
    assert "delete the folder, and it is made anew" in said.err


@pytest.mark.parametrize("name", ["row_starts", "columns", "labels"])
@pytest.mark.parametrize("at_once", [7, 1 << 24])
def test_every_flipped_bit_is_found(cached, monkeypatch, name, at_once):
    """However many numbers are checked at once, one at the end too."""
    monkeypatch.setattr(mapped, "AT_ONCE", at_once)
    datasets.load(SMALL)
    (folder,) = cached.iterdir()
    whole = (folder / name).read_bytes()
    for at in {*range(0, len(whole), 101), len(whole) - 1}:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        (folder / name).write_bytes(damaged)
        with pytest.raises(FedstructError, match="is damaged"):
            datasets.load(SMALL)
    (folder / name).write_bytes(whole)
    assert datasets.load(SMALL).nodes == 300
