"""FedStruct's node structure features: each is the model that its name promises, trained and judged, dense by dense."""

import numpy as np
import pytest
import torch
from torch.nn import functional

import fedstruct as fs
from fedstruct.federation.local import LocalFederation
from fedstruct.federation.watch import Watch
from fedstruct.graph.graph import TEST, TRAIN
from fedstruct.methods.embedding import Embedding
from fedstruct.methods.exchange import acquire
from fedstruct.methods.structure_features import share
from fedstruct.models.flat import Flat
from strategies import federation_order, looped, row_normalised

HOPS, RETURNS, WIDTH = 2, 4, 9
KINDS = ("hop2vec", "hop2vec-mlp", "degree", "fedstar")


@pytest.fixture(scope="module")
def parts():
    graph = fs.generate.planted(nodes=50, classes=3, features=6, degree=7, seed=3)
    return fs.partition.random(fs.split(graph, seed=0, train=0.4), 3, seed=2)


def made(kind, **options):
    """Unpruned, so that Ā is what the paper defines; the exchange of fedstar runs further than Ā."""
    return fs.methods.FedStruct(
        features=kind, layers_structure=HOPS, prune_rule="none", layers_feature=1, feature_hidden=5,
        structure_dim=WIDTH, structure_hidden=(6, 4), return_steps=RETURNS, rounds=6, dropout=0.0, lr=0.05,
        lr_structure=0.1, weight_decay=0.02, dtype="float64", **options,
    )  # fmt: skip


def counted_features(kind, parts):
    """Degrees one-hot, the last column for all above; return probabilities from powers of the whole Â."""
    a = looped(parts)
    returns = RETURNS if kind == "fedstar" else 0
    degrees = ((a - np.eye(len(a))) > 0).sum(axis=1)
    one_hot = np.eye(WIDTH - returns)[np.minimum(degrees, WIDTH - returns - 1)]
    powers = [np.linalg.matrix_power(row_normalised(a), k + 1).diagonal() for k in range(returns)]
    return torch.from_numpy(np.column_stack([one_hot, *powers]))


class Whole:
    """The model over the whole graph, dense, in federation order."""

    def __init__(self, method, parts, seed=0):
        order, graph = federation_order(parts), parts.graph
        self.options, self.labels, self.split = (
            method.options,
            torch.from_numpy(graph.labels[order]),
            graph.split[order],
        )
        self.model = Flat(method.options.modules(graph.features.shape[1], graph.classes, seed))
        self.x = torch.from_numpy(graph.features[order]).double()
        a, owner = looped(parts), parts.owner[order]
        inner = np.where(owner[:, None] == owner[None, :], a, 0)
        self.local = torch.from_numpy(row_normalised(inner))
        self.bar = torch.from_numpy(np.linalg.matrix_power(row_normalised(a), HOPS))
        kind = method.options.features
        if method.options.learned:
            self.s = method.options.embedding(graph.nodes, graph.classes, seed).requires_grad_()
        else:
            self.s = counted_features(kind, parts)

    def parts(self):
        """z and f, eq. 10; with hop2vec there is no model over S, eq. 13."""
        f, *g = self.model.module
        return self.bar @ (plain(g[0], self.s) if g else self.s), self.local @ plain(f, self.x)

    def train(self, weights):
        """Eq. 4, full batch, with torch's Adam."""
        o, v = self.options, np.flatnonzero(self.split == TRAIN)
        groups = [{"params": list(self.model.module.parameters()), "lr": o.lr, "weight_decay": o.weight_decay}]
        if o.learned:
            decay = o.weight_decay if o.features == "hop2vec-mlp" else 0.0
            groups.append({"params": [self.s], "lr": o.lr_structure, "weight_decay": decay})
        optimiser = torch.optim.Adam(groups)
        for _ in range(o.rounds):
            optimiser.zero_grad(set_to_none=False)
            each = functional.cross_entropy(sum(self.parts())[v], self.labels[v], reduction="none")
            ((each * weights[self.labels[v]]).sum() / len(v)).backward()
            optimiser.step()


def plain(mlp, values):
    """An MLP of ours by torch's functions."""
    first = mlp.first
    values = functional.layer_norm(values, first.gamma.shape, first.gamma, first.beta) @ first.weight + first.bias
    for weight, bias in zip(mlp.weights, mlp.biases, strict=True):
        values = functional.linear(torch.relu(values), weight, bias)
    return values


@pytest.mark.parametrize("class_weight", ["none", "balanced"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_the_dense_model_trained_on_the_whole_graph(kind, class_weight, parts):
    """A rare class counts as much as a common one if they are balanced: its nodes weigh n / (classes · its nodes)."""
    method = made(kind, class_weight=class_weight)
    trained = fs.run(method, parts, seed=4).trained
    whole = Whole(method, parts, seed=4)
    counts = torch.bincount(whole.labels[whole.split == TRAIN])
    assert len(set(counts.tolist())) > 1
    whole.train(torch.ones(3) if class_weight == "none" else counts.sum() / (3 * counts.double()))
    np.testing.assert_allclose(trained.parameters["theta"], whole.model.vector, rtol=0, atol=1e-9)
    if method.options.learned:
        np.testing.assert_allclose(trained.parameters["structure"], whole.s.detach(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("hops", [1, 2, 5])
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_return_probabilities_are_the_diagonals_of_the_first_powers(hops, steps, parts):
    """However far the exchange runs; of one's own nodes, and of those that others told of theirs."""
    options = {"layers_structure": hops, "return_steps": steps, "structure_dim": WIDTH, "prune_rule": "none"}
    method = fs.methods.FedStruct(features="fedstar", **options)
    names = tuple(p.name for p in parts.parties)
    parties = [method.party(own, names, 0) for own in parts.parties]
    federation = LocalFederation(parties, method.sends, run="test")
    acquire(federation, method.options, np.array([p.nodes for p in parts.parties]), Watch())
    share(federation)
    whole = row_normalised(looped(parts))
    expected = np.column_stack([np.linalg.matrix_power(whole, k + 1).diagonal() for k in range(steps)])
    for party in parties:
        reached = np.unique(np.concatenate([party.wanted, np.arange(*party.starts[party.me : party.me + 2])]))
        np.testing.assert_allclose(party.returns_of[reached], expected[reached], rtol=0, atol=1e-12)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_rows_that_nobody_reaches_decay_as_the_others_do(decay):
    """S is stepped as torch's Adam steps all of it; without decay it starts at zero, and unreached rows stay there."""
    random = torch.Generator().manual_seed(0)
    start = torch.randn(8, 3, generator=random, dtype=torch.float64) if decay else torch.zeros(8, 3).double()
    reached = np.arange(8) % 2 == 0
    ours = Embedding(start.clone(), reached, "adam", 0.1, decay)
    theirs = start.clone().requires_grad_()
    adam = torch.optim.Adam([theirs], lr=0.1, weight_decay=decay)
    for _ in range(5):
        theirs.grad = torch.zeros(8, 3).double()
        theirs.grad[reached] = torch.randn(4, 3, generator=random, dtype=torch.float64)
        ours.step(theirs.grad[reached].clone())
        adam.step()
    np.testing.assert_allclose(ours.everywhere(), theirs.detach(), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(ours.rows, ours.everywhere()[reached])
    assert (ours.everywhere()[~reached] != start.numpy()[~reached]).any() == (decay > 0)


def test_in_a_run_rows_that_no_training_node_reaches_decay_where_there_is_a_model_over_s():
    graph = fs.split(fs.generate.planted(nodes=60, classes=3, features=6, degree=2, seed=3), 0, train=0.02)
    parts = fs.partition.random(graph, 3, seed=2)
    start = made("hop2vec-mlp").options.embedding(60, 3, 4).numpy()
    structure = fs.run(made("hop2vec-mlp"), parts, seed=4).trained.parameters["structure"]
    assert (structure != start).any(axis=1).all()


def test_under_a_model_s_starts_close_to_zero():
    """At N(0, 0.05²); alone, at zero."""
    start = fs.methods.FedStruct(features="hop2vec-mlp").options.embedding(1000, 3, 0)
    assert start.shape == (1000, 256)
    assert start.std().item() == pytest.approx(0.05, rel=0.01)
    assert start.mean().item() == pytest.approx(0, abs=0.001)
    assert not fs.methods.FedStruct().options.embedding(1000, 3, 0).any()


@pytest.mark.parametrize("kind", KINDS)
def test_inference_from_structure_alone_and_from_features_alone(kind, parts):
    """The same model, trained as ever; z alone, f alone and their sum judge differently."""
    runs = {part: fs.run(made(kind, inference=part), parts).trained for part in ("both", "structure", "features")}
    whole = Whole(made(kind), parts)
    whole.model.load(torch.from_numpy(runs["both"].parameters["theta"]))
    if whole.options.learned:
        whole.s = torch.from_numpy(runs["both"].parameters["structure"])
    with torch.no_grad():
        z, f = whole.parts()
    for part, logits in {"both": z + f, "structure": z, "features": f}.items():
        np.testing.assert_array_equal(runs[part].parameters["theta"], runs["both"].parameters["theta"])
        expected = np.zeros((3, 3), int)
        judged = whole.split == TEST
        np.add.at(expected, (whole.labels[judged], logits.argmax(1)[judged]), 1)
        np.testing.assert_array_equal(runs[part].confusion[TEST], expected)
    assert len({run.confusion[TEST].tobytes() for run in runs.values()}) == 3
