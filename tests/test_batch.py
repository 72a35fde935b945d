"""Runs done together: a remembered exchange changes nothing, nor does the number of processes."""

import numpy as np
import pytest

import fedstruct as fs
from fedstruct.errors import FedstructError
from fedstruct.experiments.batch import Batch
from fedstruct.experiments.bench import Bench
from fedstruct.experiments.config import Experiment
from fedstruct.graph.graph import TEST, UNKNOWN
from fedstruct.methods import METHODS

GRAPH = fs.generate.planted(nodes=150, seed=3)
SHORT = {"rounds": 3, "layers_structure": 3}


def experiments(*methods, seeds=1, **more):
    options = {m: SHORT if m.startswith("fedstruct") else {"rounds": 3} for m in methods}
    return [Experiment(dataset="g", parties=3, method=m, seeds=seeds, options=options[m], **more) for m in methods]


def bench():
    return Bench({"g": GRAPH})


def figures(result):
    """All of a result that is not measured time, to be compared bit for bit."""
    told = {k: v for k, v in result.as_json().items() if k not in ("seconds", "cpu_seconds", "reused")}
    return told, result.history, {k: v.tobytes() for k, v in result.trained.parameters.items()}


def assert_the_same(one, other):
    assert figures(one) == figures(other)
    assert one.ledger.frame().equals(other.ledger.frame())


# The memory of exchanges.


def remembered(*methods, parts=None):
    parts = parts or fs.partition.random(fs.split(GRAPH, 0), 3)
    memory = {}
    return parts, [(m, fs.run(m, parts, memory=memory)) for m in methods], memory


@pytest.mark.parametrize("how", [{}, {"layers_structure": 1}, {"prune_rule": "none"}, {"keep": 4, "prune": 9}], ids=str)
def test_a_run_that_repeats_an_exchange_is_the_run_that_computes_it(how):
    kinds = ("hop2vec", "hop2vec-mlp", "degree", "hop2vec")
    methods = [fs.methods.FedStruct(features=f, structure_dim=8, **{**SHORT, **how}) for f in kinds]
    parts, runs, memory = remembered(*methods)
    assert [r.reused for _, r in runs] == [False, True, True, True]
    assert len(memory) == 1
    for method, result in runs:
        alone = fs.run(method, parts)
        assert alone.reused is None
        assert_the_same(result, alone)


def test_return_probabilities_are_remembered_with_the_exchange():
    fedstar = {"features": "fedstar", "return_steps": 4, "structure_dim": 8}
    methods = [fs.methods.FedStruct(**SHORT, **fedstar, lr=rate) for rate in (0.01, 0.02)]
    parts, runs, _ = remembered(*methods)
    assert [r.reused for _, r in runs] == [False, True]
    for method, result in runs:
        assert_the_same(result, fs.run(method, parts))


@pytest.mark.parametrize(
    "changed",
    [
        {"layers_structure": 4},
        {"prune": 7},
        {"prune_rule": "none"},
        {"keep": 3},
        {"betas": (0.5, 0.3, 0.2)},
        {"features": "fedstar", "return_steps": 4},
        {"features": "fedstar", "return_steps": 2},
        {"wire": "half"},
    ],
    ids=str,
)
def test_an_exchange_with_other_options_is_another(changed):
    methods = [fs.methods.FedStruct(**SHORT), fs.methods.FedStruct(**{**SHORT, **changed})]
    _, runs, memory = remembered(*methods)
    assert [r.reused for _, r in runs] == [False, False]
    assert len(memory) == 2


def test_an_exchange_over_another_cut_is_another_and_over_another_split_the_same():
    method = fs.methods.FedStruct(**SHORT)
    parts = fs.partition.random(fs.split(GRAPH, 0), 3)
    memory = {}
    others = [
        parts,
        parts.on(fs.split(GRAPH, 7)),
        fs.partition.random(fs.split(GRAPH, 0), 3, seed=1),
        fs.partition.random(fs.split(GRAPH, 0), 3),
    ]
    results = [fs.run(method, p, memory=memory) for p in others]
    assert [r.reused for r in results] == [False, True, False, False]
    assert_the_same(results[1], fs.run(method, others[1]))


def test_a_reused_exchange_is_charged_at_what_it_took():
    method = fs.methods.FedStruct(rounds=1, layers_structure=8)
    _, [(_, first), (_, second)], memory = remembered(method, method)
    [known] = memory.values()
    assert 0 < known.cpu_seconds <= first.cpu_seconds["structure"]
    assert second.cpu_seconds["structure"] >= known.cpu_seconds
    assert second.seconds["structure"] >= known.seconds


def test_separate_parties_have_no_memory():
    method = fs.methods.FedStruct(**SHORT)
    parts = fs.partition.random(fs.split(GRAPH, 0), 3)
    memory = {}
    assert [fs.run(method, parts, memory=memory, separate=True).reused for _ in range(2)] == [None, None]
    assert memory == {}


def test_methods_without_an_exchange_leave_the_memory_alone():
    _, runs, memory = remembered(METHODS["fedsgd-mlp"](rounds=2), METHODS["central-mlp"](rounds=2))
    assert memory == {}
    assert not any(r.reused for _, r in runs)


# Batches.


def test_owners_of_another_split_are_what_cutting_it_gives():
    first, second = fs.split(GRAPH, 0), fs.split(GRAPH, 1)
    moved, fresh = fs.partition.random(first, 3).on(second), fs.partition.random(second, 3)
    for a, b in zip(moved.parties, fresh.parties, strict=True):
        assert np.array_equal(a.split, b.split)
        assert np.array_equal(a.labels, b.labels)
        assert (a.inner != b.inner).nnz == 0
    assert moved.graph is second


def test_runs_with_one_exchange_are_one_group_and_the_longest_goes_first():
    batch = Batch(experiments("fedsgd-mlp", "fedstruct", "fedstruct-degree", "fedstruct-hop2vec-mlp", seeds=2), bench())
    groups = batch.groups(batch.units)
    assert groups[:2] == [[(1, 0), (2, 0), (3, 0)], [(1, 1), (2, 1), (3, 1)]]
    assert sorted(groups[2:]) == [[(0, 0)], [(0, 1)]]


def test_another_split_shares_the_exchange_and_separate_stepping_does_not():
    together = [e for share in (0.1, 0.2) for e in experiments("fedstruct", train=share)]
    batch = Batch(together, bench())
    assert len(batch.groups(batch.units)) == 1
    assert [r.reused for _, r in batch.all()] == [False, True]
    apart = Batch(experiments("fedstruct", "fedstruct-degree", separate=True), bench())
    assert len(apart.groups(apart.units)) == 2


def test_a_batch_gives_what_each_run_gives_alone():
    asked = experiments("fedstruct", "fedstruct-degree", "fedavg-mlp", "central-dgcn", seeds=2)
    together = dict(Batch(asked, bench()).all())
    assert sorted(together) == [(i, seed) for i in range(4) for seed in range(2)]
    for (i, seed), result in together.items():
        alone = bench().one(asked[i], asked[i].build_method(), seed)
        assert_the_same(result, alone)


def test_two_processes_give_what_one_gives():
    asked = experiments("fedstruct", "fedstruct-degree", "fedsgd-mlp", seeds=2)
    one, two = (dict(Batch(asked, bench()).all(jobs)) for jobs in (1, 2))
    assert one.keys() == two.keys()
    for unit, result in one.items():
        assert_the_same(result, two[unit])
        assert result.reused == two[unit].reused


def test_only_what_is_asked_for_is_done():
    batch = Batch(experiments("fedsgd-mlp", "local-mlp", seeds=3), bench())
    assert [unit for unit, _ in batch.all(units=[(1, 2)])] == [(1, 2)]
    assert list(batch.all(units=[])) == []


def test_a_mistake_in_a_worker_is_the_users_sentence():
    [far] = experiments("fedsgd-mlp", seeds=2)
    far = far.model_copy(update={"options": {"rounds": 9, "lr": 1e3, "optimizer": "sgd", "weight_decay": 900}})
    with pytest.raises(FedstructError, match="training diverged"):
        list(Batch([far], bench()).all(jobs=2))


# A blind bench.


def test_a_blind_bench_shows_no_label_of_a_test_node():
    [experiment] = experiments("fedstruct")
    seeing, blind = bench(), Bench({"g": GRAPH}, blind=True)
    for seed in (0, 1):
        full, parts = seeing.parts(experiment, seed), blind.parts(experiment, seed)
        for whole, own in zip(full.parties, parts.parties, strict=True):
            test = own.split == TEST
            assert (own.labels[test] == UNKNOWN).all()
            assert np.array_equal(own.labels[~test], whole.labels[~test])
            assert np.array_equal(own.split, whole.split)
        assert (parts.graph.labels[parts.graph.split == TEST] == UNKNOWN).all()
