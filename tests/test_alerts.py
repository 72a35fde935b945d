"""Alerts that can be looked into: so many, or a share of the nodes that are judged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import assert_one_sentence, strictly, typed
from fedstruct.experiments import metrics
from fedstruct.experiments.alerts import alerts, budget
from fedstruct.experiments.config import Experiment, read
from fedstruct.experiments.run import run
from fedstruct.graph.generate import planted
from fedstruct.graph.graph import TEST
from fedstruct.graph.partition import random
from fedstruct.methods import FedSGD

SMALL = "consortium:banks=2,accounts=300,illicit=0.1"


@given(st.integers(1, 10**6))
def test_a_number_is_a_number_however_it_is_written(count):
    assert alerts(count) == alerts(str(count)) == alerts(f" {count} ") == count
    assert budget(alerts(count), 10) == count


@given(st.integers(1, 10**4), st.integers(1, 10**6))
def test_a_share_is_of_all_nodes_and_at_least_one(hundredths, nodes):
    share = alerts(f"{hundredths / 100} %")
    assert alerts(share) == share
    assert budget(share, nodes) == max(1, round(hundredths / 10**4 * nodes))


@pytest.mark.parametrize("wrong", ["0", "0%", "101%", "-1%", "1e2", "one", "%", "", "1.5", 0, -3, 1.5, True, None])
def test_anything_else_is_none(wrong):
    with pytest.raises(ValueError, match="should be a whole number from 1, or a share such as 1%"):
        alerts(wrong)


def test_a_share_is_that_of_the_nodes_that_are_judged():
    parts = random(planted(nodes=300, classes=2), parties=2)
    method = FedSGD("mlp", rounds=3)
    share, count = (run(method, parts, recall_at=at) for at in ("5%", 12))
    judged = int(share.trained.scores[TEST].sum())
    assert round(0.05 * judged) == 12
    assert share.recall == count.recall == metrics.recall_at(share.trained.scores[TEST], 12)


def test_a_share_finds_its_way_through_a_configuration(tmp_path):
    written = Experiment.of({"dataset": SMALL, "recall_at": " 1.50 % "}).to_toml()
    (tmp_path / "config.toml").write_text(written)
    assert read(tmp_path / "config.toml")["recall_at"] == "1.5%"
    assert Experiment.of(read(tmp_path / "config.toml")).recall_at == "1.5%"


@pytest.mark.usefixtures("here")
def test_a_share_on_the_command_line():
    typing = ["compare", SMALL, "--methods", "fedsgd-mlp", "--set", "rounds=2", "--recall-at"]
    assert strictly(typed(*typing, "1%", "--json").out)["recall_at"] == "1%"
    assert strictly(typed(*typing, "7", "--json").out)["recall_at"] == 7
    assert "@1%" in typed(*typing, "1%").out
    assert_one_sentence(typed(*typing, "0%"), "'recall_at' is '0%', but it should be a whole number from 1, or a share")
