"""How much memory a run will need: told before it starts, and rather too much than too little."""

import os
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command import assert_one_sentence, started, typed
from fedstruct.errors import FedstructError
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.estimate import Size, check, held, parsed
from fedstruct.methods import METHODS, made

BASE = Size(10_000, 100_000, 8, 50, 500_000, False, 5, 10, 0.1)


@pytest.fixture(autouse=True)
def cached(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_run_that_would_need_too_much_is_refused_before_anything_is_made(cached):
    said = typed("run", "synthetic:n=1e7", "--method", "fedstruct-propagated", "--memory", "4GB")
    assert_one_sentence(said, "more than the 4 GB of --memory: ")
    assert not cached.exists(), "the graph was made for nothing"


def test_algorithm_3_is_told_to_be_what_needs_most():
    said = typed("run", "synthetic:n=1e6", "--method", "fedstruct", "--memory", "8GB")
    assert_one_sentence(said, "for the entries of Ā and ")
    assert "take --method fedstruct-propagated" in said.err


@pytest.mark.parametrize("amount", ["", "lots", "-4GB", "4 apples", "nan", "1e-3GB", "4.5.6GB", "4", "9999999999GB"])
def test_an_amount_that_is_none_is_one_sentence(amount):
    assert_one_sentence(typed("run", "synthetic:n=300", "--memory", amount), "--memory takes an amount such as 4GB")


def test_each_process_has_its_share():
    experiment = Experiment(dataset="synthetic:n=1e5", method="fedstruct-propagated", seeds=8)
    method, size = experiment.build_method(), Size.asked(experiment)
    needs = sum(held(method, size).values())
    check(method, size, int(needs) + 1)
    with pytest.raises(FedstructError, match="would need about"):
        check(method, size, int(needs) - 1)
    amount = f"{needs / 1e9 * 2:.3f}GB"
    said = typed("run", "synthetic:n=1e5", "--method", method.name, "--seeds", 8, "--jobs", 4, "--memory", amount)
    assert_one_sentence(said, "would need about")


def test_a_run_needs_about_what_was_estimated(tmp_path):
    """A process of its own, so that its peak is its own."""
    for method in ("fedstruct-propagated", "fedstruct-propagated-features", "fedsgd-dgcn"):
        arguments = ("synthetic:n=1e5,features=128", "--method", method, "--set", "rounds=2")
        said = started("run", *arguments, "--memory", "2GB", "--json", "--out", tmp_path / method, env=dict(os.environ))
        assert said.code == 0, said
        experiment = Experiment(dataset=arguments[0], method=method)
        needs = sum(held(experiment.build_method(), Size.asked(experiment)).values()) / 1e6
        peak = float(said.out.split('"peak_rss_mb": ')[1].split("\n")[0].rstrip(",}"))
        assert 0.4 * needs < peak < needs, (method, peak, needs)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_tells_what_it_holds(name):
    holds = held(made(name), BASE)
    assert all(count > 0 for count in holds.values())
    with pytest.raises(FedstructError, match="--memory: "):
        check(made(name), BASE, 1)


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(METHODS)),
    st.sampled_from(["nodes", "entries", "filled", "classes", "weight"]),
    st.integers(2, 100),
)
def test_more_of_anything_never_needs_less(name, what, times):
    larger = replace(BASE, **{what: getattr(BASE, what) * times})
    assert sum(held(made(name), larger).values()) >= sum(held(made(name), BASE).values())


def test_amounts():
    assert parsed("4GB") == 4_000_000_000
    assert parsed("1GiB") == 1 << 30
    assert parsed("1.5 mb") == 1_500_000
    assert parsed("123B") == 123


@pytest.mark.parametrize("wrong", ["n=abc", "n=0", "n=1e400", "n=1e12", "features=abc", "n=1e6,degree=nan", "nodes=5"])
def test_a_synthetic_graph_that_cannot_be_is_told_so_first(wrong, cached):
    said = typed("run", f"synthetic:{wrong}", "--method", "fedstruct-propagated", "--memory", "4GB")
    assert_one_sentence(said, "synthetic")
    assert "of memory" not in said.err
    assert not cached.exists()


def test_what_would_help_is_what_can_be_set():
    said = typed("run", "synthetic:n=1e5", "--set", "prune_rule=none", "--memory", "4GB")
    assert_one_sentence(said, "with --set prune_rule=block")


def test_a_comparison_is_refused_by_its_largest_method(cached):
    said = typed("compare", "synthetic:n=1e6", "--methods", "fedsgd-mlp,fedstruct", "--memory", "8GB", "--jobs", 1)
    assert_one_sentence(said, "for the entries of Ā")
    assert not cached.exists()
