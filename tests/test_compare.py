"""Methods side by side: the same parts for each, paired figures, and a folder that holds every run."""

import shutil
import tomllib
from collections import namedtuple
from dataclasses import replace
from fnmatch import fnmatchcase
from unittest.mock import patch

import numpy as np
import polars
import pytest

from command import assert_one_sentence, started, strictly, typed, words
from fedstruct.experiments.bench import Bench
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.presets import PRESETS, recipe, tables
from fedstruct.experiments.show import out
from fedstruct.experiments.show_study import comparison_table
from fedstruct.experiments.study import chosen
from fedstruct.graph import npz
from fedstruct.graph.generate import planted
from fedstruct.methods import METHODS, option_names

pytestmark = pytest.mark.usefixtures("here")

METHODS_HERE = "fedsgd-mlp,fedstruct,fedstruct-degree,central-mlp,local-mlp"
QUICK = ("--parties", "3", "--set", "rounds=3", "--set", "layers_structure=3", "--set", "structure_dim=8")

Compared = namedtuple("Compared", "folder said told")


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "small.npz"
    npz.write(planted(nodes=150), path)
    return path


@pytest.fixture(scope="module")
def compared(graph, tmp_path_factory):
    """A comparison of five methods over three seeds, with all that it left."""
    folder = tmp_path_factory.mktemp("compare") / "first"
    said = typed(
        "compare", graph, "--methods", METHODS_HERE, "--seeds", 3, *QUICK, "--jobs", 1, "--out", folder, "--json"
    )
    assert (said.code, said.err) == (0, "")
    return Compared(folder, said, strictly(said.out))


def figures(run):
    return {k: v for k, v in run.items() if k not in ("seconds", "cpu_seconds", "reused")}


def test_the_methods_are_told_in_the_order_asked_for(compared):
    assert [row["method"] for row in compared.told["methods"]] == METHODS_HERE.split(",")
    assert (compared.told["parties"], compared.told["partition"]) == (3, "random")
    for row in compared.told["methods"]:
        assert [run["seed"] for run in row["runs"]] == [0, 1, 2]


def test_the_difference_is_paired_by_seed(compared):
    """Recomputed as anybody would by hand: n differences, their mean, and their deviation over √n."""
    first, *others = compared.told["methods"]
    assert first["difference"] is None
    base = [run["test_accuracy"] for run in first["runs"]]
    for row in others:
        d = [run["test_accuracy"] - b for run, b in zip(row["runs"], base, strict=True)]
        average = sum(d) / 3
        error = (sum((x - average) ** 2 for x in d) / 2 / 3) ** 0.5
        assert row["difference"]["mean"] == pytest.approx(average, abs=1e-15)
        assert row["difference"]["standard_error"] == pytest.approx(error, abs=1e-15)


def test_means_are_those_of_the_runs(compared):
    for row in compared.told["methods"]:
        accuracy = [run["test_accuracy"] for run in row["runs"]]
        assert row["test_accuracy"]["mean"] == pytest.approx(np.mean(accuracy))
        assert row["test_accuracy"]["std"] == pytest.approx(np.std(accuracy, ddof=1))
        assert row["bytes"] == pytest.approx(np.mean([sum(run["bytes"].values()) for run in row["runs"]]))
        assert row["cpu_seconds"] == pytest.approx(np.mean([sum(run["cpu_seconds"].values()) for run in row["runs"]]))


def test_each_method_has_the_runs_that_it_has_alone(compared, graph):
    for row in compared.told["methods"]:
        options = [f"--set={k}={v}" for k, v in (("rounds", 3), ("layers_structure", 3), ("structure_dim", 8))]
        known = [o for o in options if o.split("=")[1] in option_names(row["method"])]
        said = typed("run", graph, "--method", row["method"], "--parties", 3, "--seeds", 3, *known, "--json")
        assert (said.code, said.err) == (0, "")
        alone = strictly(said.out)
        assert [figures(run) for run in alone["runs"]] == [figures(run) for run in row["runs"]]
        assert alone["options"] == row["options"]


def test_it_is_said_which_runs_reused_an_exchange(compared):
    told = {row["method"]: [run.get("reused") for run in row["runs"]] for row in compared.told["methods"]}
    assert told["fedstruct"] == [False] * 3
    assert told["fedstruct-degree"] == [True] * 3
    assert told["fedsgd-mlp"] == [None] * 3


def test_it_is_said_what_leaves_a_party(compared):
    leaves = {row["method"]: row["leaves"] for row in compared.told["methods"]}
    assert leaves["local-mlp"] == {"coordinator": "counts, labels", "peers": "nothing"}
    assert leaves["fedsgd-mlp"] == {"coordinator": "everything", "peers": "nothing"}
    assert leaves["fedstruct"] == {"coordinator": "everything", "peers": "counts, structure"}
    assert [row["method"] for row in compared.told["methods"] if row["pooled"]] == ["central-mlp"]


def test_the_folder_holds_a_run_folder_for_each_method(compared):
    names = METHODS_HERE.split(",")
    assert {p.name for p in compared.folder.iterdir()} == {"config.toml", "result.json", *names}
    assert strictly((compared.folder / "result.json").read_text()).keys() == compared.told.keys()
    config = tomllib.loads((compared.folder / "config.toml").read_text())
    assert (config["methods"], config["seeds"], config["options"]["rounds"]) == (names, 3, 3)
    for name in names:
        said = typed("ledger", compared.folder / name, "--seed", 2, "--json")
        assert (said.code, said.err) == (0, "")
        assert strictly(said.out)["traffic"]
        book = polars.read_parquet(compared.folder / name / "ledger.parquet")
        result = strictly((compared.folder / name / "result.json").read_text())
        sent = book.filter(polars.col("entry") == "sent")
        assert int(sent["bytes"].sum()) == sum(sum(run["bytes"].values()) for run in result["runs"])


def test_the_configuration_of_a_method_gives_its_runs_again(compared):
    said = typed("run", "--config", compared.folder / "fedstruct-degree" / "config.toml", "--json")
    row = next(r for r in compared.told["methods"] if r["method"] == "fedstruct-degree")
    assert [figures(run) for run in strictly(said.out)["runs"]] == [figures(run) for run in row["runs"]]


def test_two_processes_tell_what_one_tells(compared, graph, here):
    said = started("compare", graph, "--methods", METHODS_HERE, "--seeds", 3, *QUICK, "--jobs", 2, "--json")
    assert (said.code, said.err) == (0, "")
    same(compared.told, strictly(said.out))


def same(one, two):
    """Two comparisons tell the same, but for what is measured."""
    for left, right in zip(one["methods"], two["methods"], strict=True):
        measured = ("runs", "cpu_seconds")
        assert {k: v for k, v in left.items() if k not in measured} == {
            k: v for k, v in right.items() if k not in measured
        }
        assert [figures(run) for run in left["runs"]] == [figures(run) for run in right["runs"]]


def stopping(after):
    """Stops the runs like Ctrl-C after so many, and counts those that are done."""
    done, one = [], Bench.one

    def counted(self, experiment, method, seed, *more):
        if len(done) == after:
            raise KeyboardInterrupt
        done.append((experiment.method, seed))
        return one(self, experiment, method, seed, *more)

    return done, patch.object(Bench, "one", counted)


@pytest.mark.parametrize("after", [1, 7])
def test_a_comparison_that_was_stopped_goes_on_with_what_is_missing(after, compared, graph, here):
    typing = ("compare", graph, "--methods", METHODS_HERE, "--seeds", 3, *QUICK, "--jobs", 1, "--out", "part part")
    first, stop = stopping(after)
    with stop:
        said = typed(*typing)
    assert said.code == 130
    assert f"{after} of 15 runs are in part part; the same with --out 'part part' goes on" in said.err
    second, counting = stopping(None)
    with counting:
        said = typed(*typing, "--json")
    assert (said.code, said.err) == (0, "")
    assert len(second) == 15 - after
    assert not set(first) & set(second)
    same(strictly(said.out), compared.told)
    same(strictly((here / "part part" / "result.json").read_text()), compared.told)


def test_a_finished_comparison_is_not_done_again_and_another_one_is_refused(compared, graph, here):
    shutil.copytree(compared.folder, here / "copy")
    typing = ("compare", graph, "--methods", METHODS_HERE, "--seeds", 3, *QUICK, "--jobs", 1, "--out", "copy")
    done, counting = stopping(None)
    with counting:
        same(strictly(typed(*typing, "--json").out), compared.told)
    assert done == []
    for more in (("--seeds", 2), ("--set", "rounds=4"), ("--methods", "fedsgd-mlp,fedstruct")):
        assert_one_sentence(typed(*typing, *more), "copy holds runs of another config.toml; give another --out")


def test_a_comparison_that_was_stopped_before_its_first_run_has_saved_nothing(graph, here):
    _, stop = stopping(0)
    with stop:
        said = typed("compare", graph, "--methods", METHODS_HERE, *QUICK, "--jobs", 1, "--out", "none")
    assert said == (130, "", "fedstruct: stopped; nothing was saved\n")
    assert list(here.iterdir()) == []


def test_what_people_see(graph, compared):
    said = typed("compare", graph, "--methods", "fedstruct,central-mlp", *QUICK, "--jobs", 1, "--out", "seen")
    assert (said.code, said.err) == (0, "")
    shown = words(said.out)
    assert "everything to the coordinator, counts, structure to peers: fedstruct" in shown
    assert "a bound" in shown
    assert "fedstruct ledger seen/fedstruct" in shown
    row = next(r for r in compared.told["methods"] if r["method"] == "fedstruct")
    assert f"{100 * row['runs'][0]['test_accuracy']:.2f}" in shown


@pytest.mark.parametrize("methods", [4, 5])
@pytest.mark.parametrize("two_classes", [False, True])
@pytest.mark.parametrize("longest", ["local-mlp", "fedstruct-propagated-features"])
def test_80_columns_show_every_figure_and_the_budget(methods, two_classes, longest, compared, monkeypatch, capsys):
    """The widest figures that there can be, of which none may be cut or broken."""
    wide = {"test_accuracy": {"mean": 0.7417, "std": 0.1886}, "bytes": 197_500, "cpu_seconds": 123.45}
    wide |= {"difference": {"mean": -0.1083, "standard_error": 0.1375}, "macro_f1": {"mean": 0.7128, "std": None}}
    if two_classes:
        wide |= {"auprc": {"mean": 0.9332, "std": None}, "recall": {"mean": 0.0172, "std": None}}
    told = compared.told | {"methods": [row | wide for row in compared.told["methods"]][:methods]}
    told["methods"][-1] |= {"method": longest}
    monkeypatch.setattr(out, "width", 80)
    comparison_table(told | ({"recall_at": "12.5%"} if two_classes else {}))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    table = lines[: lines.index("")]
    figures = ["74.17 ± 18.86", "-10.83 ± 13.75", "71.28", "123.45", "197.5 kB"]
    rows = [line for line in table if figures[0] in line]
    assert len(rows) == methods
    assert all(figure in row for figure in figures + ["93.32", "1.72"] * two_classes for row in rows)
    said = words(" ".join(table))
    assert all(word in said for word in ("accuracy", "difference", "macro", "CPU", "sent"))
    assert ("@12.5%" in said) is two_classes
    assert "…" not in said
    for part in longest.split("-"):
        assert part in said


def test_two_classes_have_auprc_and_recall(here):
    npz.write(planted(nodes=150, classes=2), here / "two.npz")
    typing = ("two.npz", "--methods", "fedsgd-mlp,local-mlp", "--parties", "3", "--set", "rounds=2", "--jobs", "1")
    told = strictly(typed("compare", *typing, "--recall-at", 10, "--json").out)
    assert told["recall_at"] == 10
    for row in told["methods"]:
        assert 0 < row["auprc"]["mean"] <= 1
        assert 0 < row["recall"]["mean"] <= 10 / 40, "ten alerts find at most ten of about sixty"
    shown = typed("compare", *typing, "--recall-at", 10).out
    assert "recall" in shown
    assert "@10" in shown


def test_all_is_every_method(graph):
    said = typed(
        "compare", graph, "--methods", "all", "--parties", 2, "--jobs", 1, "--json",
        *(f"--set={o}" for o in ("rounds=1", "layers_structure=2", "return_steps=2", "sage_hidden=[4]")),
    )  # fmt: skip
    assert (said.code, said.err) == (0, "")
    assert [row["method"] for row in strictly(said.out)["methods"]] == list(METHODS)


def test_all_the_others_after_a_first_one():
    assert chosen("local-mlp, all") == ["local-mlp", *(m for m in METHODS if m != "local-mlp")]


MISTAKES = {
    "unknown method": (
        ["--methods", "fedstruct,fedsgd-mpl"],
        "unknown method 'fedsgd-mpl': did you mean 'fedsgd-mlp'?",
    ),
    "no method": (["--methods", ","], "unknown method ','"),
    "an option that none has": (
        ["--methods", "local-mlp,fedsgd-mlp", "--set", "runds=3"],
        "unknown option 'runds': did you mean 'rounds'?",
    ),
    "an option of other methods": (["--methods", "local-mlp", "--set", "prune=3"], "unknown option 'prune'"),
    "a wrong value": (["--methods", "all", "--set", "rounds=0"], "'rounds' is 0"),
    "too much to train on": (
        ["--methods", "fedstruct", "--train", "0.6", "--val", "0.4"],
        "train = 0.6 and validation = 0.4 do not leave a test set",
    ),
    "a share that is none": (["--methods", "fedstruct", "--train", "2"], "'train' is 2.0"),
    "no alerts": (
        ["--methods", "fedstruct", "--recall-at", "0"],
        "'recall_at' is '0', but it should be a whole number from 1, or a share such as 1%",
    ),
    "an unknown preset": (["--methods", "all", "--preset", "coed"], "unknown preset 'coed': did you mean 'code'?"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence_and_leaves_nothing(mistake, graph, here):
    arguments, expected = MISTAKES[mistake]
    assert_one_sentence(typed("compare", graph, *arguments), expected)
    assert list(here.iterdir()) == []


def test_a_training_that_diverges_keeps_what_was_done(graph, here):
    far = ["--set", "optimizer=sgd", "--set", "weight_decay=900", "--set", "lr=1000", "--set", "rounds=9"]
    said = typed("compare", graph, "--methods", "fedsgd-mlp,local-mlp", *far, "--parties", 2, "--jobs", 1)
    assert_one_sentence(said, "fedsgd-mlp, seed 0: training diverged")
    assert list((here / "runs").iterdir()) == []


# The split.


@pytest.mark.parametrize("command", ["run", "compare"])
def test_the_shares_of_the_split_are_those_asked_for(command, graph, here):
    more = ["--methods", "local-mlp", "--jobs", "1"] if command == "compare" else ["--method", "local-mlp"]
    typing = [graph, *more, "--parties", 2, "--set", "rounds=1", "--train", "0.2", "--val", "0.3", "--out", "here"]
    assert typed(command, *typing, "--json").code == 0
    folder = here / "here" / ("local-mlp" if command == "compare" else "")
    config = tomllib.loads((folder / "config.toml").read_text())
    assert (config["train"], config["validation"]) == (0.2, 0.3)
    parts = Experiment.of(config)
    assert (parts.train, parts.validation) == (0.2, 0.3)


def test_a_graph_with_a_split_of_its_own_takes_no_shares(here):
    made = planted(nodes=60)
    npz.write(replace(made, split=np.arange(60).astype(np.int8) % 3 + 1), here / "split.npz")
    assert_one_sentence(typed("run", "split.npz", "--parties", 2, "--train", "0.2"), "comes with a split of its own")


# Presets.


def test_a_preset_goes_to_every_method_as_far_as_it_has_the_options():
    for method in METHODS:
        for preset in PRESETS:
            assert recipe(preset, "cora", method).keys() <= option_names(method)
            Experiment(dataset="cora", method=method, preset=preset).build_method()
    assert recipe("code", "cora", "fedsgd-mlp")["dropout"] == 0.7
    assert "lr_structure" not in recipe("code", "cora", "fedsgd-mlp")


def test_every_option_of_a_preset_belongs_to_a_method_that_gets_it():
    for preset in PRESETS:
        for dataset, row in tables(preset).items():
            methods = [n for n, value in row.items() if isinstance(value, dict)]
            for name in row.keys() - methods:
                assert any(name in recipe(preset, dataset, method) for method in METHODS)
            for pattern in methods:
                matched = [m for m in METHODS if fnmatchcase(m, pattern)]
                assert matched
                assert all(row[pattern].keys() <= option_names(m) for m in matched)


def test_the_later_table_of_a_preset_goes_over_the_earlier():
    assert recipe("code", "cora", "fedsgd-mlp")["rounds"] != recipe("code", "cora", "fedsgd-dgcn")["rounds"]
    assert recipe("code", "pubmed", "fedstruct-hop2vec-mlp")["rounds"] == 50, "an MLP over S is no plain MLP"
    assert recipe("ours", "nobody-knows") == {}
