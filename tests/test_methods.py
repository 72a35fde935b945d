"""What defines each method: bounds that coincide where they must, averages and gradients that are each other's case."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch_geometric.nn import SAGEConv

from fedstruct import generate, partition, run, split
from fedstruct.graph.graph import Graph
from fedstruct.methods import METHODS, Central, FedAvg, FedSGD, Local
from fedstruct.methods.feature_model import MODELS, GNNOptions, start_of
from fedstruct.models.graphsage import Neighbourhoods, NeighbourMeans

SMALL = {"rounds": 4, "dropout": 0.0, "dtype": "float64"}


@pytest.fixture(scope="module")
def toy() -> Graph:
    return split(generate.planted(nodes=60, classes=3, features=8, seed=3), seed=0, train=0.3, validation=0.2)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_on_one_toy_federation_on_either_stepping(toy: Graph, name: str) -> None:
    parts = partition.random(toy, parties=3, seed=1)
    more = {"layers_structure": 3, "return_steps": 4, "structure_dim": 16} if name.startswith("fedstruct") else {}
    make = METHODS[name]
    known = type(make().options).model_fields
    options = {k: v for k, v in {"rounds": 4, "dtype": "float64", "feature_hidden": 8, **more}.items() if k in known}
    together, apart = (run(make(**options), parts, seed=2, separate=separate) for separate in (False, True))
    np.testing.assert_array_equal(together.trained.confusion, apart.trained.confusion)
    assert together.trained.confusion.sum() == 60
    for what, values in together.trained.parameters.items():
        np.testing.assert_allclose(values, apart.trained.parameters[what], rtol=0, atol=1e-9)
    columns = ["step", "sender", "receiver", "kind", "rows", "bytes", "entry"]
    rows = [r.ledger.frame().select(columns).sort(columns).rows() for r in (together, apart)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("model", MODELS)
def test_one_party_alone_is_central_and_local_and_fedsgd(toy: Graph, model: str) -> None:
    alone = partition.random(toy, parties=1, seed=0)
    central, fedsgd, local = (run(m(model, **SMALL), alone, seed=0).trained for m in (Central, FedSGD, Local))
    np.testing.assert_array_equal(central.parameters["theta"], fedsgd.parameters["theta"])
    np.testing.assert_array_equal(central.confusion, fedsgd.confusion)
    np.testing.assert_array_equal(central.confusion, local.confusion)


@pytest.mark.parametrize("model", MODELS)
def test_one_full_batch_sgd_step_of_fedavg_is_a_step_of_fedsgd(toy: Graph, model: str) -> None:
    # The average of w - λ g_i / n_i with weights n_i is w - λ Σ g_i / n: the step of FedSGD.
    parts = partition.random(toy, parties=3, seed=1)
    options = {**SMALL, "optimizer": "sgd", "lr": 0.1, "weight_decay": 0.01}
    average = run(FedAvg(model, **options), parts, seed=0).trained.parameters["theta"]
    gradient = run(FedSGD(model, **options), parts, seed=0).trained.parameters["theta"]
    np.testing.assert_allclose(average, gradient, rtol=0, atol=1e-12)


def test_more_local_epochs_make_fedavg_another_method(toy: Graph) -> None:
    parts = partition.random(toy, parties=3, seed=1)
    once, twice = (run(FedAvg("mlp", **SMALL, local_epochs=n), parts).trained.parameters["theta"] for n in (1, 2))
    assert np.abs(once - twice).max() > 1e-4


@pytest.mark.parametrize("model", MODELS)
def test_without_border_edges_fedsgd_descends_the_central_gradient(toy: Graph, model: str) -> None:
    owner = np.arange(60) % 3
    a = toy.adjacency.tocoo()
    u, v = a.coords
    inside = owner[u] == owner[v]
    graph = Graph.from_edges(
        np.stack([u[inside], v[inside]]), features=toy.features, labels=toy.labels, classes=3, split=toy.split
    )
    parts = partition.by_vector(graph, owner)
    assert all(len(p.outgoing) == 0 for p in parts.parties)
    options = {**SMALL, "rounds": 1, "optimizer": "sgd", "lr": 1.0, "weight_decay": 0.0}
    stepped = [run(m(model, **options), parts, seed=0).trained.parameters["theta"] for m in (Central, FedSGD)]
    np.testing.assert_allclose(stepped[0], stepped[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("filled", [1.0, 0.03])
@pytest.mark.parametrize("nodes", [np.arange(60), np.array([3, 17, 40]), np.array([58, 59, 7])])
def test_graphsage_is_torch_geometrics_layers_one_after_the_other(toy: Graph, filled: float, nodes: np.ndarray) -> None:
    """Logits and gradients, of features that are dense and sparse, and of nodes without neighbours."""
    sizes = (7, 5, 4)
    x = np.random.default_rng(0).normal(size=(60, 90)) * (np.random.default_rng(1).random((60, 90)) < filled)
    adjacency = csr_array(toy.adjacency * (np.arange(60) < 58)[:, None] * (np.arange(60) < 58))
    adjacency.eliminate_zeros()
    ours = GNNOptions(sage_hidden=sizes, dtype="float64").module(90, 3, start_of(0))
    with torch.no_grad():
        ours.gamma.uniform_(0.5, 2, generator=torch.Generator().manual_seed(1))
        ours.beta.uniform_(-1, 1, generator=torch.Generator().manual_seed(2))
    norm = torch.nn.LayerNorm(90, dtype=torch.float64)
    plain = [SAGEConv(i, o, aggr="mean").double() for i, o in pairwise((90, *sizes))]
    head = torch.nn.Linear(sizes[-1], 3, dtype=torch.float64)
    norm.load_state_dict({"weight": ours.gamma.data, "bias": ours.beta.data})
    head.load_state_dict(ours.head.state_dict())
    edge_index = torch.from_numpy(np.stack(adjacency.tocoo().coords).astype(np.int64)).flip(0)
    values = norm(torch.from_numpy(x))
    for depth, (theirs, layer) in enumerate(zip(plain, ours.layers, strict=True)):
        theirs.load_state_dict(layer.state_dict())
        values = theirs(torch.relu(values) if depth else values, edge_index)
    expected = head(values)[nodes]
    features = x if filled == 1.0 else csr_array(x)
    found = Neighbourhoods(adjacency, features, nodes, 3, np.zeros(60, np.uint32), torch.float64).logits(ours)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    pull = torch.from_numpy(np.random.default_rng(2).normal(size=expected.shape))
    found.backward(pull)
    expected.backward(pull)
    modules = zip([*plain, head], [*ours.layers, ours.head], strict=True)
    pairs = [(norm.weight, ours.gamma), (norm.bias, ours.beta)]
    pairs += [pair for theirs, mine in modules for pair in zip(theirs.parameters(), mine.parameters(), strict=True)]
    for theirs, mine in pairs:
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=0, atol=1e-9)


@pytest.mark.parametrize("before", [True, False])
def test_neighbours_means_before_and_after_the_product(before: bool) -> None:
    """Few nodes with many neighbours have their means taken first; many nodes with few do not."""
    rng = np.random.default_rng(0)
    mean = csr_array((rng.random((4, 9) if before else (9, 4)) < 0.7) * 0.25)
    x = rng.normal(size=(mean.shape[1], 5))
    means = NeighbourMeans(mean, x, torch.float64)
    assert (means._mean is None) == before
    weight, gamma, beta = (torch.from_numpy(rng.normal(size=size)) for size in ((5, 3), 5, 5))
    normal = torch.nn.functional.layer_norm(torch.from_numpy(x), (5,), gamma, beta)
    expected = torch.from_numpy(mean.toarray()) @ normal @ weight
    torch.testing.assert_close(means.times(weight, gamma, beta), expected, rtol=0, atol=1e-12)


def test_a_first_run_is_rehearsed_outside_its_clock(toy: Graph) -> None:
    """What is loaded and compiled at first is no part of what a run takes, and the rehearsal leaves nothing behind."""
    trained = []

    class Counted(FedSGD):
        def train(self, federation, seed, watch):
            trained.append((self.options.rounds, federation.parties))
            return super().train(federation, seed, watch)

    method, parts = Counted("mlp", rounds=3), partition.random(toy, parties=3)
    method.name = "counted"
    first, second = run(method, parts), run(method, parts)
    assert [rounds for rounds, _ in trained] == [1, 3, 3]
    assert (first.messages, first.bytes, first.test_accuracy) == (second.messages, second.bytes, second.test_accuracy)
    assert method.options.rounds == 3


def test_a_run_says_which_protocol_drew_the_split(toy: Graph) -> None:
    def protocol(graph: Graph) -> str:
        return run(FedSGD("mlp", rounds=1), partition.random(graph, parties=2)).protocol

    assert not toy.directed
    assert toy.split is not None
    assert protocol(toy) == "fedstruct-iclr2025"
    assert protocol(toy.with_split(toy.split)) == "given-split"
    assert protocol(split(replace(toy, directed=True), seed=0)) == "given-split"
