"""The demonstration, on a small consortium: its figures are those of runs that anybody can do again."""

import json

import numpy as np
import pytest

from fedstruct.experiments import metrics
from fedstruct.experiments.bench import Bench
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.demo import TOGETHER, WAYS, Demonstration
from fedstruct.experiments.experiment import Runs
from fedstruct.federation.watch import Watch
from fedstruct.graph.graph import TEST


@pytest.fixture(scope="module")
def shown():
    demonstration = Demonstration("consortium:accounts=400,banks=3,illicit=0.1")
    for _ in demonstration.train(Watch()):
        pass
    return demonstration


def test_every_way_is_trained_on_the_same_parts(shown):
    assert list(shown.found) == list(WAYS)
    tested = {int(result.trained.confusion[TEST].sum()) for result in shown.found.values()}
    assert len(tested) == 1


def test_a_bank_gains_what_it_counts_itself(shown):
    alone, together = (shown.found[method].by_party for method in ("local-gnn", TOGETHER))
    assert shown.gains() == {bank: (alone[bank]["auprc"], together[bank]["auprc"]) for bank in together}


@pytest.mark.parametrize("method", [m for m in WAYS if not m.startswith("central")])
def test_what_the_banks_reach_adds_up_to_what_all_reach(shown, method):
    result = shown.found[method]
    parts = shown.bench.parts(shown.experiment(method), 0).parties
    tested = np.array([len(p.known(TEST)) for p in parts])
    right = sum(n * result.by_party[p.name]["test_accuracy"] for n, p in zip(tested, parts, strict=True))
    assert right == pytest.approx(tested.sum() * metrics.accuracy(result.trained.confusion[TEST]))


def test_parties_that_step_as_one_do_not_count_one_by_one():
    experiment = Experiment(dataset="consortium:accounts=200,banks=2", method="fedsgd-mlp", options={"rounds": 1})
    fused = Runs(experiment, Bench()).one(0)
    assert fused.by_party is None
    assert "by_party" not in fused.as_json()


def test_it_is_told_as_json(shown):
    told = json.loads(json.dumps(shown.as_json()))
    assert {m["method"] for m in told["methods"]} == set(WAYS)
    assert told["gains"].keys() == {"bank-1", "bank-2", "bank-3"}
    assert told["partition"]["graph"] == shown.dataset
