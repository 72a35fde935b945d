"""Tuning: within its budget, on validation accuracy alone, and blind to the labels of test nodes."""

import tomllib
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from command import assert_one_sentence, strictly, typed, words
from fedstruct.experiments.bench import Bench
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.metrics import auprc
from fedstruct.experiments.presets import recipe
from fedstruct.experiments.protocol import split
from fedstruct.experiments.tune import SPACE, Tuning, stages
from fedstruct.graph import npz
from fedstruct.graph.generate import planted
from fedstruct.graph.graph import TEST, VALIDATION
from fedstruct.methods import METHODS, option_names

pytestmark = pytest.mark.usefixtures("here")

GRAPH = planted(nodes=150, seed=2)
FAST = ("--parties", "2", "--set", "rounds=4", "--jobs", "1")


@pytest.fixture
def graph(here):
    npz.write(GRAPH, here / "small.npz")
    return here / "small.npz"


def tried(folder):
    return [strictly(line) for line in (folder / "tried.jsonl").read_text().splitlines()]


def without_seconds(lines):
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines]


@pytest.mark.parametrize("budget", range(1, 41))
@pytest.mark.parametrize("seeds", [1, 2, 3, 5])
def test_stages_halve_and_spend_the_budget(budget, seeds):
    if budget < seeds:
        return
    many = stages(budget, seeds)
    assert sum(many) <= budget
    assert len(many) == seeds
    assert all(b == -(-a // 2) or b <= a / 2 + 1 for a, b in pairwise(many))
    assert sum(-(-(many[0] + 1) // 2**s) for s in range(seeds)) > budget


def test_what_is_written_and_told(graph, here):
    said = typed("tune", graph, "--method", "fedsgd-mlp", "--budget", 8, *FAST, "--out", "tuned", "--json")
    assert (said.code, said.err) == (0, "")
    told = strictly(said.out)
    lines = tried(here / "tuned")
    assert told["runs"] == len(lines) == 8
    assert [line["seed"] for line in lines] == [0] * 5 + [1] * 3
    assert all(line["options"]["rounds"] == 4 for line in lines), "what is set stays"
    best = told["candidates"][0]
    finalists = {line["candidate"] for line in lines if line["seed"] == 1}
    means = {c: np.mean([line["validation_accuracy"] for line in lines if line["candidate"] == c]) for c in finalists}
    assert best["validation_accuracy"]["mean"] == pytest.approx(max(means.values()))
    assert best["candidate"] == min(c for c in finalists if means[c] == max(means.values()))
    config = tomllib.loads((here / "tuned" / "best.toml").read_text())
    assert config["options"] == best["options"]
    assert typed("run", "--config", told["config"], "--seeds", 1, "--json").code == 0


def test_the_better_half_goes_on(graph, here):
    typed("tune", graph, "--method", "fedsgd-mlp", "--budget", 8, *FAST, "--out", "tuned")
    lines = tried(here / "tuned")
    first = {line["candidate"]: line["validation_accuracy"] for line in lines if line["seed"] == 0}
    best = sorted(first, key=lambda c: (-first[c], c))[:3]
    assert sorted(best) == [line["candidate"] for line in lines if line["seed"] == 1]


def test_test_labels_change_nothing_that_is_written(here):
    """The labels of nodes that are for testing with both seeds, permuted: the same files but for measured seconds."""
    both = np.flatnonzero((split(GRAPH, 0).split == TEST) & (split(GRAPH, 1).split == TEST))
    labels = GRAPH.labels.copy()
    labels[both] = np.random.default_rng(0).permutation(labels[both])
    assert (labels != GRAPH.labels).any()
    folders = []
    for name, made in (("one", GRAPH), ("two", replace(GRAPH, labels=labels))):
        (here / name).mkdir()
        npz.write(made, here / name / "g.npz")
        typed("tune", f"{name}/g.npz", "--budget", 6, *FAST, "--out", f"{name}/out")
        folders.append(here / name / "out")
    one, two = folders
    assert (one / "best.toml").read_text() == (two / "best.toml").read_text().replace("two/", "one/")
    assert without_seconds(tried(one)) == without_seconds(tried(two))
    assert len(tried(one)) == 6


def test_two_processes_choose_what_one_chooses(tmp_path):
    experiment = Experiment(dataset="g", method="fedstruct", parties=2, seeds=2, options={"rounds": 3})
    for jobs in (1, 2):
        (tmp_path / f"{jobs}").mkdir()
        list(Tuning(experiment, 6, {"g": GRAPH}).search(tmp_path / f"{jobs}", jobs))
    assert (tmp_path / "1" / "best.toml").read_bytes() == (tmp_path / "2" / "best.toml").read_bytes()
    assert without_seconds(tried(tmp_path / "1")) == without_seconds(tried(tmp_path / "2"))


def test_the_search_starts_at_both_presets_and_candidates_differ():
    cora = {"cora": replace(GRAPH, name="cora")}
    tuning = Tuning(Experiment(dataset="cora", parties=2, seeds=2), 20, cora)
    assert tuning.candidates[0]["lr_structure"] == 0.002
    chosen_before = recipe("ours", "cora", "fedstruct")
    assert chosen_before.items() <= tuning.candidates[1].items()
    assert len(tuning.candidates) == 13
    assert all(a != b for i, a in enumerate(tuning.candidates) for b in tuning.candidates[:i])


def test_a_candidate_that_fails_is_noted_and_the_search_goes_on(tmp_path):
    options = {"optimizer": "sgd", "weight_decay": 900, "rounds": 9, "dropout": 0, "feature_hidden": 4}
    far = Experiment(dataset="g", method="fedsgd-mlp", parties=2, options=options)
    tuning = Tuning(far, 6, {"g": GRAPH})
    list(tuning.search(tmp_path))
    lines = tried(tmp_path)
    failed = [line["candidate"] for line in lines if line["validation_accuracy"] is None]
    assert 0 < len(failed) < len(lines) == len(tuning.candidates)
    assert all("diverged" in lines[candidate]["failed"] for candidate in failed)
    assert sorted(tuning.ranking()[-len(failed) :]) == failed


def test_every_value_of_the_space_is_one_that_some_method_takes():
    for name, values in SPACE.items():
        having = [m for m in METHODS if name in option_names(m)]
        assert having
        for value in values:
            assert getattr(METHODS[having[-1]](**{name: value}).options, name) == value


def test_what_people_see(graph):
    said = typed("tune", graph, "--method", "fedsgd-mlp", "--budget", 3, *FAST, "--out", "tuned")
    assert (said.code, said.err) == (0, "")
    shown = words(said.out)
    assert "the starting point" in shown
    assert "no label of a test node was read" in shown
    assert "fedstruct run --config tuned/best.toml" in shown


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--budget", "1"], "a budget of 1 runs is less than one for each of 2 seeds"),
        (["--val", "0"], "no node is for validation"),
        (["--method", "fedstrukt"], "unknown method 'fedstrukt'"),
        (["--set", "runds=3"], "unknown option 'runds': did you mean 'rounds'?"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(arguments, expected, graph, here):
    assert_one_sentence(typed("tune", graph, "--parties", 2, *arguments), expected)
    assert [p.name for p in here.iterdir()] == ["small.npz"]


def test_the_measure_may_be_another(here):
    """Where one class is rare, the best by AUPRC is another than the best by accuracy."""
    rare = ("consortium:banks=2,accounts=300,illicit=0.1", "--method", "fedsgd-mlp", "--budget", 4, "--jobs", 1)
    told = strictly(typed("tune", *rare, "--by", "auprc", "--set", "rounds=5", "--out", "tuned", "--json").out)
    assert told["by"] == "validation_auprc"
    figures = {c["candidate"]: c["validation_auprc"]["mean"] for c in told["candidates"] if c["seeds"] == 2}
    assert told["candidates"][0]["candidate"] == max(figures, key=figures.get)
    lines = tried(here / "tuned")
    assert all("validation_accuracy" not in line and 0 < line["validation_auprc"] < 1 for line in lines)
    experiment = Experiment(dataset=rare[0], method="fedsgd-mlp", options=lines[0]["options"])
    found = Bench(blind=True).one(experiment, experiment.build_method(), 0).trained
    assert auprc(found.scores[VALIDATION]) == lines[0]["validation_auprc"]


def test_a_measure_that_is_not_there(graph):
    assert_one_sentence(typed("tune", graph, "--by", "auprk"), "unknown measure 'auprk': did you mean 'auprc'?")
    assert_one_sentence(typed("tune", graph, "--parties", 2, "--by", "auprc"), "auprc is a measure of two classes")
