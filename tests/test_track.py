"""Tracking: what MLflow is told of runs, in its own words."""

import sqlite3
import sys
from contextlib import closing
from importlib.util import find_spec
from unittest.mock import patch

import pytest

from command import assert_one_sentence, started, strictly, typed
from fedstruct.graph import npz
from fedstruct.graph.generate import planted

pytestmark = pytest.mark.usefixtures("here")

QUICK = ("--parties", "3", "--seeds", "2", "--set", "rounds=4")


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "small.npz"
    npz.write(planted(nodes=120), path)
    return path


@pytest.mark.parametrize("command", [["run"], ["compare", "--methods", "local-mlp"], ["sweep", "--over", "lr=0.1"]])
def test_a_tracker_that_is_not_there_is_one_sentence(command, graph, here):
    said = typed(command[0], graph, *command[1:], *QUICK, "--track", "wandb", "--out", "out")
    assert_one_sentence(said, "--track takes mlflow, not 'wandb'")
    with patch.dict(sys.modules, {"mlflow": None}):
        said = typed(command[0], graph, *command[1:], *QUICK, "--track", "mlflow", "--out", "out")
    assert_one_sentence(said, "--track mlflow needs MLflow, which is not installed: pip install 'fedstruct[track]'")
    assert not (here / "out").exists()


needs_mlflow = pytest.mark.skipif(
    find_spec("mlflow") is None,
    reason="MLflow is not installed: pip install -c constraints.txt -e '.[track]'",
)


@pytest.fixture
def database(here, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{here / 'runs.db'}")

    def ask(query):
        with closing(sqlite3.connect(here / "runs.db")) as connection:
            return connection.execute(query).fetchall()

    return ask


@needs_mlflow
def test_mlflow_is_told_settings_rounds_and_figures(graph, here, database):
    methods = ("--methods", "fedsgd-mlp,local-mlp", "--jobs", 1)
    said = started("compare", graph, *methods, *QUICK, "--track", "mlflow", "--out", "out", "--json")
    assert (said.code, said.err) == (0, "")
    assert database("select name from experiments where name = 'fedstruct'")
    runs = dict(database("select name, run_uuid from runs where status = 'FINISHED'"))
    assert sorted(runs) == [f"{name}, seed {seed}" for name in ("fedsgd-mlp", "local-mlp") for seed in (0, 1)]
    for method in strictly(said.out)["methods"]:
        history = list(map(strictly, (here / "out" / method["method"] / "history.jsonl").read_text().splitlines()))
        for run in method["runs"]:
            name = f"{method['method']}, seed {run['seed']}"
            at = f"run_uuid = '{runs[name]}'"
            settings = dict(database(f"select key, value from params where {at}"))
            assert (settings["method"], settings["seed"]) == (method["method"], str(run["seed"]))
            assert settings["lr"] == str(method["options"]["lr"])
            told = dict(database(f"select key, value from metrics where {at} and key != 'loss'"))
            assert told["test_accuracy"] == run["test_accuracy"]
            assert sum(told[f"bytes_{phase}"] for phase in run["bytes"]) == sum(run["bytes"].values())
            losses = database(f"select step, value from metrics where {at} and key = 'loss' order by step")
            assert losses == [(line["round"], line["loss"]) for line in history if line["seed"] == run["seed"]]


@needs_mlflow
def test_a_server_that_does_not_answer_is_one_sentence(graph, here, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    said = started("run", graph, *QUICK, "--track", "mlflow", "--out", "out")
    assert_one_sentence(said, "MLflow cannot be reported to: ")
    assert not (here / "out").exists()
