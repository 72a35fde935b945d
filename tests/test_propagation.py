"""FedStruct by propagation: what arrives over the border is Ā s and its gradient, whoever owns what."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

import fedstruct as fs
from fedstruct.errors import FedstructError, RefusedMessage
from fedstruct.federation.local import LocalFederation
from fedstruct.federation.watch import Watch
from fedstruct.graph.graph import TRAIN
from fedstruct.methods.opening import announced
from fedstruct.methods.propagated_messages import Carry, CarryOn, CarryTrained, CountArrived, Gather, TurnBack
from fedstruct.methods.training import ModelGradient
from strategies import bounds, looped, partitions, recorded, row_normalised

CLASSES, FEATURES = 3, 4


def made(**options):
    """Plain gradient descent at rate 1, so that a step of S is its gradient."""
    return fs.methods.FedStruct(
        **{
            "structure": "propagated", "layers_structure": 3, "layers_feature": 1, "feature_hidden": 5, "dropout": 0.0,
            "rounds": 1, "optimizer": "sgd", "lr_structure": 1.0, "dtype": "float64", **options,
        }
    )  # fmt: skip


def with_data(parts, seed=0):
    """The same owners and edges, with features, labels and a split to train on."""
    rng = np.random.default_rng(seed)
    return [
        replace(
            own,
            features=rng.normal(size=(own.nodes, FEATURES)).astype(np.float32),
            labels=rng.integers(0, CLASSES, own.nodes),
            classes=CLASSES,
            split=np.where(rng.random(own.nodes) < 0.7, TRAIN, 0).astype(np.int8),
        )
        for own in parts.parties
    ]


def parties_of(method, owns):
    return [method.party(own, tuple(p.name for p in owns), 0) for own in owns]


def one_round(method, parties, s, theta, federation=None):
    """Forward and back from these rows of S: what arrives at the loss, and the gradients of S and θ."""
    federation = federation or LocalFederation(parties, method.sends, run="test", separate=True)
    labelled = sum(len(p.own.known(TRAIN)) for p in parties)
    for party, rows in zip(parties, np.split(s, np.cumsum([p.own.nodes for p in parties])[:-1]), strict=True):
        party.sums.structure.copy_(torch.from_numpy(rows))
    federation.sum(Carry(0, labelled, theta))
    for hop in range(1, method.options.layers_structure):
        federation.sum(CarryOn(hop))
    federation.sum(TurnBack())
    for hop in range(1, method.options.layers_structure):
        federation.sum(CarryOn(hop))
    gradient = federation.sum(Gather())
    stepped = np.concatenate([p.sums.structure.numpy() for p in parties])
    return gradient, (s - stepped) * labelled


def dense_round(method, owns, whole, s, theta):
    """The same by autograd through dense products over the whole graph; `whole` is Ã."""
    o, at = method.options, np.cumsum([0, *(own.nodes for own in owns)])
    owner = np.repeat(np.arange(len(owns)), np.diff(at))
    hat = torch.from_numpy(row_normalised(whole))
    inner = torch.zeros(whole.shape, dtype=torch.float64)
    for own, a, b in zip(owns, at, at[1:], strict=False):
        inner[a:b, a:b] = torch.from_numpy(row_normalised(own.inner.toarray() + np.eye(own.nodes)))
    assert (owner[inner.nonzero()[:, 0]] == owner[inner.nonzero()[:, 1]]).all()
    f = o.module(FEATURES, CLASSES)
    torch.nn.utils.vector_to_parameters(torch.from_numpy(theta), _laid_out(f))
    x = functional.layer_norm(torch.from_numpy(np.concatenate([own.features for own in owns])).double(), (FEATURES,))
    hidden = (x * f.first.gamma + f.first.beta) @ f.first.weight + f.first.bias
    predicted = functional.linear(torch.relu(hidden), f.weights[0], f.biases[0])
    s = torch.from_numpy(s).requires_grad_()
    carried = s if o.carry == "structure" else predicted + (s if o.free else 0 * s)
    z = o.teleport * carried if o.teleport else torch.zeros_like(s)
    if o.teleport:
        z = carried
        for _ in range(o.layers_structure):
            z = (1 - o.teleport) * hat @ z + o.teleport * carried
    else:
        power = carried
        for beta in o.betas or [0.0] * (o.layers_structure - 1) + [1.0]:
            power = hat @ power
            z = z + beta * power
    logits = z
    if o.local:
        h = predicted
        for _ in range(o.layers_feature):
            h = inner @ h
        logits = z + h
    labels = torch.from_numpy(np.concatenate([own.labels for own in owns]))
    training = torch.from_numpy(np.concatenate([own.split for own in owns]) == TRAIN)
    loss = functional.cross_entropy(logits[training], labels[training], reduction="sum")
    loss.backward()
    by_theta = torch.cat([p.grad.flatten() if p.grad is not None else p.flatten() * 0 for p in _laid_out(f)])
    return loss.item(), by_theta.detach().numpy(), s.grad.numpy()


def _laid_out(module):
    """Parameters that lie in memory as in the flat vector: those of `module` are created row by row."""
    return list(module.parameters())


KINDS = st.one_of(
    st.just({}),
    st.just({"carry": "features"}),
    st.just({"carry": "features", "free": False, "local": False}),
    st.floats(0.05, 0.9).map(lambda alpha: {"teleport": alpha, "carry": "features"}),
    st.floats(0.05, 0.9).map(lambda alpha: {"teleport": alpha}),
)


def assert_the_dense_round(method, owns, whole, seed=0):
    rng = np.random.default_rng(seed)
    parties = parties_of(method, owns)
    if sum(len(own.known(TRAIN)) for own in owns) == 0:
        return
    s = rng.normal(size=(len(whole), CLASSES))
    theta = rng.normal(size=parties[0]._parameters)
    gradient, by_s = one_round(method, parties, s, theta)
    loss, by_theta, expected = dense_round(method, owns, whole, s, theta)
    assert gradient.loss == pytest.approx(loss, rel=1e-10)
    np.testing.assert_allclose(gradient.theta, by_theta, rtol=0, atol=1e-9 * max(1, np.abs(by_theta).max()))
    if method.options.free:
        np.testing.assert_allclose(by_s, expected, rtol=0, atol=1e-9)
    else:
        assert not by_s.any(), "there is no free part to step"


@settings(max_examples=80)
@given(partitions(), st.integers(1, 4), KINDS)
def test_loss_and_gradients_are_autograds_through_the_dense_product(parts, hops, kind):
    """Any graph, directed or not, weighted or not, any owners; slopes go back by the transpose."""
    assert_the_dense_round(made(layers_structure=hops, **kind), with_data(parts), looped(parts))


@settings(max_examples=40)
@given(partitions(), st.lists(st.floats(-1, 1), min_size=1, max_size=4))
def test_any_sum_of_powers(parts, betas):
    assert_the_dense_round(made(layers_structure=len(betas), betas=tuple(betas)), with_data(parts), looped(parts))


def planted(parties=4, nodes=150, seed=0):
    graph = fs.generate.planted(nodes=nodes, classes=3, features=12, seed=5)
    return fs.partition.random(fs.split(graph, seed, train=0.2), parties, seed)


RUN = {"layers_structure": 3, "rounds": 10, "feature_hidden": 16, "dropout": 0.5, "lr_structure": 0.3}


def assert_the_same_training(one, other):
    np.testing.assert_allclose(one.trained.parameters["theta"], other.trained.parameters["theta"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(*([h["loss"] for h in r.history] for r in (one, other)), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(one.trained.confusion, other.trained.confusion)


@pytest.mark.parametrize("how", [{}, {"betas": (0.5, -0.2, 0.7)}, {"class_weight": "balanced"}], ids=str)
@pytest.mark.parametrize("parties", [1, 4, 30])
def test_a_run_is_that_of_an_exchange_without_pruning(parties, how):
    parts, options = planted(parties), {**RUN, "dtype": "float64", **how}
    exchanged = fs.run(fs.methods.FedStruct(prune_rule="none", **options), parts)
    assert_the_same_training(fs.run(fs.methods.FedStruct(structure="propagated", **options), parts), exchanged)


BY = ["step", "sender", "receiver", "kind", "entry"]


@pytest.mark.parametrize("parties", [1, 2, 5])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"carry": "features", "teleport": 0.1},
        {"carry": "features", "free": False, "local": False},
        {"min_group": 2},
        {"layers_structure": 1, "class_weight": "balanced"},
    ],
    ids=str,
)
def test_stepping_as_one_and_one_by_one(parties, how):
    """The same training, and the same ledger row by row: questions, answers and what peers would have posted."""
    method = fs.methods.FedStruct(structure="propagated", **{**RUN, "rounds": 4, "dtype": "float64", **how})
    parts = planted(parties)
    fused, separate = (fs.run(method, parts, separate=apart) for apart in (False, True))
    assert_the_same_training(fused, separate)
    rows = [r.ledger.frame().drop("run").sort(BY, maintain_order=True) for r in (fused, separate)]
    assert rows[0].unique(subset=BY).height == rows[0].height
    assert rows[0].equals(rows[1])
    assert ("Sums" in set(rows[0]["kind"])) == ("SlopeSums" in set(rows[0]["kind"])) == (parties > 1)
    assert fused.bytes == separate.bytes


@pytest.mark.parametrize("carry", ["structure", "features"])
def test_one_steps_gradient_in_float32(carry):
    """To a millionth of its largest entry, stepping as one and one by one."""
    method = fs.methods.FedStruct(**{**RUN, "structure": "propagated", "carry": carry, "rounds": 1})
    parts, gradients = planted(5), []
    for separate in (False, True):
        parties = parties_of(method, parts.parties)
        federation = LocalFederation(parties, method.sends, run="test", separate=separate)
        theta = np.random.default_rng(8).normal(size=parties[0]._parameters).astype(np.float32) / 3
        federation.sum(Carry(0, 30, theta))
        for question in (CarryOn(1), CarryOn(2), TurnBack(), CarryOn(1), CarryOn(2)):
            federation.sum(question)
        gradients.append(federation.sum(Gather()))
    fused, separate = gradients
    largest = np.abs(separate.theta).max()
    assert separate.theta.dtype == np.float32
    assert largest > 1e-3
    np.testing.assert_allclose(fused.theta, separate.theta, rtol=0, atol=1e-6 * largest)
    assert fused.loss == pytest.approx(separate.loss, rel=1e-6)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_one_party_that_carries_features_is_the_central_decoupled_model(dropout):
    """In any number of hands, as long as draws do not depend on whose a node is."""
    graph = planted().graph
    options = {"rounds": 8, "feature_hidden": 16, "dropout": dropout, "dtype": "float64"}
    whole = fs.partition.by_vector(graph, ["everybody"] * graph.nodes)
    central = fs.run(fs.methods.Central("dgcn", layers_feature=3, **options), whole)
    carried = fs.methods.FedStruct(
        structure="propagated", carry="features", free=False, local=False, layers_structure=3, **options
    )
    assert_the_same_training(fs.run(carried, whole), central)
    if not dropout:
        assert_the_same_training(fs.run(carried, fs.partition.random(graph, 7)), central)


# Groups: what is told is a sum over enough nodes, or nothing.


def edges_of(border, peers, outgoing, name):
    """A border as (source's owner, source, target's owner, target) of its edges."""
    own = [(name, int(v)) for v in border.own]
    there = [(peers[p], int(u)) for p, u in zip(border.peer, border.node, strict=True)]
    return set(zip(own, there, strict=True) if outgoing else zip(there, own, strict=True))


def kept_edges(shared):
    """Each party's own account of the border edges that count: as their source, and as their target."""
    out = set().union(*(edges_of(g.outgoing, g.peers, True, g.name) for g in shared))
    into = set().union(*(edges_of(g.incoming, g.peers, False, g.name) for g in shared))
    return out, into


def literal_core(edges, least):
    """Take away edges that share an end with too few edges to one party, one at a time, until there are none."""
    edges = set(edges)
    while True:
        for source, target in sorted(edges):
            forward = [e for e in edges if e[0] == source and e[1][0] == target[0]]
            backward = [e for e in edges if e[1] == target and e[0][0] == source[0]]
            if min(len(forward), len(backward)) < least:
                edges.remove((source, target))
                break
        else:
            return edges


@settings(max_examples=60)
@given(partitions(9), st.integers(1, 3))
def test_both_sides_of_a_border_leave_out_the_same_edges(parts, least):
    method = made(min_group=least)
    shared = [p.shared for p in parties_of(method, with_data(parts))]
    out, into = kept_edges(shared)
    everything, _ = kept_edges(parts.parties)
    assert out == into == literal_core(everything, least)


@settings(max_examples=40)
@given(partitions(), st.integers(2, 3), st.booleans())
def test_what_is_left_out_counts_nowhere(parts, least, directed):
    """Neither in sums nor in degrees: the model is that of the graph without those edges."""
    owns = with_data(parts)
    method = made(min_group=least)
    at, whole = bounds(parts), looped(parts)
    start = {own.name: a for own, a in zip(owns, at, strict=False)}
    kept = np.zeros(whole.shape, bool)
    for source, target in kept_edges([p.shared for p in parties_of(method, owns)])[0]:
        kept[start[source[0]] + source[1], start[target[0]] + target[1]] = True
    owner = np.repeat(np.arange(len(owns)), np.diff(at))
    assert_the_dense_round(method, owns, np.where(kept | (owner[:, None] == owner), whole, 0))


@settings(max_examples=60)
@given(partitions(), st.integers(1, 3))
def test_a_party_knows_beforehand_how_many_sums_it_tells_and_over_how_many_nodes(parts, least):
    method = made(min_group=least, layers_structure=2)
    parties = parties_of(method, with_data(parts))
    if sum(len(p.own.known(TRAIN)) for p in parties) == 0:
        return
    federation, recorder = recorded(parties, method.sends)
    nodes, width = sum(p.own.nodes for p in parties), parties[0]._parameters
    one_round(method, parties, np.ones((nodes, CLASSES)), np.zeros(width), federation)
    out, _ = kept_edges([p.shared for p in parties])
    for party in parties:
        me = party.own.name
        for kind, told, mine, theirs in (("Sums", party.told.forward, 1, 0), ("SlopeSums", party.told.backward, 0, 1)):
            for peer, sizes in told.items():
                over = [e[theirs] for e in out if e[mine][0] == me and e[theirs][0] == peer]
                counts = np.array([over.count(node) for node in set(over)])
                assert (sizes.one, sizes.two, sizes.more) == tuple(
                    int(c) for c in ((counts == 1).sum(), (counts == 2).sum(), (counts > 2).sum())
                )
                assert least == 1 or sizes.one == 0
                sent = [r for r in recorder.records if (r.kind, r.sender, r.receiver) == (kind, me, peer)]
                assert len(sent) == (2 if sizes.all else 0), "once in each hop"
                assert all(len(r.frame) == len(sent[0].frame) for r in sent)


# What is refused.


def ready(**options):
    """Three parties that have announced themselves."""
    method = made(**options)
    parties = parties_of(method, planted(3).parties)
    federation = LocalFederation(parties, method.sends, run="test", separate=True)
    labelled = sum(a.labelled for a in announced(federation).values())
    return federation, Carry(0, labelled, np.zeros(parties[0]._parameters))


@pytest.mark.parametrize(
    "questions",
    [
        (CarryOn(1),),
        (TurnBack(),),
        (Gather(),),
        ("carry", "carry"),
        ("carry", CarryOn(2)),
        ("carry", CarryOn(0)),
        ("carry", TurnBack()),
        ("carry", CarryOn(1), CarryOn(1)),
        ("carry", CarryOn(1), CarryOn(2), CarryOn(3)),
        ("carry", CarryOn(1), CarryOn(2), Gather()),
        ("carry", CarryOn(1), CarryOn(2), CountArrived()),
        ("carry", CarryOn(1), CarryOn(2), TurnBack(), CarryOn(1), Gather()),
        ("trained",),
        ("second round",),
    ],
    ids=str,
)
def test_a_party_counts_hops_and_rounds_itself(questions):
    federation, carry = ready(rounds=2)
    words = {"carry": carry, "trained": CarryTrained(carry.theta), "second round": replace(carry, round=1)}
    *before, last = [words.get(q, q) if isinstance(q, str) else q for q in questions]
    for question in before:
        federation.sum(question)
    with pytest.raises(RefusedMessage, match="does not belong here"):
        federation.sum(last)


def test_a_party_trains_as_many_rounds_as_were_agreed():
    method = made(rounds=1)
    parties = parties_of(method, planted(3).parties)
    federation = LocalFederation(parties, method.sends, run="test")
    method.train(federation, 0, Watch())
    with pytest.raises(RefusedMessage, match="does not belong here, in round 2"):
        federation.sum(Carry(1, 30, np.zeros(parties[0]._parameters)))


def test_a_border_that_two_parties_do_not_see_alike_is_refused():
    owns = list(planted(3).parties)
    border = owns[0].incoming
    shorter = replace(border, **{f: getattr(border, f)[:-9] for f in ("own", "peer", "node", "weight")})
    owns[0] = replace(owns[0], incoming=shorter)
    method = made()
    parties = parties_of(method, owns)
    federation = LocalFederation(parties, method.sends, run="test", separate=True)
    with pytest.raises(RefusedMessage, match="do the two have the same edges between them"):
        method.train(federation, 0, Watch())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"free": False}, "nothing to carry"),
        ({"local": False}, "without any feature"),
        ({"teleport": 0.1, "betas": (1, 0, 0)}, "give one of them"),
        ({"carry": "features", "local": False, "inference": "features"}, "no feature model to judge by"),
        ({"prune": 30}, "prunes nothing"),
        ({"features": "degree"}, "choose 'carry'"),
        ({"local_epochs": 2}, "FedSGD and by nothing else"),
        ({"teleport": 1.0}, "less than 1"),
        ({"min_group": 0}, "greater than or equal to 1"),
        ({"structure": "exchanged", "carry": "features"}, "'carry' is for propagated structure"),
        ({"structure": "exchanged", "min_group": 2}, "'min_group' is for propagated structure"),
        ({"structure": "shared"}, "'exchanged' or 'propagated'"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_in_a_sentence(options, words):
    with pytest.raises(FedstructError, match=words) as error:
        fs.methods.FedStruct(**{"structure": "propagated", "layers_structure": 3, **options})
    assert "\n" not in str(error.value)


def test_the_model_is_all_that_the_coordinator_holds():
    """No row of S, and no answer but the gradient of θ, ever comes to it."""
    result = fs.run(fs.methods.FedStruct(structure="propagated", **RUN), planted())
    assert set(result.trained.parameters) == {"theta"}
    book = result.ledger.frame()
    told = set(book.filter(book["receiver"] == "coordinator")["kind"])
    assert told == {"Announcement", "Done", ModelGradient.__name__, "Counts"}
