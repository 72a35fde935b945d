"""FedStruct by propagation as an experiment: its names, its options, what it leaves and what it says of itself."""

import numpy as np
import pytest

import fedstruct as fs
from command import assert_one_sentence, strictly, typed, words
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.presets import recipe
from fedstruct.experiments.tune import Tuning
from fedstruct.graph import npz
from fedstruct.graph.generate import planted
from fedstruct.methods import made, resolved

pytestmark = pytest.mark.usefixtures("here")

QUICK = ("--parties", "3", "--set", "rounds=3", "--set", "layers_structure=2")


@pytest.fixture
def graph(here):
    npz.write(planted(nodes=120, seed=2), here / "small.npz")
    return here / "small.npz"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (("--set", "structure=propagated"), "fedstruct-propagated"),
        (("--set", "structure=propagated", "--set", "carry=features"), "fedstruct-propagated-features"),
        (("--method", "fedstruct-propagated", "--set", "carry=features"), "fedstruct-propagated-features"),
        (
            (
                "--method",
                "fedstruct-propagated-features",
            ),
            "fedstruct-propagated-features",
        ),
        (
            (
                "--set",
                "structure=exchanged",
            ),
            "fedstruct",
        ),
    ],
)
def test_one_method_by_name_or_by_option(graph, given, name):
    said = typed("run", graph, *QUICK, *given, "--json")
    assert (said.code, said.err) == (0, "")
    result = strictly(said.out)
    assert result["method"] == name
    assert result["options"]["structure"] == ("exchanged" if name == "fedstruct" else "propagated")
    [run] = result["runs"]
    assert ("sums" not in run) == (run["exposure"] is not None) == (name == "fedstruct")


@pytest.mark.parametrize("preset", ["ours", "paper", "code"])
def test_presets_know_it_by_its_full_name(preset):
    short = Experiment(dataset="cora", preset=preset, options={"structure": "propagated", "carry": "features"})
    full = Experiment(dataset="cora", preset=preset, method="fedstruct-propagated-features")
    assert short.method == full.method
    assert short.build_method().options == full.build_method().options
    assert "prune" not in recipe(preset, "cora", full.method)


def test_in_python():
    method = fs.methods.FedStruct(structure="propagated", carry="features", rounds=2)
    assert isinstance(method, fs.methods.PropagatedFedStruct)
    assert method.options == made("fedstruct-propagated-features", rounds=2).options
    assert type(fs.methods.FedStruct(structure="exchanged")) is fs.methods.FedStruct
    assert resolved("fedstruct-degree", {"structure": "propagated"}) == "fedstruct-degree"


def test_a_name_may_be_given_with_what_it_stands_for():
    known = {
        "fedstruct-degree": {"features": "degree", "structure": "exchanged"},
        "fedstruct-propagated": {"structure": "propagated", "carry": "structure"},
        "fedstruct-propagated-features": {"structure": "propagated", "carry": "features"},
    }
    for name, options in known.items():
        assert made(name, **options).options == made(name).options


def test_what_a_run_says_of_its_sums(graph, here):
    said = typed("run", graph, "--method", "fedstruct-propagated", *QUICK, "--out", "run", "--json")
    [run] = strictly(said.out)["runs"]
    sums = run["sums"]
    assert sums["times"] == {"forward": 2 * 4, "backward": 2 * 3}
    assert [p["party"] for p in sums["parties"]] == ["party-1", "party-2", "party-3"]
    told = [way for p in sums["parties"] for ways in p["towards"].values() for way in ways.values()]
    assert all(sums[over] == sum(way[over] for way in told) > 0 for over in ("one", "two", "more"))
    book = typed("ledger", "run", "--json")
    sent = {row["kind"]: row for row in strictly(book.out)["traffic"]}
    forward = sum(sum(ways["forward"].values()) for p in sums["parties"] for ways in p["towards"].values())
    assert sent["Sums"]["rows"] == forward * sums["times"]["forward"]
    for party in ((), ("--party", "party-2"), ("--party", "coordinator")):
        plain = words(typed("ledger", "run", *party).out)
        assert "over a single node" in plain
        assert "forward 8 times, backward 6 times" in plain
        assert ("party-2's peers were told" in plain) == (party == ("--party", "party-2"))
    assert "over a single node" in words(typed("run", graph, "--method", "fedstruct-propagated", *QUICK).out)


def test_with_larger_groups_no_sum_is_over_a_single_node(graph):
    said = typed("run", graph, "--method", "fedstruct-propagated", *QUICK, "--set", "min_group=2", "--json")
    sums = strictly(said.out)["runs"][0]["sums"]
    assert (sums["one"], sums["two"] > 0) == (0, True)
    said = typed("run", graph, "--method", "fedstruct-propagated", *QUICK, "--set", "min_group=99")
    assert "were told no sum: no border edge counts" in words(said.out)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("teleport=1", "option 'teleport' is 1, but it should be less than 1"),
        ("carry=everything", "'structure' or 'features'"),
        ("min_group=0", "option 'min_group' is 0"),
        ("prune=30", "prunes nothing; leave out 'prune'"),
        ("free=false", "nothing to carry; take carry = features"),
    ],
)
def test_bad_options_are_one_sentence(graph, setting, expected):
    assert_one_sentence(typed("run", graph, "--set", "structure=propagated", "--set", setting), expected)


def test_options_of_propagation_without_it_are_one_sentence(graph):
    said = typed("run", graph, "--set", "carry=features")
    assert_one_sentence(said, "'carry' is for propagated structure; set structure = propagated")


def test_compare_takes_both_ways_side_by_side(graph):
    said = typed(
        "compare", graph, "--methods", "fedstruct,fedstruct-propagated,fedstruct-propagated-features", *QUICK,
        "--jobs", "1", "--set", "min_group=2", "--json",
    )  # fmt: skip
    assert (said.code, said.err) == (0, "")
    compared = {m["method"]: m for m in strictly(said.out)["methods"]}
    assert list(compared) == ["fedstruct", "fedstruct-propagated", "fedstruct-propagated-features"]
    assert [m["options"].get("min_group") for m in compared.values()] == [None, 2, 2]
    assert compared["fedstruct-propagated"]["leaves"]["peers"] == "everything"


@pytest.mark.parametrize("method", ["fedstruct-propagated", "fedstruct-propagated-features"])
def test_tune_draws_only_what_makes_sense(graph, method):
    tuning = Tuning(Experiment(dataset=str(graph), method=method, parties=2), budget=20)
    drawn = [c for c in tuning.candidates if len(c) > 1]
    assert len(drawn) >= 12
    assert len({c["teleport"] for c in drawn}) > 1
    assert {c["free"] for c in drawn} == ({True} if method == "fedstruct-propagated" else {True, False})
    for candidate in drawn:
        made(method, **candidate)


def test_two_seeds_and_two_processes(graph):
    """The option travels to worker processes as it is."""
    results = [
        strictly(typed("run", graph, *QUICK, "--set", "structure=propagated", "--seeds", "2", *jobs, "--json").out)
        for jobs in ((), ("--jobs", "2"))
    ]
    assert results[0]["test_accuracy"] == results[1]["test_accuracy"]
    assert np.isfinite(results[0]["test_accuracy"]["mean"])
