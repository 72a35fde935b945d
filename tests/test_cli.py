"""The command line: one sentence for a mistake, one JSON object for a program, and a run folder that says it all."""

import os
import subprocess
import sys
import tomllib
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars
import pytest

from command import assert_one_sentence, started, strictly, typed, words
from fedstruct.graph import npz
from fedstruct.graph.datasets import DATA_VARIABLE, DATASETS
from fedstruct.graph.generate import planted


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """The file of a small graph."""
    path = tmp_path_factory.mktemp("graph") / "small.npz"
    npz.write(planted(nodes=120), path)
    return path


pytestmark = pytest.mark.usefixtures("here")

QUICK = ("--parties", "3", "--seeds", "2", "--set", "rounds=4", "--set", "layers_structure=3")

Run = namedtuple("Run", "folder said result")


@pytest.fixture(scope="module")
def a_run(graph, tmp_path_factory):
    """A run of two seeds with all that it left."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    said = typed("run", graph, *QUICK, "--out", folder, "--json")
    assert (said.code, said.err) == (0, "")
    return Run(folder, said, strictly(said.out))


def figures(result):
    """The part of a result that is the same whenever and wherever it is computed."""
    runs = [{k: v for k, v in run.items() if k not in ("seconds", "cpu_seconds")} for run in result["runs"]]
    return {**result, "runs": runs, "peak_rss_mb": None}


# Mistakes: one sentence on stderr, nothing on stdout, exit code 2.


def file_with(command=("run",), **changed):
    """Writes the small graph with some of its arrays changed, or left out."""

    def write(folder, graph):
        with np.load(graph) as file:
            arrays = {**file, **{k: v(file.get(k)) if callable(v) else v for k, v in changed.items()}}
        np.savez(folder / "changed.npz", **{k: v for k, v in arrays.items() if v is not None})
        return [*command, "changed.npz"]

    return write


def changed_at(index, value, dtype=None):
    def change(values):
        values = values.astype(dtype or values.dtype)
        values[index] = value
        return values

    return change


def a_file(name, content, *arguments):
    """Writes a file beside, and types a command that goes wrong because of it."""

    def write(folder, graph):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return [graph if a == "GRAPH" else a for a in arguments]

    return write


def cut_short(folder, graph):
    raw = graph.read_bytes()
    (folder / "cut.npz").write_bytes(raw[: len(raw) // 2])
    return ["run", "cut.npz"]


def full_folder(folder, graph):
    (folder / "full").mkdir()
    (folder / "full" / "notes.txt").write_text("mine")
    return ["run", graph, "--out", "full"]


def run(*arguments):
    return lambda folder, graph: ["run", graph, *arguments]


def command(*arguments):
    return lambda folder, graph: [graph if a == "GRAPH" else a for a in arguments]


MISTAKES = {
    "no dataset": (command("run"), "no dataset is named; give one"),
    "missing file": (command("run", "none.npz"), "there is no file none.npz"),
    "truncated file": (cut_short, "cut.npz cannot be read as an .npz graph"),
    "empty file": (a_file("empty.npz", "", "run", "empty.npz"), "empty.npz cannot be read"),
    "file of text": (a_file("text.npz", "a,b\n1,2\n", "run", "text.npz"), "text.npz cannot be read"),
    "missing array": (file_with(y=None), "changed.npz has no array 'y'"),
    "NaN features": (file_with(x=changed_at((17, 3), np.nan)), "features of node 17 are not finite"),
    "infinite features": (file_with(x=changed_at((0, 0), np.inf)), "features of node 0 are not finite"),
    "labels far out of range": (file_with(y=changed_at(5, 10**9, np.int64)), "label 1000000000"),
    "labels in between": (file_with(y=changed_at(5, 1.5, np.float64)), "labels must be whole numbers"),
    "edges to nowhere": (file_with(edge_index=changed_at((1, 7), 120)), "edge 7 joins nodes"),
    "edges to a negative node": (file_with(edge_index=changed_at((0, 2), -1)), "edge 2 joins nodes -1 and"),
    "features of too few nodes": (file_with(x=lambda x: x[:-1]), "features has 119 rows for 120 nodes"),
    "more parties than nodes": (run("--parties", "121"), "121 parties cannot share the 120 nodes"),
    "0 parties": (run("--parties", "0"), "'parties' is 0, but it should be greater than or equal to 1"),
    "fewer than 0 parties": (run("--parties=-2"), "'parties' is -2"),
    "0 seeds": (run("--seeds", "0"), "'seeds' is 0, but it should be greater than or equal to 1"),
    "unknown dataset": (command("run", "coar"), "unknown dataset 'coar': did you mean 'cora'?"),
    "unknown method": (run("--method", "fedstrukt"), "unknown method 'fedstrukt': did you mean 'fedstruct'?"),
    "unknown key": (run("--set", "prunes=3"), "unknown option 'prunes': did you mean 'prune'?"),
    "unknown key near another": (run("--set", "weigth_decay=3"), "did you mean 'weight_decay'?"),
    "unknown partition": (run("--partition", "randm"), "unknown partition 'randm': did you mean 'random'?"),
    "partition by no attribute": (run("--partition", "attribute:bank"), "has no attributes"),
    "partition by a missing file": (run("--partition", "owners.txt"), "there is no file of owners owners.txt"),
    "partition by a file of another length": (
        a_file("owners.txt", "a\nb\n", "run", "GRAPH", "--partition", "owners.txt"),
        "the owners are of shape (2,), but small has 120 nodes",
    ),
    "unknown partition near another": (
        run("--partition", "luvain"),
        "unknown partition 'luvain': did you mean 'louvain'?",
    ),
    "more communities than nodes": (run("--partition", "louvain", "--parties", "121"), "cannot share the 120 nodes"),
    "clusters without features": (
        file_with(x=lambda x: x[:, :0], command=("run", "--partition", "kmeans")),
        "changed has no features for K-means to go by; take louvain or random instead",
    ),
    "a partition by something unknown": (
        command("partition", "GRAPH", "--by", "k-means"),
        "unknown partition 'k-means': did you mean 'kmeans'?; or give a file of owners",
    ),
    "a partition of no graph": (command("partition", "coar"), "unknown dataset 'coar': did you mean 'cora'?"),
    "a partition for nobody": (command("partition", "GRAPH", "--parties", "0"), "'parties' is 0, but it should be"),
    "a partition for more than there are": (
        command("partition", "GRAPH", "--by", "kmeans", "--parties", "121"),
        "121 parties cannot share the 120 nodes of small; ask for fewer",
    ),
    "a partition by no attribute": (command("partition", "GRAPH", "--by", "attribute:bank"), "has no attributes"),
    "a partition by a missing file": (command("partition", "GRAPH", "--by", "none.txt"), "no file of owners none.txt"),
    "a partition by a file of fewer owners": (
        a_file("owners.txt", "a\n" * 120, "partition", "GRAPH", "--by", "owners.txt", "--parties", "2"),
        "owners.txt names 1 owners, not 2; leave out --parties",
    ),
    "owners written over a file": (
        a_file("owners.txt", "mine", "partition", "GRAPH", "--out", "owners.txt"),
        "owners.txt exists and is not overwritten; give another --out",
    ),
    "owners written to another kind of file": (
        command("partition", "GRAPH", "--out", "owners.csv"),
        "owners are written to a .npy or .txt file, and owners.csv is none; rename it",
    ),
    "owners written to no folder": (
        command("partition", "GRAPH", "--out", "none/owners.txt"),
        "there is no folder none to write owners.txt into",
    ),
    "unknown preset": (run("--preset", "papr"), "unknown preset 'papr': did you mean 'paper'?"),
    "preset without settings": (run("--preset", "paper"), "preset 'paper' has no settings for"),
    "an option beyond all bounds": (
        run("--set", f"prune={10**23}"),
        "'prune' is 100000000000000000000000, but it should be at most 2147483647",
    ),
    "more hops than anybody takes": (
        run("--set", "layers_structure=1001"),
        "'layers_structure' is 1001, but it should be less than or equal to 1000",
    ),
    "more hops of features than there is memory for": (
        run("--set", f"layers_feature={2**31 - 1}"),
        "'layers_feature' is 2147483647, but it should be less than or equal to 1000",
    ),
    "more return probabilities than anybody takes": (
        run("--set", f"return_steps={2**31 - 1}"),
        "'return_steps' is 2147483647, but it should be less than or equal to 1000",
    ),
    "features that the method's name rules out": (
        run("--method", "fedstruct-degree", "--set", "features=hop2vec"),
        "'fedstruct-degree' has features = degree, and not 'hop2vec'; leave out 'features', or take the method",
    ),
    "a structure that the method's name rules out": (
        run("--method", "fedstruct-propagated", "--set", "structure=exchanged"),
        "'fedstruct-propagated' has structure = propagated, and not 'exchanged'; leave out 'structure'",
    ),
    "carrying what the method's name rules out": (
        run("--method", "fedstruct-propagated-features", "--set", "carry=structure"),
        "'fedstruct-propagated-features' has carry = features, and not 'structure'; leave out 'carry'",
    ),
    "propagation of what the method's name has exchanged": (
        run("--method", "fedstruct-fedstar", "--set", "structure=propagated"),
        "'fedstruct-fedstar' has structure = exchanged, and not 'propagated'; leave out 'structure'",
    ),
    "an option in a list beyond all bounds": (
        run("--set", "structure_hidden=[8, 99999999999]"),
        "'structure_hidden' is [8, 99999999999], but it should be at most 2147483647",
    ),
    "an option of too many digits": (run("--set", "prune=" + "9" * 5000), "option 'prune' is '999999999999...999"),
    "brackets without end": (run("--set", "prune=" + "[" * 100_000), "option 'prune' is '[[[[[[[[[[[[...[[["),
    "betas beyond all bounds": (
        run("--set", "betas=[1e308]", "--set", "layers_structure=1"),
        "'betas' is 1e+308, but it should be less than or equal to 1000000",
    ),
    "more seeds than anybody waits for": (run("--seeds", "99999999999"), "'seeds' is 99999999999, but it should be"),
    "a key of two lines": (run("--set", "a\nb=3"), "unknown option 'a b': choose one of betas, "),
    "more classes than can be counted": (
        file_with(classes=lambda _: np.array(2**64 - 1, np.uint64)),
        "changed: 18,446,744,073,709,551,615 classes or features are too many",
    ),
    "more features than can be counted": (
        file_with(
            x=None,
            x_data=lambda _: np.ones(1),
            x_indices=lambda _: np.array([0]),
            x_indptr=lambda _: np.array([0] + 120 * [1]),
            x_shape=lambda _: np.array([120, 2**62]),
        ),
        "changed: 4,611,686,018,427,387,904 classes or features are too many",
    ),
    "labels that wrap around": (
        file_with(y=changed_at(5, 2**64 - 1, np.uint64)),
        "changed: label 18446744073709551615 of node 5 is out of range",
    ),
    "a file of too long a name": (command("run", "x" * 300 + ".npz"), "cannot be read: File name too long"),
    "a file in nobody's home": (command("run", "~nobody.there/x.npz"), "there is no file ~nobody.there/x.npz"),
    "a file whose name is no text": (command("run", "small\udcff.npz"), "'small\\udcff.npz' is not UTF-8 text"),
    "a run folder whose name is no text": (run("--out", "run\udcff"), "'run\\udcff' is not UTF-8 text"),
    "prune of 0": (run("--set", "prune=0"), "'prune' is 0, but it should be greater than or equal to 1"),
    "layers_structure of 0": (run("--set", "layers_structure=0"), "'layers_structure' is 0, but it should be"),
    "a word for a number": (run("--set", "rounds=many"), "'rounds' is 'many', but it should be a whole number"),
    "no such choice": (run("--set", "prune_rule=blocks"), "'prune_rule' is 'blocks', but it should be 'block'"),
    "betas for other hops": (
        run("--set", "betas=[1]", "--set", "layers_structure=2"),
        "fedstruct: there are 1 betas for layers_structure = 2 hops: give one each",
    ),
    "no column left for degrees": (
        run("--method", "fedstruct-fedstar", "--set", "return_steps=300"),
        "fedstruct: return_steps = 300 leave no room for degrees in structure_dim = 256: take fewer",
    ),
    "no layers": (run("--set", "structure_hidden=[]"), "'structure_hidden' is [], but it should have at least 1 item"),
    "a layer of no units": (
        run("--method", "fedsgd-gnn", "--set", "sage_hidden=[8,-3]"),
        "'sage_hidden' is -3, but it should be greater than or equal to 1",
    ),
    "FedStruct averaged": (run("--set", "aggregation=fedavg"), "FedStruct is trained by FedSGD and by nothing else"),
    "FedStruct with local epochs": (run("--set", "local_epochs=2"), "leave out 'local_epochs'"),
    "FedStruct averaged, by name": (
        run("--method", "fedavg-fedstruct"),
        "FedStruct is trained by FedSGD and by nothing else",
    ),
    "half a method's name": (run("--method", "fedstar"), "unknown method 'fedstar': did you mean 'fedstruct-fedstar'?"),
    "inference from something else": (
        run("--inference", "labels"),
        "'inference' is 'labels', but it should be 'both', 'structure' or 'features'",
    ),
    "inference where there is but one part": (
        run("--method", "fedsgd-mlp", "--inference", "structure"),
        "unknown option 'inference'",
    ),
    "an infinite rate": (run("--set", "lr=Infinity"), "'lr'"),
    "a key without a value": (run("--set", "prune"), "--set takes key=value, for example prune=30, not 'prune'"),
    "a value without a key": (run("--set", "=30"), "--set takes key=value, for example prune=30, not '=30'"),
    "missing configuration": (run("--config", "none.toml"), "there is no configuration file none.toml"),
    "a folder as configuration": (run("--config", "."), "configuration file . cannot be read"),
    "broken configuration": (
        a_file("run.toml", "dataset = \nseeds", "run", "--config", "run.toml"),
        "configuration file run.toml is not valid TOML",
    ),
    "configuration of brackets without end": (
        a_file("run.toml", "seeds = " + "[" * 5000, "run", "GRAPH", "--config", "run.toml"),
        "configuration file run.toml is not valid TOML",
    ),
    "configuration of too many digits": (
        a_file("run.toml", "seeds = " + "9" * 5000, "run", "GRAPH", "--config", "run.toml"),
        "configuration file run.toml is not valid TOML",
    ),
    "configuration that is no text": (
        a_file("run.toml", b"\xff\xfe", "run", "--config", "run.toml"),
        "configuration file run.toml",
    ),
    "unknown setting": (
        a_file("run.toml", 'dataset = "small"\npartys = 3\n', "run", "--config", "run.toml"),
        "unknown setting 'partys': did you mean 'parties'?",
    ),
    "unknown option in the configuration": (
        a_file("run.toml", "[options]\nrunds = 3\n", "run", "GRAPH", "--config", "run.toml"),
        "unknown option 'runds': did you mean 'rounds'?",
    ),
    "a setting of the wrong type": (
        a_file("run.toml", 'parties = "three"\n', "run", "GRAPH", "--config", "run.toml"),
        "'parties' is 'three', but it should be a whole number",
    ),
    "options that are no table": (
        a_file("run.toml", "options = 3\n", "run", "GRAPH", "--config", "run.toml"),
        "'options' is 3, but it should be a valid dictionary",
    ),
    "options that are no table, and others typed": (
        a_file("run.toml", "options = 3\n", "run", "GRAPH", "--config", "run.toml", "--set", "prune=3"),
        "options",
    ),
    "no room for a test set": (
        a_file("run.toml", "train = 0.5\nvalidation = 0.5\n", "run", "GRAPH", "--config", "run.toml"),
        "do not leave a test set",
    ),
    "a run folder that is not empty": (full_folder, "full exists and is not an empty folder; give another --out"),
    "a file as run folder": (
        a_file("taken", "mine", "run", "GRAPH", "--out", "taken"),
        "taken exists and is not an empty folder",
    ),
    "a run folder below a file": (
        a_file("taken", "mine", "run", "GRAPH", "--out", "taken/below/run"),
        "the run folder taken/below/run cannot be written: Not a directory; give another --out",
    ),
    "the ledger of no folder": (command("ledger", "none"), "none is not a run folder: it has no result.json"),
    "the ledger of an empty folder": (command("ledger", "."), ". is not a run folder"),
    "the ledger of a file": (a_file("taken", "mine", "ledger", "taken"), "taken"),
    "the ledger of a damaged folder": (a_file("result.json", '{"runs"', "ledger", "."), "result.json cannot be read"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_in_one_sentence(mistake, here, graph):
    make, expected = MISTAKES[mistake]
    arguments = make(here, graph)
    before = sorted(p.name for p in here.rglob("*"))
    assert_one_sentence(typed(*arguments), expected)
    assert sorted(p.name for p in here.rglob("*")) == before, "a mistake leaves nothing behind"


def test_what_was_in_a_folder_is_left_alone(here, graph):
    assert_one_sentence(typed(*full_folder(here, graph)), "full")
    assert [p.name for p in (here / "full").iterdir()] == ["notes.txt"]
    assert (here / "full" / "notes.txt").read_text() == "mine"


def test_a_data_folder_that_is_none(monkeypatch):
    monkeypatch.setenv(DATA_VARIABLE, "/none/such")
    for arguments in (["run", "cora"], ["datasets"], ["datasets", "--json"]):
        assert_one_sentence(typed(*arguments), f"{DATA_VARIABLE} names /none/such, which is not a folder")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run", "cora", "--parties", "three"], "--parties"),
        (["run", "cora", "--jobs", "0"], "--jobs"),
        (["run", "cora", "--partys", "3"], "--partys"),
        (["run", "cora", "citeseer"], "citeseer"),
        (["ledger"], "RUN"),
        (["lager"], "ledger"),
        (["ledger", ".", "--seed", "-1"], "--seed"),
        (["partition"], "DATASET"),
        (["partition", "cora", "--seed", "-1"], "--seed"),
        (["partition", "cora", "--seed", "one"], "--seed"),
    ],
)
def test_what_cannot_be_understood_is_said_to_be_so(arguments, named):
    assert_one_sentence(typed(*arguments), named)


def test_a_flag_or_a_command_suggests_the_nearest():
    assert_one_sentence(typed("run", "cora", "--partys", "3"), "unknown flag '--partys': did you mean '--parties'?")
    assert_one_sentence(typed("lager", "."), "unknown command 'lager': did you mean 'ledger'?")


def test_without_a_command_help_is_shown():
    said = typed()
    assert said.code == 2
    assert "ledger" in said.out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here is always full")
@pytest.mark.parametrize("to", ["2>/dev/full", "2>&-"])
@pytest.mark.parametrize("mistake", ["run none.npz", "run cora --partys 3"])
def test_a_mistake_is_told_by_the_code_where_nobody_reads_the_sentence(to, mistake):
    command = f"{sys.executable} -m fedstruct {mistake} {to}"
    assert subprocess.run(["sh", "-c", command], timeout=100, check=False).returncode == 2


def test_mistakes_in_a_process_of_their_own(here, graph):
    for name in ("truncated file", "a run folder below a file"):
        make, expected = MISTAKES[name]
        assert_one_sentence(started(*make(here, graph)), expected)


# What a run prints for a program.

SUMMARY = {
    "dataset",
    "method",
    "protocol",
    "preset",
    "parties",
    "partition",
    "test_accuracy",
    "macro_f1",
    "runs",
    "peak_rss_mb",
}
EACH = {
    "seed",
    "test_accuracy",
    "validation_accuracy",
    "seconds",
    "cpu_seconds",
    "bytes",
    "messages",
    "exposure",
}
PHASES = {"structure", "training", "evaluation"}
BESIDE = {"options"}, {"macro_f1", "exchange"}
"""What stands there as well: the options that were used, each run's macro F1, and the entries that it exchanged."""


def test_json_has_the_figures_by_their_names(a_run, graph):
    result = a_run.result
    assert set(result) == SUMMARY | BESIDE[0]
    assert result["dataset"] == str(graph)
    assert (result["method"], result["protocol"], result["preset"]) == ("fedstruct", "fedstruct-iclr2025", "ours")
    assert (result["parties"], result["partition"]) == (3, "random")
    assert result["peak_rss_mb"] > 10
    assert [run["seed"] for run in result["runs"]] == [0, 1]
    for run in result["runs"]:
        assert set(run) == EACH | BESIDE[1]
        assert 0 <= run["test_accuracy"] <= 1
        assert 0 <= run["validation_accuracy"] <= 1
        for what in ("seconds", "cpu_seconds", "bytes"):
            assert set(run[what]) == PHASES
            assert all(value > 0 for value in run[what].values())
        assert all(isinstance(value, int) for value in run["bytes"].values())
        assert isinstance(run["messages"], int)
        assert run["messages"] > 0
        assert 0 <= run["exposure"]["inner_share"] <= 1
        assert [p["party"] for p in run["exposure"]["parties"]] == ["party-1", "party-2", "party-3"]


def test_means_and_deviations_are_those_of_the_runs(a_run):
    for measure in ("test_accuracy", "macro_f1"):
        values = [run[measure] for run in a_run.result["runs"]]
        assert set(a_run.result[measure]) == {"mean", "std"}
        assert a_run.result[measure]["mean"] == pytest.approx(np.mean(values))
        assert a_run.result[measure]["std"] == pytest.approx(np.std(values, ddof=1))


def test_a_single_run_has_no_deviation(graph):
    said = typed("run", graph, *QUICK, "--seeds", "1", "--json")
    assert (said.code, said.err) == (0, "")
    assert strictly(said.out)["test_accuracy"]["std"] is None


def test_two_classes_have_auprc(here):
    npz.write(planted(nodes=120, classes=2), here / "two.npz")
    said = typed("run", "two.npz", *QUICK, "--json")
    result = strictly(said.out)
    assert set(result) == SUMMARY | BESIDE[0] | {"auprc", "recall", "recall_at"}
    assert set(result["auprc"]) == set(result["recall"]) == {"mean", "std"}
    assert all(set(run) == EACH | BESIDE[1] | {"auprc", "recall"} for run in result["runs"])
    assert all(0 < run["auprc"] <= 1 for run in result["runs"])


def test_bytes_and_messages_are_those_of_the_ledger(a_run):
    book = polars.read_parquet(a_run.folder / "ledger.parquet").filter(polars.col("entry") == "sent")
    for run in a_run.result["runs"]:
        sent = book.filter(polars.col("run") == f"fedstruct-{run['seed']}")
        assert sent.height == run["messages"]
        assert int(sent["bytes"].sum()) == sum(run["bytes"].values())


# What a run leaves.


def test_a_run_folder_holds_configuration_results_history_and_ledger(a_run):
    names = {"config.toml", "about.json", "result.json", "history.jsonl", "ledger.parquet"}
    assert {p.name for p in a_run.folder.iterdir()} == names
    lines = (a_run.folder / "history.jsonl").read_text().splitlines()
    history = [strictly(line) for line in lines]
    assert [(h["seed"], h["round"]) for h in history] == [(seed, t) for seed in (0, 1) for t in (1, 2, 3, 4)]
    assert all(set(h) == {"seed", "round", "loss"} and h["loss"] > 0 for h in history)
    assert set(polars.read_parquet(a_run.folder / "ledger.parquet")["run"]) == {"fedstruct-0", "fedstruct-1"}
    config = tomllib.loads((a_run.folder / "config.toml").read_text())
    assert (config["parties"], config["seeds"], config["options"]["rounds"]) == (3, 2, 4)


def test_the_result_in_the_folder_is_what_was_printed(a_run):
    saved = strictly((a_run.folder / "result.json").read_text())
    assert saved.pop("peak_rss_mb") <= a_run.result["peak_rss_mb"]
    assert saved == {k: v for k, v in a_run.result.items() if k != "peak_rss_mb"}


def test_the_configuration_in_the_folder_gives_the_same_figures(a_run):
    said = typed("run", "--config", a_run.folder / "config.toml", "--out", "again", "--json")
    assert (said.code, said.err) == (0, "")
    assert figures(strictly(said.out)) == figures(a_run.result)


def test_flags_go_before_the_configuration(a_run):
    config = a_run.folder / "config.toml"
    said = typed("run", "--config", config, "--parties", "2", "--seeds", "1", "--set", "rounds=2", "--json")
    result = strictly(said.out)
    assert (result["parties"], len(result["runs"]), result["options"]["rounds"]) == (2, 1, 2)
    assert result["options"]["layers_structure"] == 3
    assert result["dataset"] == a_run.result["dataset"]


def test_a_configuration_goes_before_the_preset_and_the_last_set_before_all(here, graph):
    (here / "run.toml").write_text(f'dataset = "{graph}"\nparties = 2\n[options]\nrounds = 3\nprune = 7\n')
    said = typed("run", "--config", "run.toml", "--set", "rounds=1", "--set", "rounds=2", "--json")
    options = strictly(said.out)["options"]
    assert (options["rounds"], options["prune"], options["layers_structure"]) == (2, 7, 5)


@pytest.mark.parametrize("name", ["Straße", "📈", 'a "quoted" name', "back\\slash", "[ours]"])
def test_any_name_of_a_file_finds_its_way_back_from_the_configuration(name, here, graph):
    (here / f"{name}.npz").write_bytes(graph.read_bytes())
    first = typed("run", f"{name}.npz", *QUICK, "--seeds", "1", "--out", "first", "--json")
    assert (first.code, first.err) == (0, "")
    again = typed("run", "--config", "first/config.toml", "--json")
    assert (again.code, again.err) == (0, "")
    assert figures(strictly(again.out)) == figures(strictly(first.out))


def test_separate_parties_have_the_same_figures(a_run, graph):
    said = typed("run", graph, *QUICK, "--separate", "--json")
    assert (said.code, said.err) == (0, "")
    for apart, together in zip(strictly(said.out)["runs"], a_run.result["runs"], strict=True):
        for what in ("test_accuracy", "validation_accuracy", "macro_f1", "bytes", "messages", "exposure", "exchange"):
            assert apart[what] == together[what]


def test_several_jobs_give_the_figures_of_one(a_run, graph, here):
    said = started("run", graph, *QUICK, "--jobs", "2", "--out", "jobs", "--json")
    assert (said.code, said.err) == (0, "")
    assert figures(strictly(said.out)) == figures(a_run.result)
    columns = ["run", "step", "sender", "receiver", "kind", "entry", "bytes"]
    one, two = (polars.read_parquet(f / "ledger.parquet").sort(columns) for f in (a_run.folder, here / "jobs"))
    assert one.equals(two)
    lines = [sorted((f / "history.jsonl").read_text().splitlines()) for f in (a_run.folder, here / "jobs")]
    assert lines[0] == lines[1]
    assert (a_run.folder / "about.json").read_bytes() == (here / "jobs" / "about.json").read_bytes()


def test_without_out_each_run_gets_a_folder_of_its_own(here, graph):
    for _ in range(2):
        assert typed("run", graph, *QUICK, "--seeds", "1", "--json").code == 0
    folders = list((here / "runs").iterdir())
    assert len(folders) == 2
    assert all(f.name.startswith("small-fedstruct-") and (f / "result.json").is_file() for f in folders)


def test_an_empty_folder_may_be_given(here, graph):
    (here / "empty").mkdir()
    assert typed("run", graph, *QUICK, "--out", "empty", "--json").code == 0
    assert (here / "empty" / "result.json").is_file()


@pytest.mark.parametrize(("classes", "rounds"), [(2, 2), (3, 2), (3, 12)])
@pytest.mark.parametrize("how", [[], ["--separate"]], ids=["together", "separate"])
@pytest.mark.parametrize(
    "method",
    [
        "fedstruct", "fedstruct-hop2vec-mlp", "fedstruct-propagated", "fedstruct-propagated-features",
        "fedsgd-dgcn", "fedavg-gnn", "local-mlp", "central-mlp",
    ],
)  # fmt: skip
def test_a_training_that_diverges_is_one_sentence_however_it_steps(here, method, how, rounds, classes):
    """After two rounds the model is finite still, and its logits are not."""
    npz.write(planted(nodes=60, classes=classes, seed=1), here / "far.npz")
    options = {"optimizer": "sgd", "lr": 1000, "weight_decay": 1000, "rounds": rounds, "dropout": 0}
    options |= {"layers_structure": 2} if method.startswith("fedstruct") else {}
    chosen = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    said = typed("run", here / "far.npz", "--method", method, "--parties", 3, *chosen, *how, "--out", "far", "--json")
    assert_one_sentence(said, "training diverged")
    assert not (here / "far" / "result.json").exists()


def test_a_run_that_fails_leaves_a_folder_that_was_there(here, graph):
    (here / "empty").mkdir()
    for out in ("empty", "new"):
        assert_one_sentence(typed("run", graph, *QUICK, "--set", "lr=1e30", "--out", out), "lr")
    assert [p.name for p in here.iterdir()] == ["empty"]
    assert list((here / "empty").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit to a file's size")
@pytest.mark.parametrize(
    ("arguments", "room"),
    [
        (("run", "GRAPH", "--out", "new"), 0),
        (("run", "GRAPH", "--out", "new"), 600),
        (("partition", "GRAPH", "--out", "new.npy"), 200),
        (("import", "nodes.csv", "edges.csv", "--out", "new.npz"), 200),
    ],
)
def test_a_full_disk_leaves_nothing_that_blocks_another_try(here, graph, arguments, room):
    """In a process that may not write files of more than some bytes, as if the disk were full."""
    import resource

    (here / "nodes.csv").write_text("id,label,a\n" + "".join(f"{i},{i % 2},{i}\n" for i in range(50)))
    (here / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    typing = [graph if a == "GRAPH" else a for a in arguments]
    before = sorted(p.name for p in here.iterdir())
    said = started(*typing, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
    assert_one_sentence(said, "File too large")
    assert sorted(p.name for p in here.iterdir()) == before


# What a run shows to people.


def test_inference_is_a_flag_and_an_option(here, graph):
    typing = ("run", graph, "--parties", 2, "--set", "rounds=2", "--json")
    flag = strictly(typed(*typing, "--inference", "structure").out)
    option = strictly(typed(*typing, "--set", "inference=structure").out)
    assert flag["options"]["inference"] == "structure"
    assert (flag["options"], flag["test_accuracy"]) == (option["options"], option["test_accuracy"])


def test_without_an_exchange_nothing_is_said_of_one(here, graph):
    shown = words(typed("run", graph, "--method", "fedsgd-mlp", "--set", "rounds=2", "--out", "seen").out)
    assert "There was no structure exchange to read edges off" in shown
    assert "reach" not in shown
    assert "There was no structure exchange" in words(typed("ledger", "seen").out)


def test_a_run_shows_its_figures_and_where_they_are(here, graph):
    said = typed("run", graph, *QUICK, "--out", "run [ours]")
    assert (said.code, said.err) == (0, "")
    shown = words(said.out)
    result = strictly((here / "run [ours]" / "result.json").read_text())
    mean, std = (f"{100 * result['test_accuracy'][what]:.2f}" for what in ("mean", "std"))
    assert f"{mean} ± {std} %" in shown
    assert "fedstruct-iclr2025" in shown
    assert "of the paper's L·K·p·n" in shown
    exposure = result["runs"][0]["exposure"]
    assert f"{100 * exposure['inner_share']:.2f} % of the" in shown
    assert "fedstruct ledger 'run [ours]'" in shown


def test_a_single_party_runs_and_has_told_nobody(here, graph):
    said = typed("run", graph, *QUICK, "--parties", "1", "--out", "alone")
    assert (said.code, said.err) == (0, "")
    exposure = strictly((here / "alone" / "result.json").read_text())["runs"][0]["exposure"]
    assert exposure["inner_share"] == exposure["border_share"] == 0
    for more in ([], ["--json"], ["--party", "party-1"]):
        assert typed("ledger", "alone", *more).code == 0
    assert "Blocks" not in typed("ledger", "alone").out


def test_owners_from_a_file_and_labels_that_nobody_knows(here):
    made = planted(nodes=60)
    npz.write(replace(made, labels=np.where(np.arange(60) % 4 == 0, -1, made.labels)), here / "some.npz")
    (here / "owners.txt").write_text("\n".join(["nord", "ost", "sued"] * 20))
    said = typed("run", "some.npz", *QUICK, "--partition", "owners.txt", "--out", "run", "--json")
    assert (said.code, said.err) == (0, "")
    result = strictly(said.out)
    assert (result["parties"], result["partition"]) == (3, "owners.txt")
    assert [p["party"] for p in result["runs"][0]["exposure"]["parties"]] == ["nord", "ost", "sued"]


@pytest.mark.parametrize("partition", ["louvain", "kmeans"])
def test_communities_train(graph, partition):
    said = typed("run", graph, *QUICK, "--partition", partition, "--json")
    assert (said.code, said.err) == (0, "")
    result = strictly(said.out)
    assert (result["parties"], result["partition"], len(result["runs"])) == (3, partition, 2)


# Partitions.


@pytest.mark.parametrize("by", ["random", "louvain", "kmeans"])
def test_written_owners_train_the_same_parts(here, graph, by):
    written = typed("partition", graph, "--by", by, "--parties", "11", "--out", "owners.txt")
    assert (written.code, written.err) == (0, "")
    assert words(written.out) == "120 owners are in owners.txt. Train with --partition owners.txt."
    assert len((here / "owners.txt").read_text().splitlines()) == 120
    quick = ("--set", "rounds=4", "--set", "layers_structure=3", "--json")
    drawn = strictly(typed("run", graph, "--parties", "11", "--partition", by, *quick).out)
    given = strictly(typed("run", graph, "--partition", "owners.txt", *quick).out)
    assert figures({**given, "partition": by}) == figures(drawn)


def test_a_card_in_json_is_that_of_the_run(here, graph):
    told = strictly(typed("partition", graph, "--by", "louvain", "--parties", "3", "--seed", "1", "--json").out)
    assert (told["seed"], told["out"], told["graph"], told["partition"]) == (1, None, "small", "louvain")
    assert told["nodes"] == sum(p["nodes"] for p in told["parties"]) == 120
    assert told["edges"] == sum(2 * p["inner_edges"] + p["border_edges"] for p in told["parties"]) / 2
    run = strictly(typed("run", graph, *QUICK, "--partition", "louvain", "--json").out)["runs"][1]
    assert told["read_off"] == run["exposure"]["inner_share"]
    for exposed, part in zip(run["exposure"]["parties"], told["parties"], strict=True):
        assert (part["party"], part["inner_edges"]) == (exposed["party"], exposed["inner_edges"])

    again = typed("partition", graph, "--by", "louvain", "--parties", "3", "--seed", "1", "--out", "o.npy", "--json")
    assert strictly(again.out) == {**told, "out": "o.npy"}
    by_file = strictly(typed("partition", graph, "--by", "o.npy", "--seed", "1", "--json").out)
    assert by_file == {**told, "partition": "o.npy"}
    assert [p.name for p in here.iterdir() if p.name != "runs"] == ["o.npy"]


def test_a_card_shows_its_figures(here, graph):
    said = typed("partition", graph, "--parties", "3", "--by", "louvain")
    assert (said.code, said.err) == (0, "")
    assert list(here.iterdir()) == []
    told = strictly(typed("partition", graph, "--parties", "3", "--by", "louvain", "--json").out)
    shown = words(said.out)
    assert shown.startswith("small, 3 parties (louvain)")
    for part in told["parties"]:
        figures = [part["nodes"], part["inner_edges"], part["border_edges"], part["neighbours"]]
        assert " ".join([part["party"], *map(str, figures), f"{100 * part['read_off']:.0f} %"]) in shown
    assert f"{100 * told['border_share']:.1f} % of {told['edges']} edges" in shown
    assert f"{told['homophily_inside']:.2f} inside parties, {told['homophily_across']:.2f} across borders" in shown
    assert f"label skew {told['label_skew']:.2f}: on average, " in shown
    assert f"at least {100 * told['read_off']:.1f} % of inner edges" in shown
    both = typed("partition", graph, "--parties", "3", "--by", "louvain", "--out", "owners.txt", "--card")
    assert both.out.startswith(said.out)
    assert "120 owners are in owners.txt" in words(both.out[len(said.out) :])


@pytest.mark.parametrize("classes", [1, 2, 40])
def test_a_card_of_any_classes_or_none_and_of_one_party(here, classes, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    made = planted(nodes=60, classes=max(classes, 2))
    labels = made.labels if classes > 1 else np.full(60, -1)
    npz.write(replace(made, labels=labels, attributes={"[bank]": np.array(["[red]", "x"] * 30)}), here / "some.npz")
    for more in (["--parties", "1"], ["--parties", "60"], ["--by", "attribute:[bank]"]):
        said = typed("partition", "some.npz", *more)
        assert (said.code, said.err) == (0, "")
        assert strictly(typed("partition", "some.npz", *more, "--json").out)["nodes"] == 60
        assert max(map(len, said.out.splitlines())) <= 80
    assert "[red] 30" in words(said.out)


# The ledger.


def test_the_ledger_says_who_learned_what_from_whom(a_run):
    said = typed("ledger", a_run.folder)
    assert (said.code, said.err) == (0, "")
    shown = words(said.out)
    for kind in ("Announcement", "Blocks", "Gradient", "Weights", "Evaluate", "Counts"):
        assert kind in shown
    for sentence in ("weighted walks that pass through", "how many nodes, training nodes, features and classes"):
        assert sentence in shown
    share = a_run.result["runs"][0]["exposure"]["inner_share"]
    assert f"{100 * share:.2f} % of the" in shown


def test_the_ledger_in_json_adds_up_to_the_run(a_run):
    for seed in (0, 1):
        said = typed("ledger", a_run.folder, "--seed", seed, "--json")
        assert (said.code, said.err) == (0, "")
        told = strictly(said.out)
        run = a_run.result["runs"][seed]
        assert (told["seed"], told["party"], told["run"]) == (seed, None, str(a_run.folder))
        assert sum(row["messages"] for row in told["traffic"]) == run["messages"]
        assert sum(row["bytes"] for row in told["traffic"]) == sum(run["bytes"].values())
        blocks = [row for row in told["traffic"] if row["kind"] == "Blocks"]
        assert sum(row["rows"] for row in blocks) == run["exchange"]["entries"]
        assert {row["sources"] for row in blocks} == {"counts, structure"}


def test_the_ledger_of_one_party(a_run):
    said = typed("ledger", a_run.folder, "--party", "party-2", "--json")
    told = strictly(said.out)["traffic"]
    assert all("party-2" in (row["from"], row["to"]) for row in told)
    book = polars.read_parquet(a_run.folder / "ledger.parquet")
    sent = book.filter((polars.col("entry") == "sent") & (polars.col("run") == "fedstruct-0"))
    mine = sent.filter((polars.col("sender") == "party-2") | (polars.col("receiver") == "party-2"))
    assert sum(row["messages"] for row in told) == mine.height
    assert sum(row["bytes"] for row in told) == int(mine["bytes"].sum())

    shown = typed("ledger", a_run.folder, "--party", "party-2")
    assert (shown.code, shown.err) == (0, "")
    assert "inner edges of party-2" in words(shown.out)


def test_the_ledger_of_a_party_or_seed_that_was_not_there(a_run):
    assert_one_sentence(
        typed("ledger", a_run.folder, "--party", "party-9"), "unknown party 'party-9': did you mean 'party-"
    )
    assert_one_sentence(typed("ledger", a_run.folder, "--party", "bank"), "choose one of ")
    assert_one_sentence(typed("ledger", a_run.folder, "--seed", "2"), "no run with seed 2; it has 0, 1")


def test_a_ledger_that_is_missing_or_damaged(a_run, here):
    (here / "part").mkdir()
    (here / "part" / "result.json").write_bytes((a_run.folder / "result.json").read_bytes())
    assert_one_sentence(typed("ledger", "part"), "part is not a run folder: it has no ledger.parquet")
    whole = (a_run.folder / "ledger.parquet").read_bytes()
    for raw in (b"", b"PAR1", whole[: len(whole) // 2]):
        (here / "part" / "ledger.parquet").write_bytes(raw)
        assert_one_sentence(typed("ledger", "part"), "ledger.parquet cannot be read")


@pytest.mark.parametrize("content", ["{}", "[]", "3", '{"runs": []}', '{"runs": [{"seed": 0}]}', '{"runs": 7}'])
def test_a_result_of_something_else(a_run, here, content):
    (here / "other").mkdir()
    (here / "other" / "ledger.parquet").write_bytes((a_run.folder / "ledger.parquet").read_bytes())
    (here / "other" / "result.json").write_text(content)
    assert_one_sentence(typed("ledger", "other"), "")


def test_a_ledger_of_something_else(a_run, here):
    (here / "other").mkdir()
    (here / "other" / "result.json").write_bytes((a_run.folder / "result.json").read_bytes())
    polars.DataFrame({"what": [1, 2]}).write_parquet(here / "other" / "ledger.parquet")
    assert_one_sentence(typed("ledger", "other"), "ledger.parquet")


# Datasets.


def test_a_damaged_dataset_is_named_and_the_others_are_listed(tmp_path):
    npz.write(planted(nodes=50), tmp_path / "graphs" / "cora.npz")
    (tmp_path / "graphs" / "citeseer.npz").write_bytes(b"PK")
    said = typed("datasets", "--json")
    assert (said.code, said.err) == (0, "")
    rows = {row["name"]: row for row in strictly(said.out)["datasets"]}
    assert rows["cora"]["nodes"] == 50
    assert "citeseer.npz cannot be read as an .npz graph: it is damaged" in rows["citeseer"]["problem"]
    shown = "".join(typed("datasets").out.split())  # a long path may be broken anywhere
    assert "citeseer.npzcannotbereadasan.npzgraph:itisdamaged" in shown


def test_datasets_are_listed_with_their_figures_and_where_they_were_found(tmp_path):
    npz.write(planted(nodes=50), tmp_path / "graphs" / "cora.npz")
    npz.write(replace(planted(nodes=40), directed=True), tmp_path / "cache" / "fedstruct" / "pubmed.npz")
    said = typed("datasets", "--json")
    assert (said.code, said.err) == (0, "")
    told = strictly(said.out)
    assert set(told) == {"datasets", "generators"}
    expected = {"consortium": 0, "planted": 0, "synthetic": 0}
    assert {row["name"]: row["parameters"]["seed"] for row in told["generators"]} == expected
    rows = {row["name"]: row for row in told["datasets"]}
    assert list(rows) == list(DATASETS)
    cora = rows["cora"]
    assert (cora["nodes"], cora["features"], cora["classes"], cora["directed"]) == (50, 32, 4, False)
    assert cora["edges"] == planted(nodes=50).edges
    assert cora["homophily"] == round(planted(nodes=50).homophily, 4)
    assert cora["found"] == str(tmp_path / "graphs" / "cora.npz")
    assert (rows["pubmed"]["found"], rows["pubmed"]["directed"]) == (
        str(tmp_path / "cache" / "fedstruct" / "pubmed.npz"),
        True,
    )
    assert rows["citeseer"]["found"] is None

    shown = typed("datasets")
    assert (shown.code, shown.err) == (0, "")
    assert all(name in shown.out for name in DATASETS)
    assert DATA_VARIABLE in words(shown.out)


def test_a_graph_without_known_labels_is_listed_too(tmp_path):
    made = planted(nodes=20)
    npz.write(replace(made, labels=np.full(20, -1)), tmp_path / "graphs" / "cora.npz")
    said = typed("datasets", "--json")
    assert said.code == 0
    assert strictly(said.out)["datasets"][0]["homophily"] is None
    assert typed("datasets").code == 0


# Help.


def test_the_version_is_printed():
    import fedstruct

    for said in (typed("--version"), started("--version")):
        assert said == (0, f"fedstruct {fedstruct.__version__}\n", "")


COMMANDS = ("demo", "run", "compare", "sweep", "tune", "partition", "ledger", "datasets", "import", "generate")


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=" ".join)
def test_help_has_an_example(command):
    short, long = (typed(*command, flag) for flag in ("-h", "--help"))
    assert short == long
    assert (short.code, short.err) == (0, "")
    assert "Example" in short.out
    assert " ".join(["fedstruct", *command]) in words(short.out.split("Example", 1)[1])


# In a process of its own.


def test_a_demonstration_shows_what_joining_brings_and_costs(here):
    said = typed("demo")
    assert (said.code, said.err) == (0, "")
    told = words(said.out)
    for part in ("border edges", "recall at 1 %", "bank-5", "gain", "The coordinator learned", "fedstruct compare"):
        assert part in told
    assert list(here.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here is always full")
@pytest.mark.parametrize(
    "how", [["ledger", "RUN"], ["ledger", "RUN", "--json"], ["datasets"], ["run", "--help"]], ids=str
)
def test_output_that_cannot_be_written_is_said_in_one_sentence(a_run, how):
    command = [sys.executable, "-m", "fedstruct", *(str(a_run.folder) if a == "RUN" else a for a in how)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (1, "fedstruct: the system stopped it: No space left on device\n")


def test_letters_that_the_output_cannot_hold_are_replaced(a_run):
    said = started("ledger", a_run.folder, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (said.code, said.err) == (0, "")
    assert "parties ? coordinator" in said.out


@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_not_called_damaged(here, graph, monkeypatch):
    (here / "mine").mkdir()
    (here / "mine" / "cora.npz").write_bytes(graph.read_bytes())
    (here / "mine" / "cora.npz").chmod(0)
    assert_one_sentence(typed("run", "mine/cora.npz"), "mine/cora.npz cannot be read: Permission denied")
    (here / "mine").chmod(0)
    assert_one_sentence(typed("run", "mine/cora.npz"), "mine/cora.npz cannot be read: Permission denied")
    monkeypatch.setenv(DATA_VARIABLE, "mine")
    assert_one_sentence(typed("datasets"), "mine/cora.npz cannot be used: Permission denied")


def test_a_reader_that_goes_away_is_no_mistake(a_run):
    command = [sys.executable, "-m", "fedstruct", "ledger", str(a_run.folder), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert said == b""
