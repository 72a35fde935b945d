"""The history: written while a run goes on, so that a run that is killed keeps its rounds."""

import subprocess
import sys
import time
from unittest.mock import patch

import pytest

from command import assert_one_sentence, strictly, typed
from fedstruct.experiments.history import History, Written
from fedstruct.federation.watch import Watch, Watches
from fedstruct.graph import npz
from fedstruct.graph.generate import planted

pytestmark = pytest.mark.usefixtures("here")

QUICK = ("--parties", "3", "--seeds", "2", "--set", "rounds=4")


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "small.npz"
    npz.write(planted(nodes=120), path)
    return path


def lines(path):
    return [strictly(line) for line in path.read_text().splitlines()]


def test_each_round_is_in_the_file_as_soon_as_it_is_done(here):
    history = History(here / "history.jsonl")
    one, two = history.watch(0), history.watch(1)
    one.advance(1, 2)
    assert not history.path.exists(), "a hop without figures is no round"
    told = []
    for watch, seed, done in ((one, 0, 1), (two, 1, 1), (one, 0, 2)):
        watch.advance(done, 2, loss=1 / done)
        told.append({"seed": seed, "round": done, "loss": 1 / done})
        assert lines(history.path) == told
    history.finish(0, [{"round": 1, "loss": 1.0}, {"round": 2, "loss": 0.5}])
    two.advance(2, 2, loss=float("nan"))
    assert lines(history.path) == [told[0], told[2], told[1], {"seed": 1, "round": 2, "loss": None}]


def test_what_a_killed_run_left_is_replaced_by_the_run_that_is_done_again(here):
    old = History(here / "history.jsonl")
    for seed in (0, 1):
        old.watch(seed).advance(1, 2, loss=seed)
    with old.path.open("a") as file:
        file.write('{"seed": 1, "rou')
    again = History(old.path)
    again.read({"0"})
    again.watch(1).advance(1, 2, loss=7)
    assert lines(old.path) == [{"seed": 0, "round": 1, "loss": 0}, {"seed": 1, "round": 1, "loss": 7}]


def test_several_watches_see_the_same():
    seen = []

    class Noted(Watch):
        def advance(self, done, of, **figures):
            seen.append((done, of, figures))

    Watches(Noted(), Watch(), Noted()).advance(3, 4, loss=0.5)
    assert seen == [(3, 4, {"loss": 0.5})] * 2


def test_runs_that_are_killed_keep_their_rounds(graph, here):
    """In processes of their own, too."""
    typing = ("run", graph, "--parties", "2", "--seeds", "2", "--set", "rounds=1000000", "--jobs", "2", "--out", "run")
    command = [sys.executable, "-m", "fedstruct", *map(str, typing)]
    history = here / "run" / "history.jsonl"
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            until = time.monotonic() + 120
            while not (history.exists() and history.read_bytes().count(b"\n") > 2):
                assert process.poll() is None, process.stderr.read()
                assert time.monotonic() < until
                time.sleep(0.05)
        finally:  # a test that fails would wait for a million rounds
            process.kill()
    *whole, _ = history.read_text().split("\n")
    for seed in (0, 1):
        rounds = [line["round"] for line in map(strictly, whole) if line["seed"] == seed]
        assert rounds == list(range(1, len(rounds) + 1))
    assert_one_sentence(typed("report", "run"), "run is not a run folder: it has no result.json")


@pytest.mark.parametrize("command", ["run", "compare", "sweep"])
def test_who_stops_a_run_keeps_its_rounds_and_is_told_so(command, graph, here):
    more = {"run": (), "compare": ("--methods", "fedsgd-mlp", "--jobs", 1),
            "sweep": ("--over", "lr=0.1", "--method", "fedsgd-mlp", "--jobs", 1)}[command]  # fmt: skip
    wrapped = Written.advance

    def stop(self, done, of, **figures):
        wrapped(self, done, of, **figures)
        if figures and done == 3:
            raise KeyboardInterrupt

    with patch.object(Written, "advance", stop):
        said = typed(command, graph, *QUICK, *more, "--out", "stopped")
    assert (said.code, said.out) == (130, "")
    assert "stopped in" in said.err or "are in stopped" in said.err
    (history,) = (here / "stopped").rglob("history.jsonl")
    assert [line["round"] for line in lines(history)] == [1, 2, 3]
    if command == "sweep":
        said = typed(command, graph, *QUICK, *more, "--out", "stopped", "--json")
        assert said.code == 0
        assert [(line["seed"], line["round"]) for line in lines(history)] == [
            (s, t) for s in (0, 1) for t in range(1, 5)
        ]
