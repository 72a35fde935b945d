"""Names with parameters: they are read as they are written, and go wherever a dataset's name does."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedstruct as fs
from command import assert_one_sentence, strictly, typed, words
from fedstruct.errors import FedstructError
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.presets import recipe, tables
from fedstruct.experiments.sweep import axis
from fedstruct.graph import datasets, generators
from fedstruct.graph.generate import planted

SMALL = "consortium:banks=3,accounts=150,illicit=0.1"
QUICK = ("--set", "rounds=3", "--set", "layers_structure=2")

KEYS = st.text("abcdefgh_", min_size=1, max_size=8)
VALUES = st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["a", "x-y"])


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_what_is_written_is_read_again(given):
    assert generators.parsed(generators.written("consortium", **given)) == ("consortium", given)


@given(st.lists(st.one_of(st.sampled_from(["cora", "mine.npz", "consortium"]),
                          st.dictionaries(KEYS, st.integers(0, 9), min_size=1, max_size=3)), max_size=5))  # fmt: skip
def test_names_with_commas_are_told_apart(drawn):
    names = [name if isinstance(name, str) else generators.written("consortium", **name) for name in drawn]
    assert datasets.names(",".join(names)) == names
    distinct = tuple(dict.fromkeys(names))
    if distinct:
        assert axis(f"dataset={', '.join(names)}").values == distinct


def test_a_name_makes_the_graph_of_its_parameters():
    graph = datasets.load("planted:nodes=60,homophily=0.5,seed=3")
    made = planted(nodes=60, homophily=0.5, seed=3)
    assert np.array_equal(graph.features, made.features)
    assert (graph.adjacency != made.adjacency).nnz == 0
    assert graph.name == "planted:nodes=60,homophily=0.5,seed=3"
    assert datasets.load("planted:nodes=1e2").nodes == 100


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("consortium:bankz=3", "unknown parameter of consortium 'bankz': did you mean 'banks'?"),
        ("consortium:banks=5;cross=1", "has a ';' at 'banks=5;cross=1': parameters have commas between them"),
        ("consortium:banks=true", "parameter of consortium 'banks' is 'true', but it should be a whole number"),
        ("consortium:banks=2.5", "parameter of consortium 'banks' is 2.5, but it should be a whole number"),
        ("consortium:cross=much", "parameter of consortium 'cross' is 'much', but it should be a number"),
        ("consortium:banks=two", "parameter of consortium 'banks' is 'two', but it should be a whole number"),
        ("consortium:banks=2.5", "parameter of consortium 'banks' is 2.5"),
        ("consortium:banks=-1", "parameter of consortium 'banks' is -1, but it should be greater than or equal to 1"),
        ("consortium:cross=nan", "parameter of consortium 'cross' is 'nan', but it should be a finite number"),
        ("consortium:accounts=1e30", "parameter of consortium 'accounts' is 1e+30, but it should be smaller"),
        ("consortium:seed=-1", "parameter of consortium 'seed' is -1"),
        ("consortium:", "parameters are KEY=VALUE, with commas between"),
        ("consortium:banks", "'consortium:banks' is not understood at 'banks'"),
        ("consortium:banks=", "is not understood at 'banks='"),
        ("consortium:banks=2,banks=3", "gives 'banks' twice"),
        ("consortum:banks=2", "unknown generator 'consortum': did you mean 'consortium'?"),
        ("consortum", "unknown dataset 'consortum': did you mean 'consortium'?"),
        ("planted:homophily=3", "parameter of planted 'homophily' is 3"),
    ],
)
@pytest.mark.usefixtures("here")
def test_a_name_that_is_not_right_is_one_sentence(name, expected):
    with pytest.raises(FedstructError) as caught:
        datasets.load(name)
    assert expected in str(caught.value)
    assert_one_sentence(typed("run", name), expected)
    assert list(Path().iterdir()) == []


# Wherever a dataset's name goes.


def test_owners_are_those_that_the_graph_names_unless_others_are_asked_for():
    graph = fs.prepared(datasets.load(SMALL))
    assert graph.owner_attribute == "bank"
    for asked, name, parties in [
        ({}, "attribute:bank", ["bank-1", "bank-2", "bank-3"]),
        ({"parties": 2}, "random", ["party-1", "party-2"]),
        ({"partition": "random"}, "random", [f"party-{i + 1}" for i in range(10)]),
        ({"partition": "louvain", "parties": 2}, "louvain", ["party-1", "party-2"]),
    ]:
        parts = Experiment.of({"dataset": SMALL, **asked}).cut(graph, 0)
        assert (parts.name, [p.name for p in parts.parties]) == (name, parties)
    assert Experiment.of({"dataset": "planted"}).cut(planted(nodes=50), 0).name == "random"


def test_a_run_of_a_name(here):
    said = typed("run", SMALL, *QUICK, "--json")
    assert (said.code, said.err) == (0, "")
    told = strictly(said.out)
    assert (told["dataset"], told["parties"], told["partition"]) == (SMALL, 3, "attribute:bank")
    (folder,) = (here / "runs").iterdir()
    assert folder.name.startswith("consortium-banks3-accounts150-illicit0.1-fedstruct-")
    config = tomllib.loads((folder / "config.toml").read_text())
    assert config["dataset"] == SMALL
    again = strictly(typed("run", "--config", folder / "config.toml", "--json").out)
    assert again["test_accuracy"] == told["test_accuracy"]
    assert (again["parties"], again["partition"]) == (3, "attribute:bank")


@pytest.mark.usefixtures("here")
def test_the_other_commands_take_names_too():
    card = strictly(typed("partition", SMALL, "--json").out)
    assert [p["party"] for p in card["parties"]] == ["bank-1", "bank-2", "bank-3"]
    told = strictly(typed("compare", SMALL, "--methods", "fedsgd-mlp,local-mlp", "--set", "rounds=2", "--json").out)
    assert (told["parties"], told["partition"]) == (3, "attribute:bank")
    told = strictly(typed("tune", SMALL, "--method", "fedsgd-mlp", "--budget", 2, "--jobs", 1, "--json").out)
    assert (told["parties"], told["partition"]) == (3, "attribute:bank")


def test_a_sweep_over_names(here):
    other = "consortium:banks=2,accounts=100,illicit=0.1"
    said = typed("sweep", "cora", "--over", f"dataset={SMALL},{other}", *QUICK, "--jobs", 1, "--out", "s", "--json")
    assert (said.code, said.err) == (0, "")
    cells = strictly(said.out)["cells"]
    assert [(cell["dataset"], cell["parties"]) for cell in cells] == [(SMALL, 3), (other, 2)]
    assert cells[0]["folder"] == "fedstruct,dataset=consortium-banks=3,accounts=150,illicit=0.1"
    assert (here / "s" / cells[1]["folder"] / "result.json").is_file()
    assert "time-split" not in words(typed("sweep", SMALL, "--over", "prune=2", *QUICK, "--jobs", 1).out)


def test_recipes_are_looked_up_without_the_parameters():
    assert "consortium" in tables("ours")
    assert recipe("ours", SMALL) == recipe("ours", "consortium") != {}
