"""FedStruct learns what there is to learn, nothing from test labels, and copes with every odd federation."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

import fedstruct as fs
from fedstruct.errors import FedstructError
from fedstruct.experiments import metrics
from fedstruct.graph.graph import TEST, TRAIN, UNKNOWN, UNUSED, VALIDATION
from fedstruct.methods.divergence import must_be_finite
from fedstruct.methods.optimiser import Optimiser
from strategies import ready

OPTIONS = {"layers_structure": 3, "prune": 15, "rounds": 25, "feature_hidden": 16, "lr": 0.02, "lr_structure": 0.3}


def planted(nodes=600, classes=4, seed=0):
    return fs.generate.planted(nodes=nodes, classes=classes, homophily=0.85, signal=0.4, seed=seed)


def trained(graph, parties=4, seed=0, **options):
    parts = fs.partition.random(graph, parties, seed)
    return fs.run(fs.methods.FedStruct(**{**OPTIONS, **options}), parts, seed)


SGD = {"optimizer": "sgd", "lr": 0.5, "lr_structure": 20.0, "rounds": 60}


@pytest.mark.parametrize("optimizer", [{}, SGD], ids=["adam", "sgd"])
def test_with_permuted_labels_accuracy_falls_to_chance(optimizer):
    """Labels shuffled over the whole graph before the split: nothing else tells them, so nothing may be predicted."""
    real, chance = [], []
    for seed in range(3):
        graph = fs.split(planted(seed=seed), seed, train=0.2)
        shuffled = np.random.default_rng(seed).permutation(graph.labels)
        real.append(trained(graph, seed=seed, **optimizer).test_accuracy)
        chance.append(trained(replace(graph, labels=shuffled), seed=seed, **optimizer).test_accuracy)
    # Four classes of some 150 nodes; three times 420 test nodes: four standard deviations of the mean are 0.05.
    assert np.mean(chance) == pytest.approx(0.25, abs=0.05)
    assert min(real) > 0.6


def test_test_labels_do_not_influence_training():
    """Other labels on the nodes that are judged: θ and S stay bit for bit, only the counts change."""
    graph = fs.split(planted(), 0, train=0.2, validation=0.2)
    judged = np.isin(graph.split, (VALIDATION, TEST))
    other = replace(graph, labels=np.where(judged, (graph.labels + 1) % 4, graph.labels))
    unknown = replace(graph, labels=np.where(judged, UNKNOWN, graph.labels))
    first, second, third = (trained(g) for g in (graph, other, unknown))
    for name, values in first.trained.parameters.items():
        assert values.tobytes() == second.trained.parameters[name].tobytes(), name
        assert values.tobytes() == third.trained.parameters[name].tobytes(), name
    assert first.history == second.history == third.history
    assert second.test_accuracy < first.test_accuracy
    assert third.test_accuracy is None


def test_a_training_label_does_influence_training():
    """So that the test above can fail."""
    graph = fs.split(planted(), 0, train=0.2)
    node = np.flatnonzero(graph.split == TRAIN)[0]
    labels = graph.labels.copy()
    labels[node] = (labels[node] + 1) % 4
    first, second = trained(graph), trained(replace(graph, labels=labels))
    assert first.trained.parameters["structure"].tobytes() != second.trained.parameters["structure"].tobytes()


@pytest.mark.parametrize(
    "options",
    [{"optimizer": "sgd", "lr": 0.2, "lr_structure": 2.0}, {"optimizer": "adam", "lr": 0.005, "lr_structure": 0.05}],
    ids=["sgd", "adam"],
)
def test_the_loss_falls(options):
    """Without dropout and at small rates, in every round."""
    losses = [h["loss"] for h in trained(fs.split(planted(), 0, train=0.2), dropout=0.0, **options).history]
    assert len(losses) == OPTIONS["rounds"]
    assert losses[0] == pytest.approx(np.log(4), abs=0.5), "S is zero at the start, and θ knows nothing"
    assert np.all(np.diff(losses) < 0)
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_the_optimiser_is_torchs(kind):
    """Two groups at their own rates, one with coupled decay, over several steps."""
    rng = np.random.default_rng(0)
    start = [torch.from_numpy(rng.normal(size=size)) for size in (5, (3, 2))]
    mine = [p.clone() for p in start]
    optimiser = Optimiser(kind, (mine[0], 0.1, 0.01), (mine[1], 0.5, 0.0))
    theirs = [torch.nn.Parameter(p.clone()) for p in start]
    groups = [{"params": theirs[:1], "lr": 0.1, "weight_decay": 0.01}, {"params": theirs[1:], "lr": 0.5}]
    reference = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[kind](groups, weight_decay=0.0)
    for _ in range(6):
        gradients = [torch.from_numpy(rng.normal(size=p.shape)) for p in start]
        optimiser.step(*gradients)
        for parameter, gradient in zip(theirs, gradients, strict=True):
            parameter.grad = gradient.clone()
        reference.step()
    for ours, parameter, began in zip(mine, theirs, start, strict=True):
        torch.testing.assert_close(ours, parameter.data, rtol=0, atol=1e-14)
        assert not torch.equal(ours, began)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_one_number_that_is_not_finite_is_enough(bad):
    values = torch.full((3, 2), 3e38)
    must_be_finite(values, "the model")  # their sum is not, but they are
    must_be_finite(values[:0], "the model")
    values[1, 1] = bad
    with pytest.raises(FedstructError, match="training diverged by round 4: the model is not finite"):
        must_be_finite(values, "the model", 4)


def test_s_is_zero_wherever_no_training_node_reaches():
    """T = ∪ T_i is fixed for the run; S is not trained, and not decayed, outside it."""
    graph = fs.split(planted(), 0, train=0.02)
    parts = fs.partition.random(graph, 4, 0)
    method = fs.methods.FedStruct(**{**OPTIONS, "prune": 4})
    structure = fs.run(method, parts).trained.parameters["structure"]
    reached = np.unique(np.concatenate(list(ready(method, parts).reach.values())))
    assert 0 < len(reached) < graph.nodes
    assert not np.delete(structure, reached, axis=0).any()
    assert structure[reached].any(axis=1).all()


# Odd federations. Each must train and be judged, in both ways of stepping, with the same numbers.


def odd(nodes=60, classes=3, **changes):
    graph = fs.generate.planted(nodes=nodes, classes=classes, features=8, seed=2)
    return replace(fs.split(graph, 0, train=0.3, validation=0.2), **changes)


def check(parts, **options):
    """Train both ways: finite parameters, the same from both, and every labelled node judged once."""
    method = fs.methods.FedStruct(**{**OPTIONS, "rounds": 4, "dtype": "float64", **options})
    fused, separate = fs.run(method, parts), fs.run(method, parts, separate=True)
    graph = parts.graph
    for name, values in fused.trained.parameters.items():
        assert np.isfinite(values).all(), name
        np.testing.assert_allclose(values, separate.trained.parameters[name], rtol=0, atol=1e-9)
    for split in (TRAIN, VALIDATION, TEST):
        known = (graph.split == split) & (graph.labels >= 0)
        true = np.bincount(graph.labels[known], minlength=graph.classes)
        np.testing.assert_array_equal(fused.trained.confusion[split].sum(axis=1), true)
        np.testing.assert_array_equal(fused.trained.confusion[split], separate.trained.confusion[split])
    assert not fused.trained.confusion[UNUSED].any()
    assert fused.trained.parameters["theta"].any()
    assert fused.trained.parameters["structure"].any()
    return fused


def owners(graph, parties=3):
    return np.arange(graph.nodes) % parties


@pytest.mark.parametrize("split", [TRAIN, VALIDATION, TEST])
def test_a_party_without_nodes_in_some_split(split):
    graph = odd()
    mine = owners(graph) == 1
    other = TEST if split == TRAIN else TRAIN
    graph = replace(graph, split=np.where(mine & (graph.split == split), other, graph.split))
    parts = fs.partition.by_vector(graph, owners(graph))
    assert len(parts.parties[1].known(split)) == 0
    check(parts)


@pytest.mark.parametrize("split", [VALIDATION, TEST])
def test_nobody_has_nodes_in_some_split(split):
    graph = odd()
    graph = replace(graph, split=np.where(graph.split == split, TRAIN, graph.split))
    result = check(fs.partition.by_vector(graph, owners(graph)))
    assert (result.test_accuracy is None) == (split == TEST)
    assert (result.validation_accuracy is None) == (split == VALIDATION)


def test_a_party_without_labelled_nodes():
    graph = odd()
    graph = replace(graph, labels=np.where(owners(graph) == 1, UNKNOWN, graph.labels))
    parts = fs.partition.by_vector(graph, owners(graph))
    assert (parts.parties[1].labels == UNKNOWN).all()
    check(parts)


def test_one_training_node_in_all():
    graph = odd()
    split = np.full(graph.nodes, TEST, np.int8)
    split[7] = TRAIN
    check(fs.partition.by_vector(replace(graph, split=split), owners(graph)))


def test_isolated_nodes_and_a_party_of_nothing_else():
    graph = odd()
    adjacency = graph.adjacency.toarray()
    alone = (np.arange(60) % 7 == 0) | (owners(graph) == 2)
    adjacency[alone] = adjacency[:, alone] = 0
    graph = replace(graph, adjacency=csr_array(adjacency))
    parts = fs.partition.by_vector(graph, owners(graph))
    assert parts.parties[2].inner.nnz == len(parts.parties[2].outgoing) == 0
    check(parts)


def test_a_graph_without_edges():
    graph = odd()
    check(fs.partition.by_vector(replace(graph, adjacency=csr_array((60, 60))), owners(graph)))


@pytest.mark.parametrize("split", [TRAIN, VALIDATION, TEST, UNUSED])
def test_a_node_without_a_label(split):
    graph = odd()
    labels, splits = graph.labels.copy(), graph.split.copy()
    labels[4], splits[4] = UNKNOWN, split
    check(fs.partition.by_vector(replace(graph, labels=labels, split=splits), owners(graph)))


def test_a_labelled_node_that_is_not_used_is_not_judged():
    graph = odd()
    split = graph.split.copy()
    split[:10] = UNUSED
    result = check(fs.partition.by_vector(replace(graph, split=split), owners(graph)))
    assert result.trained.confusion.sum() == 50


@pytest.mark.parametrize("hops", [1, 3])
def test_one_party(hops):
    result = check(fs.partition.by_vector(odd(), np.zeros(60, int)), layers_structure=hops)
    assert result.exchange["entries"] == 0


def test_parties_of_one_node():
    """All of them, and one among larger ones."""
    graph = odd(nodes=24)
    check(fs.partition.by_vector(graph, np.arange(24)))
    check(fs.partition.by_vector(graph, np.minimum(np.arange(24), 1)))


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_any_number_of_feature_layers(layers):
    check(fs.partition.by_vector(odd(), owners(odd())), layers_feature=layers)


def test_a_directed_weighted_graph_with_self_loops():
    graph = odd()
    rng = np.random.default_rng(0)
    adjacency = csr_array(rng.uniform(0.5, 2, (60, 60)) * (rng.random((60, 60)) < 0.05) + np.diag(np.arange(60) % 2))
    check(fs.partition.by_vector(replace(graph, adjacency=adjacency, directed=True), owners(graph)))


def test_two_classes_have_an_auprc_and_three_have_none():
    graph = odd(nodes=300, classes=2)
    result = check(fs.partition.random(graph, 3), rounds=20)
    assert result.trained.scores.shape == (4, 2, 1024)
    np.testing.assert_array_equal(result.trained.scores.sum(axis=2), result.trained.confusion.sum(axis=2))
    share = (graph.labels[graph.split == TEST] == 1).mean()
    assert share < result.auprc <= 1, "better than a guess, whose average precision is the share of class 1"
    assert "auprc" in result.as_json()
    three = check(fs.partition.random(odd(), 3))
    assert three.auprc is None
    assert "auprc" not in three.as_json()


def test_a_graph_without_features():
    graph = odd()
    check(fs.partition.by_vector(replace(graph, features=np.zeros((60, 0), np.float32)), owners(graph)))


def test_dense_and_sparse_features_give_the_same_model():
    graph = odd()
    features = np.where(graph.features > 0.4, graph.features, 0).astype(np.float32)
    features[5] = 0
    kept = []
    for values in (features, csr_array(features)):
        result = check(fs.partition.random(replace(graph, features=values), 3), rounds=15)
        kept.append(result.trained)
    dense, sparse = kept
    for name, values in dense.parameters.items():
        np.testing.assert_allclose(values, sparse.parameters[name], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(dense.confusion, sparse.confusion)


def test_without_a_split_each_party_draws_its_own():
    graph = fs.generate.planted(nodes=200, seed=1)
    result = fs.run(fs.methods.FedStruct(**{**OPTIONS, "rounds": 2}), fs.partition.random(graph, 4, 0), 0)
    assert result.protocol == "per-party-split"
    assert result.trained.confusion.sum() == 200
    assert result.trained.confusion[TRAIN].sum() == pytest.approx(20, abs=4)


def test_nobody_with_a_training_node_is_an_error_in_one_sentence():
    graph = odd()
    parts = fs.partition.by_vector(replace(graph, split=np.full(60, TEST, np.int8)), owners(graph))
    with pytest.raises(fs.FedstructError, match="nobody has a labelled node to train on"):
        fs.run(fs.methods.FedStruct(**OPTIONS), parts)


@pytest.mark.parametrize("separate", [False, True])
def test_a_result_measures_the_test_nodes_and_no_others(separate):
    parts = fs.partition.random(fs.split(planted(nodes=300, classes=2), 0, train=0.1, validation=0.3), 3, 0)
    result = fs.run(fs.methods.FedStruct(**{**OPTIONS, "rounds": 5}), parts, separate=separate, recall_at=10)
    of = {split: result.trained.confusion[split] for split in (TRAIN, VALIDATION, TEST)}
    for name, measure in (("test_accuracy", metrics.accuracy), ("macro_f1", metrics.macro_f1)):
        assert getattr(result, name) == measure(of[TEST])
        assert len({measure(confusion) for confusion in of.values()}) == 3, "the splits can be told apart"
    assert result.validation_accuracy == metrics.accuracy(of[VALIDATION])
    scores = result.trained.scores
    assert result.auprc == metrics.auprc(scores[TEST]) != metrics.auprc(scores[VALIDATION])
    assert result.recall == metrics.recall_at(scores[TEST], 10) != metrics.recall_at(scores[VALIDATION], 10)
