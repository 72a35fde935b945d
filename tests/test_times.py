"""A split by time: what was seen earliest trains, the next validates, the last tests."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedstruct as fs
from command import assert_one_sentence, strictly, typed, words
from fedstruct.errors import FedstructError
from fedstruct.experiments.protocol import TIME, time_split
from fedstruct.graph import npz
from fedstruct.graph.graph import TEST, TRAIN, UNUSED, VALIDATION
from fedstruct.graph.times import first_seen

SMALL = "consortium:banks=2,accounts=150,illicit=0.1"


def timed(times):
    n = len(times)
    return fs.Graph.from_edges(
        np.zeros((2, 0), int), features=np.ones((n, 1)), labels=np.zeros(n, int),
        attributes={"first": np.array(times, float)}, time_attribute="first",
    )  # fmt: skip


@given(st.lists(st.integers(0, 9) | st.none(), min_size=3, max_size=60), st.sampled_from([(0.1, 0.1), (0.5, 0.25)]),
       st.integers(0, 3))  # fmt: skip
def test_training_is_before_validation_is_before_testing(times, shares, seed):
    times = [np.nan if t is None else t for t in times]
    graph = time_split(timed(times), seed, *shares)
    times, split = np.array(times, float), graph.split
    assert np.array_equal(np.isnan(times), split == UNUSED)
    for earlier, later in ((TRAIN, VALIDATION), (TRAIN, TEST), (VALIDATION, TEST)):
        if (split == earlier).any() and (split == later).any():
            assert times[split == earlier].max() <= times[split == later].min()
    known = int((~np.isnan(times)).sum())
    assert (split == TRAIN).sum() == max(round(shares[0] * known), min(1, known))
    assert (split == TRAIN).sum() + (split == VALIDATION).sum() == pytest.approx(sum(shares) * known, abs=2)


def test_the_seed_draws_among_nodes_of_one_time_and_nothing_else():
    apart = [time_split(timed(range(50)), seed).split.tolist() for seed in (0, 1)]
    assert apart[0] == apart[1]
    tied = [time_split(timed([1] * 50), seed).split.tolist() for seed in (0, 0, 1)]
    assert tied[0] == tied[1] != tied[2]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-9, 9)), max_size=12))
def test_a_node_is_first_seen_in_its_earliest_edge(edges):
    found = first_seen(np.array([e[:2] for e in edges], int).reshape(-1, 2).T, [e[2] for e in edges] or np.zeros(0), 6)
    for node in range(6):
        expected = min((t for u, v, t in edges if node in (u, v)), default=np.nan)
        assert found[node] == pytest.approx(expected, nan_ok=True)


def test_times_of_edges_in_a_file_are_times_of_nodes(tmp_path):
    arrays = {"edge_index": [[0, 1], [1, 2]], "x": np.eye(4), "y": [0, 1, 0, 1], "edge_time": [7, 3]}
    np.savez(tmp_path / "g.npz", **arrays)
    graph = npz.read(tmp_path / "g.npz")
    assert np.array_equal(graph.attributes[graph.time_attribute], [7, 3, 3, np.nan], equal_nan=True)
    npz.write(graph, tmp_path / "again.npz")
    again = npz.read(tmp_path / "again.npz")
    assert np.array_equal(again.attributes[again.time_attribute], [7, 3, 3, np.nan], equal_nan=True)
    for wrong in ([7], [[7, 3]], ["a", "b"]):
        np.savez(tmp_path / "wrong.npz", **{**arrays, "edge_time": wrong})
        with pytest.raises(FedstructError, match=r"wrong\.npz: the times of edges must be numbers"):
            npz.read(tmp_path / "wrong.npz")
    for role in ("time_attribute", "owner_attribute"):
        np.savez(tmp_path / "wrong.npz", **{**arrays, role: np.array("bank")})
        with pytest.raises(FedstructError, match="there is no attribute 'bank' to tell owners or times"):
            npz.read(tmp_path / "wrong.npz")
        np.savez(tmp_path / "wrong.npz", **{**arrays, role: np.array(3)})
        with pytest.raises(FedstructError, match=f"'{role}' must be the name of an attribute"):
            npz.read(tmp_path / "wrong.npz")


@pytest.mark.usefixtures("here")
def test_every_command_splits_by_time_and_says_so():
    for command in (
        ["run", SMALL], ["compare", SMALL, "--methods", "fedsgd-mlp"],
        ["sweep", SMALL, "--over", "lr=0.01", "--method", "fedsgd-mlp", "--jobs", "1"],
        ["tune", SMALL, "--method", "fedsgd-mlp", "--budget", "2", "--jobs", "1"],
    ):  # fmt: skip
        said = typed(*command, "--set", "rounds=2", "--split", "time", "--train", "0.3")
        assert (said.code, said.err) == (0, ""), said
        assert TIME in words(said.out)


@pytest.mark.usefixtures("here")
def test_protocols_stand_beside_each_other_in_a_sweep():
    over = ["--over", "split=random,time", "--method", "fedsgd-mlp", "--jobs", "1", "--set", "rounds=2", "--json"]
    cells = strictly(typed("sweep", SMALL, *over).out)["cells"]
    assert [cell["protocol"] for cell in cells] == ["fedstruct-iclr2025", TIME]


@pytest.mark.usefixtures("here")
def test_without_times_there_is_no_such_split():
    expected = "planted:nodes=60 does not say when its nodes were first seen, so it cannot be split by time"
    assert_one_sentence(typed("run", "planted:nodes=60", "--split", "time"), expected)
    assert_one_sentence(typed("run", SMALL, "--split", "tme"), "'split' is 'tme', but it should be 'random' or 'time'")
    assert_one_sentence(typed("run", SMALL, "--split", "time", "--train", "0.9", "--val", "0.2"), "do not leave a test")
