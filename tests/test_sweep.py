"""Sweeps: every combination once, resumed where they stopped, the same table and picture however they got there."""

import shutil
import subprocess
import sys
import tomllib
from collections import namedtuple
from unittest.mock import patch

import polars
import pytest

from command import assert_one_sentence, strictly, typed, words
from fedstruct.experiments.bench import Bench
from fedstruct.experiments.plot import plot
from fedstruct.experiments.sweep import axis
from fedstruct.graph import npz
from fedstruct.graph.generate import planted

pytestmark = pytest.mark.usefixtures("here")

Swept = namedtuple("Swept", "folder told")
TYPED = ("--over", "layers_structure=1,3", "--over", "train=0.1,0.3", "--methods", "fedstruct,local-mlp", "--seeds", 2)
QUICK = ("--parties", 2, "--set", "rounds=2", "--jobs", 1)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "small.npz"
    npz.write(planted(nodes=120), path)
    return path


@pytest.fixture(scope="module")
def swept(graph, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "whole"
    said = typed("sweep", graph, *TYPED, *QUICK, "--out", folder, "--json")
    assert (said.code, said.err) == (0, "")
    return Swept(folder, strictly(said.out))


def figures(told):
    """What does not depend on when and in how many sittings it was computed."""
    return [{k: v for k, v in cell.items() if k != "cpu_seconds"} for cell in told["cells"]]


def counted():
    """Counts the runs that are really done."""
    done = []
    one = Bench.one

    def counting(self, experiment, method, seed, *more):
        done.append((experiment.method, seed))
        return one(self, experiment, method, seed, *more)

    return done, patch.object(Bench, "one", counting)


def test_every_combination_has_a_cell(swept):
    cells = [(c["at"]["layers_structure"], c["at"]["train"], c["method"]) for c in swept.told["cells"]]
    assert cells == [(h, t, m) for h in (1, 3) for t in (0.1, 0.3) for m in ("fedstruct", "local-mlp")]
    assert all(cell["seeds"] == 2 for cell in swept.told["cells"])


def test_a_cell_is_what_a_run_with_these_settings_gives(swept, graph):
    cell = next(c for c in swept.told["cells"] if c["at"] == {"layers_structure": 3, "train": 0.3})
    said = typed(
        "run", graph, "--seeds", 2, "--parties", 2, "--train", 0.3, "--set", "rounds=2", "--set", "layers_structure=3",
        "--json",
    )  # fmt: skip
    alone = strictly(said.out)
    assert (cell["test_accuracy"], cell["macro_f1"]) == (alone["test_accuracy"], alone["macro_f1"])


def test_a_method_without_the_option_trains_once_and_stands_at_every_value(swept):
    local = [c for c in swept.told["cells"] if c["method"] == "local-mlp"]
    assert {c["folder"] for c in local} == {"local-mlp,train=0.1", "local-mlp,train=0.3"}
    by_share = {c["at"]["train"]: [d for d in figures(swept.told) if d["folder"] == c["folder"]] for c in local}
    assert all(len({str(d["test_accuracy"]) for d in cells}) == 1 for cells in by_share.values())


def test_each_experiment_has_a_run_folder(swept):
    folders = {c["folder"] for c in swept.told["cells"]}
    names = {p.name for p in swept.folder.iterdir()}
    assert names == {"config.toml", "result.json", "sweep.svg", *folders}
    for name in folders:
        assert len(strictly((swept.folder / name / "result.json").read_text())["runs"]) == 2
        assert typed("ledger", swept.folder / name, "--seed", 1).code == 0
    config = tomllib.loads((swept.folder / "config.toml").read_text())
    assert config["over"] == {"layers_structure": [1, 3], "train": [0.1, 0.3]}


def test_a_finished_sweep_is_not_done_again(swept, graph, here):
    shutil.copytree(swept.folder, here / "copy")
    done, counting = counted()
    with counting:
        said = typed("sweep", graph, *TYPED, *QUICK, "--out", "copy", "--json")
    assert done == []
    again = strictly(said.out)
    assert again["cells"] == swept.told["cells"]
    assert (here / "copy" / "sweep.svg").read_bytes() == (swept.folder / "sweep.svg").read_bytes()


def test_a_sweep_that_was_stopped_goes_on_with_what_is_missing(swept, graph, here):
    done, counting = counted()

    def stop(self, *arguments):
        if len(done) == 5:
            raise KeyboardInterrupt
        return wrapped(self, *arguments)

    with counting:
        wrapped = Bench.one
        with patch.object(Bench, "one", stop):
            said = typed("sweep", graph, *TYPED, *QUICK, "--out", "part")
        assert said.code == 130
        assert "5 of 12 runs are in part" in said.err
        first = len(done)
        said = typed("sweep", graph, *TYPED, *QUICK, "--out", "part", "--json")
    assert said.code == 0
    assert (first, len(done)) == (5, 12)
    assert figures(strictly(said.out)) == figures(swept.told)
    assert (here / "part" / "sweep.svg").read_bytes() == (swept.folder / "sweep.svg").read_bytes()
    for name in {c["folder"] for c in swept.told["cells"]}:
        one, two = (polars.read_parquet(f / name / "ledger.parquet") for f in (here / "part", swept.folder))
        order = ["run", "step", "sender", "receiver", "kind", "entry"]
        assert one.sort(order).equals(two.sort(order))
        one, two = (
            sorted((f / name / "history.jsonl").read_text().splitlines()) for f in (here / "part", swept.folder)
        )
        assert one == two


def test_a_sweep_that_was_stopped_before_its_first_run_has_saved_nothing(graph, here):
    with patch.object(Bench, "one", side_effect=KeyboardInterrupt):
        said = typed("sweep", graph, *TYPED, *QUICK, "--out", "none")
    assert said == (130, "", "fedstruct: stopped; nothing was saved\n")
    assert list(here.iterdir()) == []


def test_what_was_not_saved_in_full_is_done_again(swept, graph, here):
    shutil.copytree(swept.folder, here / "torn")
    (here / "torn" / "local-mlp,train=0.1" / "result.json").unlink()
    done, counting = counted()
    with counting:
        said = typed("sweep", graph, *TYPED, *QUICK, "--out", "torn", "--json")
    assert sorted(done) == [("local-mlp", 0), ("local-mlp", 1)]
    assert figures(strictly(said.out)) == figures(swept.told)


DAMAGED = [b"\xff", b"[]", b"{}", b'{"runs": [{"seed": 0}]}']


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((name, content) for name in ("result.json", "history.jsonl", "ledger.parquet") for content in DAMAGED),
        ("result.json", b""),
        ("ledger.parquet", b""),
        ("history.jsonl", None),
        ("ledger.parquet", None),
        ("config.toml", b"\xff"),
    ],
)
def test_a_damaged_run_folder_is_one_sentence(name, content, swept, graph, here):
    shutil.copytree(swept.folder, here / "damaged")
    file = here / "damaged" / "local-mlp,train=0.1" / name
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    said = typed("sweep", graph, *TYPED, *QUICK, "--out", "damaged")
    assert_one_sentence(said, "damaged/local-mlp,train=0.1 holds")


def test_two_processes_do_not_sweep_into_one_folder(swept, graph, here):
    shutil.copytree(swept.folder, here / "busy")
    program = (
        "import sys; from pathlib import Path; from fedstruct.experiments.folder import Folder\n"
        "folder = Folder(Path('busy'), '', Path('busy/config.toml').read_text(), resume=True)\n"
        "with folder.held(): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        said = typed("sweep", graph, *TYPED, *QUICK, "--out", "busy")
        assert_one_sentence(said, "another process is at work in busy; wait for its end, or give another --out")
        other.kill()
    assert typed("sweep", graph, *TYPED, *QUICK, "--out", "busy").code == 0, "a process that was killed holds nothing"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("parties=5,10", (5, 10)),
        ("lr=1e-3,0.1", (1e-3, 0.1)),
        ("prune_rule=block,none", ("block", "none")),
        ("sage_hidden=[8],[8,4]", ([8], [8, 4])),
        ("partition=random, owners.txt", ("random", "owners.txt")),
        ("parties=5,5", (5,)),
    ],
)
def test_values_are_read_as_they_are_typed(text, values):
    assert axis(text).values == values


def test_words_on_the_axis(graph, here):
    said = typed("sweep", graph, "--over", "class_weight=none,balanced", "--method", "fedsgd-mlp", *QUICK, "--out", "w")
    assert (said.code, said.err) == (0, "")
    assert "balanced" in words(said.out)
    assert "the picture is w/sweep.svg" in words(said.out)


def test_the_same_figures_give_the_same_picture(swept, here):
    for name in ("one.svg", "two.svg"):
        plot(swept.told, here / name)
    assert (here / "one.svg").read_bytes() == (here / "two.svg").read_bytes()
    assert b"<dc:date>" not in (here / "one.svg").read_bytes()


def test_a_folder_of_another_sweep_is_refused(swept, graph):
    said = typed("sweep", graph, "--over", "layers_structure=1,2", *QUICK, "--out", swept.folder)
    assert_one_sentence(said, "holds runs of another config.toml; give another --out")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--over", "layers_structur=1"], "unknown key 'layers_structur': did you mean 'layers_structure'?"),
        (["--over", "partys=1"], "unknown key 'partys': did you mean 'parties'?"),
        (["--over", "parties"], "--over takes KEY=v1,v2,…"),
        (["--over", "parties="], "--over takes KEY=v1,v2,…"),
        (["--over", "parties=1,2", "--over", "parties=3"], "names a key twice"),
        (["--over", "parties=1", "--over", "prune=3", "--over", "keep=3"], "twice at most"),
        (["--over", "parties=1,2", "--parties", "3"], "'parties' is swept over and given as well"),
        (["--over", "prune=1,2", "--set", "prune=3"], "'prune' is swept over and given as well"),
        (["--over", "parties=2,0"], "'parties' is 0"),
        (["--over", "prune=2,many"], "'prune' is 'many'"),
        (["--over", "partition=random,randm"], "unknown partition 'randm'"),
        (["--over", "prune=1,2", "--methods", "local-mlp"], "unknown key 'prune'"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(arguments, expected, graph, here):
    assert_one_sentence(typed("sweep", graph, *arguments), expected)
    assert list(here.iterdir()) == []
