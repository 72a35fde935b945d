"""Lemma 1 and Propositions 1 to 3: what parties answer, from their own rows alone, is what dense arithmetic gives.

The dense side knows the whole graph: Ā from powers of Â, f from torch's own LayerNorm and Linear over dense features
and dense powers of the inner adjacency, eq. 13 on top, and autograd through all of it.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import nn

import fedstruct as fs
from fedstruct.federation.codec import Limits, decode
from fedstruct.federation.watch import Watch
from fedstruct.graph.graph import TRAIN
from fedstruct.methods.evaluation import counted
from fedstruct.methods.fedstruct import Evaluate, ReachAll, Weights
from fedstruct.methods.view import View
from fedstruct.models.decoupled import DecoupledGCN
from fedstruct.models.dropout import row_keys
from fedstruct.models.flat import Flat
from fedstruct.models.mlp import MLP, NormalisedLinear, StandardRows
from fedstruct.models.sparse import SparseMatrix
from fedstruct.structure.kernels import normalised
from strategies import bounds, federation_order, keep_mask, looped, ready, recorded, row_normalised

HIDDEN, HOPS, LAYERS = 7, 3, 2
BETAS = (0.5, -0.25, 0.75)


def planted(sparse=False, directed=False):
    """Forty nodes of three classes, a split, one unknown label in it."""
    graph = fs.generate.planted(nodes=40, classes=3, features=6, seed=3)
    if directed:
        upper = csr_array(np.triu(graph.adjacency.toarray()))
        graph = replace(graph, adjacency=upper, directed=True)
    graph = fs.split(graph, seed=0, train=0.4)
    labels = graph.labels.copy()
    labels[np.flatnonzero(graph.split == TRAIN)[0]] = -1
    features = graph.features
    if sparse:
        features = csr_array(np.where(features > 0.3, features, 0))
    return replace(graph, labels=labels, features=features)


@pytest.fixture(params=[False, True], ids=["dense features", "sparse features"])
def sparse(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["undirected", "directed"])
def directed(request):
    return request.param


@pytest.fixture
def parts(sparse, directed):
    return fs.partition.random(planted(sparse, directed), 3, seed=2)


@pytest.fixture
def method():
    return fs.methods.FedStruct(
        layers_structure=HOPS, betas=BETAS, prune_rule="none", layers_feature=LAYERS, feature_hidden=HIDDEN,
        dropout=0.0, dtype="float64",
    )  # fmt: skip


def dense_features(graph):
    x = graph.features
    return np.asarray(x.toarray() if hasattr(x, "toarray") else x, dtype=np.float64)


def mlp_of(inputs, classes):
    return MLP(inputs, (HIDDEN,), classes, torch.Generator().manual_seed(0), torch.float64)


def drawn(size, seed):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=size) / 2)


class Whole:
    """Eq. 13 over the whole graph, dense, with torch's own layers; everything in federation order."""

    def __init__(self, parts, theta):
        graph, order = parts.graph, federation_order(parts)
        flat = Flat(mlp_of(graph.features.shape[1], graph.classes))
        flat.load(theta)
        ours = self.ours = flat.module
        self.norm = nn.LayerNorm(graph.features.shape[1], dtype=torch.float64)
        self.first = nn.Linear(graph.features.shape[1], HIDDEN, dtype=torch.float64)
        self.second = nn.Linear(HIDDEN, graph.classes, dtype=torch.float64)
        with torch.no_grad():
            self.norm.weight.copy_(ours.first.gamma)
            self.norm.bias.copy_(ours.first.beta)
            self.first.weight.copy_(ours.first.weight.T)
            self.first.bias.copy_(ours.first.bias)
            self.second.weight.copy_(ours.weights[0])
            self.second.bias.copy_(ours.biases[0])
        self.x = torch.from_numpy(dense_features(graph)[order])
        self.labels = torch.from_numpy(graph.labels[order])
        self.split = graph.split[order]
        self.owner = parts.owner[order]
        a = looped(parts)
        normalised = row_normalised(a)
        bar = sum(beta * np.linalg.matrix_power(normalised, hop) for hop, beta in enumerate(BETAS, start=1))
        self.bar = torch.from_numpy(bar)
        inside = np.where(self.owner[:, None] == self.owner[None, :], a, 0)
        self.local = torch.from_numpy(np.linalg.matrix_power(row_normalised(inside), LAYERS))

    def f(self):
        """f_θ(v) for all nodes: Â_local^L MLP(X)."""
        return self.local @ self.second(torch.relu(self.first(self.norm(self.x))))

    def logits(self, structure):
        return self.bar @ structure + self.f()

    def training(self, party):
        return np.flatnonzero((self.owner == party) & (self.split == TRAIN) & (self.labels.numpy() >= 0))

    def named(self):
        """torch's parameters, each under our name and in our shape."""
        return {
            "first.gamma": (self.norm.weight, False),
            "first.beta": (self.norm.bias, False),
            "first.weight": (self.first.weight, True),
            "first.bias": (self.first.bias, False),
            "weights.0": (self.second.weight, False),
            "biases.0": (self.second.bias, False),
        }

    def flat(self, gradients):
        """Gradients by torch's parameters as one vector, in the order of ours."""
        turned = {}
        for name, (parameter, transposed) in self.named().items():
            g = gradients[parameter]
            turned[name] = g.transpose(-1, -2) if transposed else g
        return torch.cat([turned[name].flatten(-p.dim()) for name, p in self.ours.named_parameters()], dim=-1)


@pytest.fixture
def setting(parts, method):
    """Parties after the exchange, and parameters away from their start: S is not zero, γ not one."""
    federation, parties, reach = ready(method, parts)
    graph = parts.graph
    length = len(Flat(mlp_of(graph.features.shape[1], graph.classes)))
    return federation, parties, reach, drawn(length, 1), drawn((graph.nodes, graph.classes), 2)


def answered(party, theta, structure, columns):
    """What a party answers who is given θ and only its rows of S."""
    return party.answer(Weights(theta=theta.numpy(), structure=structure.numpy()[columns], round=0))


def onto_all(gradient, columns, nodes):
    whole = np.zeros((nodes, gradient.structure.shape[1]))
    whole[columns] = gradient.structure
    return whole


def test_lemma_1_the_gradient_by_the_logits_is_y_hat_minus_y(method):
    """Without edges Ā = (Σ β) I: a party's gradient of S is that sum times ŷ_v - y_v, node for node."""
    graph = replace(planted(), adjacency=csr_array((40, 40)))
    parts = fs.partition.random(graph, 3, seed=2)
    _, parties, reach = ready(method, parts)
    theta, structure = drawn(len(Flat(mlp_of(6, 3))), 1), drawn((40, 3), 2)
    whole = Whole(parts, theta)
    y_hat = torch.softmax(whole.logits(structure), 1).detach()
    residual = (y_hat - nn.functional.one_hot(whole.labels.clamp(min=0), 3)).numpy()
    for i, party in enumerate(parties):
        columns = reach[party.own.name]
        np.testing.assert_array_equal(columns, whole.training(i))
        got = answered(party, theta, structure, columns)
        np.testing.assert_allclose(got.structure, sum(BETAS) * residual[columns], rtol=0, atol=1e-12)


def test_proposition_1_a_partys_rows_and_s_give_the_logits_of_the_whole(parts, setting):
    """From its rows of Ā, S and its own graph, a party computes the logits that the whole graph would give."""
    _, parties, _, theta, structure = setting
    whole = Whole(parts, theta)
    expected = whole.logits(structure).detach()
    for party, start in zip(parties, bounds(parts), strict=False):
        view = View.of([party.own])
        local = normalised(view.inner)
        f = DecoupledGCN(local, view.features, np.arange(party.own.nodes), LAYERS, view.keys, torch.float64)
        logits = f.logits(whole.ours) + SparseMatrix(party.reach, torch.float64) @ structure
        torch.testing.assert_close(logits.detach(), expected[start : start + party.own.nodes], rtol=0, atol=1e-12)


def test_proposition_1_what_the_others_hold_is_not_needed(parts, method, setting):
    """A party answers the same, bit for bit, when all that the others hold is taken away after the exchange."""
    _, among, reach, theta, structure = setting
    _, alone, _ = ready(method, parts)
    for i, party in enumerate(alone):
        if i != 1:
            party.reach = party.training_reach = party.power = party.rows = party.columns = party.own = None
    columns = reach[among[1].own.name]
    before, after = (answered(parties[1], theta, structure, columns) for parties in (among, alone))
    assert before.theta.tobytes() == after.theta.tobytes()
    assert before.structure.tobytes() == after.structure.tobytes()


def test_proposition_1_parties_count_as_the_whole_graph_would(parts, setting):
    """The confusion counts of each party's answer, given θ and its rows of S, are those of the dense logits."""
    _, parties, _, theta, structure = setting
    whole = Whole(parts, theta)
    logits = whole.logits(structure).detach()
    for i, party in enumerate(parties):
        columns = party.answer(ReachAll()).columns
        counts = party.answer(Evaluate(theta=theta.numpy(), structure=structure.numpy()[columns]))
        mine = np.flatnonzero((whole.owner == i) & (whole.labels.numpy() >= 0))
        expected = counted(logits[mine], whole.labels.numpy()[mine], whole.split[mine])
        np.testing.assert_array_equal(counts.confusion, expected.confusion)
        assert counts.confusion.sum() == len(mine)


def test_proposition_2_the_gradient_of_s(parts, setting):
    """∇_S L_i = Σ_v Ā_v,:ᵀ (ŷ_v - y_v)ᵀ over a party's labelled nodes; autograd agrees, and so does the party."""
    _, parties, reach, theta, structure = setting
    whole = Whole(parts, theta)
    s = structure.clone().requires_grad_()
    logits = whole.logits(s)
    for i, party in enumerate(parties):
        v = whole.training(i)
        assert len(v) > 0
        residual = torch.softmax(logits[v], 1) - nn.functional.one_hot(whole.labels[v], parts.graph.classes)
        closed = (whole.bar[v].T @ residual).detach()
        loss = nn.functional.cross_entropy(logits[v], whole.labels[v], reduction="sum")
        (auto,) = torch.autograd.grad(loss, s, retain_graph=True)
        torch.testing.assert_close(closed, auto, rtol=0, atol=1e-12)
        columns = reach[party.own.name]
        got = answered(party, theta, structure, columns)
        np.testing.assert_allclose(onto_all(got, columns, parts.graph.nodes), closed, rtol=0, atol=1e-12)
        assert got.loss == pytest.approx(loss.item(), abs=1e-12)


def test_proposition_3_the_gradient_of_theta(parts, setting):
    """∂L_i/∂θ_j = Σ_v ∂f(v)/∂θ_j (ŷ_v - y_v): from f's Jacobian; autograd agrees, and so does the party."""
    _, parties, reach, theta, structure = setting
    whole = Whole(parts, theta)
    parameters = [p for p, _ in whole.named().values()]
    f = whole.f()
    rows = [torch.autograd.grad(entry, parameters, retain_graph=True) for entry in f.flatten()]
    jacobian = torch.stack([whole.flat(dict(zip(parameters, row, strict=True))) for row in rows])
    jacobian = jacobian.reshape(*f.shape, -1)
    logits = whole.bar @ structure + f
    for i, party in enumerate(parties):
        v = whole.training(i)
        residual = torch.softmax(logits[v], 1) - nn.functional.one_hot(whole.labels[v], parts.graph.classes)
        closed = torch.einsum("vc,vcj->j", residual, jacobian[v]).detach()
        loss = nn.functional.cross_entropy(logits[v], whole.labels[v], reduction="sum")
        gradients = torch.autograd.grad(loss, parameters, retain_graph=True)
        auto = whole.flat(dict(zip(parameters, gradients, strict=True)))
        torch.testing.assert_close(closed, auto, rtol=0, atol=1e-12)
        got = answered(party, theta, structure, reach[party.own.name])
        np.testing.assert_allclose(got.theta, closed, rtol=0, atol=1e-12)


@pytest.mark.parametrize("separate", [False, True], ids=["fused", "separate"])
def test_the_sum_over_the_federation_is_the_gradient_of_eq_4(parts, method, separate):
    """Fused or not, what the coordinator gets is the gradient of the loss summed over all labelled nodes."""
    federation, _, reach = ready(method, parts, separate=separate)
    graph = parts.graph
    theta = drawn(len(Flat(mlp_of(graph.features.shape[1], graph.classes))), 1)
    structure = drawn((graph.nodes, graph.classes), 2)
    anybody = np.unique(np.concatenate(list(reach.values())))
    place = {name: np.searchsorted(anybody, columns) for name, columns in reach.items()}
    got = federation.sum(Weights(theta=theta.numpy(), structure=structure.numpy()[anybody], round=0), place)
    whole = Whole(parts, theta)
    s = structure.clone().requires_grad_()
    v = np.concatenate([whole.training(i) for i in range(len(parts))])
    loss = nn.functional.cross_entropy(whole.logits(s)[v], whole.labels[v], reduction="sum")
    parameters = [p for p, _ in whole.named().values()]
    by_s, *by_theta = torch.autograd.grad(loss, [s, *parameters])
    np.testing.assert_allclose(got.theta, whole.flat(dict(zip(parameters, by_theta, strict=True))), rtol=0, atol=1e-12)
    np.testing.assert_allclose(got.structure, by_s[anybody], rtol=0, atol=1e-12)
    unreached = np.setdiff1d(np.arange(graph.nodes), anybody)
    assert not by_s[unreached].any(), "T is all of S that has a gradient"
    assert got.loss == pytest.approx(loss.item(), abs=1e-11)


SGD = {"optimizer": "sgd", "lr": 0.3, "lr_structure": 2.0}


@pytest.mark.parametrize("options", [{"optimizer": "adam"}, SGD], ids=["adam", "sgd"])
def test_a_run_is_algorithm_2_over_the_whole_graph(parts, method, options):
    """Eq. 4's mean loss, torch's optimiser, S zero at the start and not decayed: the dense loop ends at the same."""
    method = fs.methods.FedStruct(**{**method.options.model_dump(), "rounds": 8, "weight_decay": 0.02, **options})
    o, graph = method.options, parts.graph
    names = tuple(p.name for p in parts.parties)
    federation, recorder = recorded([method.party(own, names, 0) for own in parts.parties], method.sends)
    trained = method.train(federation, 0, Watch())
    first = next(r.frame for r in recorder.records if r.kind == "Weights")
    whole = Whole(parts, torch.from_numpy(np.array(decode(first, [Weights], Limits()).theta)))
    s = torch.zeros(graph.nodes, graph.classes, dtype=torch.float64, requires_grad=True)
    parameters = [p for p, _ in whole.named().values()]
    groups = [{"params": parameters, "lr": o.lr, "weight_decay": 0.02}, {"params": [s], "lr": o.lr_structure}]
    optimiser = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[o.optimizer](groups, weight_decay=0.0)
    v = np.concatenate([whole.training(i) for i in range(len(parts))])
    for _ in range(o.rounds):
        optimiser.zero_grad()
        nn.functional.cross_entropy(whole.logits(s)[v], whole.labels[v]).backward()
        optimiser.step()
    theta = whole.flat({p: p.detach() for p in parameters})
    np.testing.assert_allclose(trained.parameters["theta"], theta, rtol=0, atol=1e-9)
    np.testing.assert_allclose(trained.parameters["structure"], s.detach(), rtol=0, atol=1e-9)
    assert s.detach().abs().max() > 0.1


def random_rows(filled=None, rows=9, columns=5):
    """Rows of features, one of them empty and one constant; or sparse ones, `filled` of all entries."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(rows, columns)).astype(np.float32)
    if filled is None:
        x[3], x[5] = 0, 1.25
        return x, torch.from_numpy(x).double()
    x[rng.random(x.shape) >= filled] = 0
    x[3] = 0
    return csr_array(x), torch.from_numpy(x).double()


ROWS = {
    "dense": random_rows(),
    "sparse by name": random_rows(0.6),
    "sparse, all columns used": random_rows(0.06, rows=90),
    "sparse, few columns used": random_rows(0.02, columns=99),
}
"""Rows as they are stored, and as a dense tensor; each takes another way through the products."""


@pytest.fixture(params=ROWS.values(), ids=ROWS)
def rows_of_features(request):
    return request.param


def test_the_rows_are_stored_in_four_ways():
    stored = {name: StandardRows(x, torch.float64) for name, (x, _) in ROWS.items()}
    assert [rows.dense for rows in stored.values()] == [True, True, False, False]
    assert [rows.used is None for rows in stored.values()] == [True, True, True, False]


@pytest.mark.parametrize("learned", [False, True], ids=["features", "learned values"])
def test_normalised_linear_is_layer_norm_and_linear(rows_of_features, learned):
    """Forward and backward, on sparse features as on dense ones, and on values that have a gradient themselves."""
    x, plain = rows_of_features
    width = plain.shape[1]
    plain = plain.clone().requires_grad_(learned)
    given = plain.detach().clone().requires_grad_() if learned else StandardRows(x, torch.float64)
    ours = NormalisedLinear(width, 4, torch.Generator().manual_seed(1), torch.float64)
    norm, linear = nn.LayerNorm(width, dtype=torch.float64), nn.Linear(width, 4, dtype=torch.float64)
    with torch.no_grad():
        ours.gamma.copy_(drawn(width, 1))
        ours.beta.copy_(drawn(width, 2))
        norm.weight.copy_(ours.gamma)
        norm.bias.copy_(ours.beta)
        linear.weight.copy_(ours.weight.T)
        linear.bias.copy_(ours.bias)
    out, expected = ours(given), linear(norm(plain))
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)
    pull = drawn(out.shape, 3)
    out.backward(pull)
    expected.backward(pull)
    for mine, torchs in (
        (ours.gamma.grad, norm.weight.grad),
        (ours.beta.grad, norm.bias.grad),
        (ours.weight.grad.T, linear.weight.grad),
        (ours.bias.grad, linear.bias.grad),
        *([(given.grad, plain.grad)] if learned else []),
    ):
        torch.testing.assert_close(mine, torchs, rtol=0, atol=1e-11)


def test_dropped_units_are_zero_and_the_others_make_up_for_them(rows_of_features):
    """Dropout between ReLU and the last Linear: h ⊙ mask / (1 - rate), as torch's."""
    x, plain = rows_of_features
    mlp = mlp_of(plain.shape[1], 3)
    rows = row_keys(["bank"], [len(plain)])
    keep = keep_mask(rows, HIDDEN, 0.25, 0, 1, 0)
    assert 0 < keep.sum() < keep.numel()
    hidden = nn.functional.layer_norm(plain, (plain.shape[1],)) @ mlp.first.weight + mlp.first.bias
    expected = (torch.relu(hidden) * keep / 0.75) @ mlp.weights[0].T + mlp.biases[0]
    torch.testing.assert_close(mlp(StandardRows(x, torch.float64), rows, 0.25, (0, 1)), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("layers", [0, 1, 2, 4])
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_few_nodes_get_the_logits_that_all_nodes_get(parts, layers, rate):
    """Multiplied out for few nodes, or hop by hop for all of them; under dropout as well."""
    view = View.of(parts.parties)
    mlp = mlp_of(view.features.shape[1], view.classes)

    def logits(nodes):
        f = DecoupledGCN(normalised(view.inner), view.features, nodes, layers, view.keys, torch.float64)
        return f.logits(mlp, rate, (0, 1)).detach()

    everything = logits(np.arange(40))
    assert everything.shape == (40, 3)
    for few in (np.array([7]), np.array([2, 3, 11, 39]), np.array([30, 4, 4]), np.arange(20), np.zeros(0, int)):
        torch.testing.assert_close(logits(few), everything[few], rtol=0, atol=1e-12)


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_the_decoupled_gcn_is_powers_times_mlp(parts, layers):
    """Â_local^L MLP(X) over the parties side by side: no node of one party touches another's."""
    whole = Whole(parts, drawn(len(Flat(mlp_of(6, 3))), 1))
    view = View.of(parts.parties)
    f = DecoupledGCN(normalised(view.inner), view.features, np.arange(40), layers, view.keys, torch.float64)
    inside = np.where(whole.owner[:, None] == whole.owner[None, :], looped(parts), 0)
    power = torch.from_numpy(np.linalg.matrix_power(row_normalised(inside), layers))
    expected = power @ whole.second(torch.relu(whole.first(whole.norm(whole.x))))
    torch.testing.assert_close(f.logits(whole.ours), expected, rtol=0, atol=1e-12)
