"""Stepping as one or one by one: the same gradient, the same run, the same ledger; and dropout that knows no order."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import fedstruct as fs
from fedstruct.federation.local import LocalFederation
from fedstruct.federation.watch import Watch
from fedstruct.methods.fedstruct import Weights
from fedstruct.models.decoupled import DecoupledGCN
from fedstruct.models.dropout import dropped_relu, row_keys
from fedstruct.models.flat import Flat
from fedstruct.models.mlp import MLP
from fedstruct.seeds import key
from strategies import keep_mask, ready

OPTIONS = {"layers_structure": 3, "prune": 8, "rounds": 12, "feature_hidden": 16, "dropout": 0.5, "lr_structure": 0.3}


def parts_of(parties=4, nodes=150, sparse=False, seed=0):
    graph = fs.generate.planted(nodes=nodes, classes=3, features=12, seed=5)
    if sparse:
        graph = replace(graph, features=csr_array(np.where(graph.features > 0.5, graph.features, 0)))
    return fs.partition.random(fs.split(graph, seed, train=0.2), parties, seed)


def both(parts, seed=0, **options):
    """The same run with parties stepping as one, and one by one."""
    method = fs.methods.FedStruct(**{**OPTIONS, **options})
    return fs.run(method, parts, seed), fs.run(method, parts, seed, separate=True)


def one_step(parts, separate, **options):
    """The federation's gradient at parameters away from the start, in round 3, under dropout."""
    method = fs.methods.FedStruct(**{**OPTIONS, **options})
    federation, _, reach = ready(method, parts, separate=separate)
    graph, rng = parts.graph, np.random.default_rng(8)
    kind = np.dtype(method.options.dtype)
    anybody = np.unique(np.concatenate(list(reach.values())))
    place = {name: np.searchsorted(anybody, columns) for name, columns in reach.items()}
    length = len(Flat(MLP(graph.features.shape[1], (16,), graph.classes, torch.Generator())))
    question = Weights(
        theta=(rng.normal(size=length) / 3).astype(kind),
        structure=rng.normal(size=(len(anybody), graph.classes)).astype(kind),
        round=3,
    )
    return federation.sum(question, place)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("parties", [1, 2, 7])
@pytest.mark.parametrize(("dtype", "share"), [("float32", 1e-6), ("float64", 1e-12)])
def test_one_steps_gradient(parties, sparse, dtype, share):
    """To a millionth of its largest entry in float32."""
    parts = parts_of(parties, sparse=sparse)
    fused, separate = (one_step(parts, mode, dtype=dtype) for mode in (False, True))
    for field in ("theta", "structure"):
        one, other = getattr(fused, field), getattr(separate, field)
        assert one.dtype == other.dtype == dtype
        largest = np.abs(other).max()
        assert largest > 1e-3
        np.testing.assert_allclose(one, other, rtol=0, atol=share * largest)
    assert fused.loss == pytest.approx(separate.loss, rel=share)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("parties", [1, 3, 10])
def test_a_whole_run_in_float64(parties, sparse):
    fused, separate = both(parts_of(parties, sparse=sparse), dtype="float64")
    for name in ("theta", "structure"):
        one, other = fused.trained.parameters[name], separate.trained.parameters[name]
        assert one.dtype == np.float64
        assert np.abs(one).max() > 0.1, "it was trained"
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(fused.trained.confusion, separate.trained.confusion)
    losses = [[h["loss"] for h in r.history] for r in (fused, separate)]
    assert len(losses[0]) == OPTIONS["rounds"]
    np.testing.assert_allclose(*losses, rtol=0, atol=1e-9)


def test_a_whole_run_in_float32_counts_alike():
    """Adam amplifies rounding; the counts then differ by at most 0.1 % of the nodes."""
    fused, separate = both(parts_of(5, nodes=1200))
    differ = np.abs(fused.trained.confusion - separate.trained.confusion).sum() / 2
    assert differ <= 0.001 * fused.trained.confusion.sum()


BY = ["step", "sender", "receiver", "kind", "entry"]


def rows_of(ledger):
    return ledger.frame().drop("run").sort(BY, maintain_order=True)


@pytest.mark.parametrize("parties", [1, 2, 5])
@pytest.mark.parametrize("hops", [1, 3])
def test_the_ledgers_agree_row_by_row(parties, hops):
    """Step, sender, receiver, kind, sources, words, rows, bytes, entry: all but the name of the run."""
    fused, separate = (rows_of(r.ledger) for r in both(parts_of(parties), rounds=3, layers_structure=hops))
    assert fused.columns == separate.columns
    assert fused.unique(subset=BY).height == fused.height, "sorting leaves no two rows in any order"
    assert fused.equals(separate)
    assert set(fused["kind"]) >= {"Weights", "Gradient", "Evaluate", "Counts"}
    assert ("Blocks" in set(fused["kind"])) == (parties > 1 and hops > 1)


@pytest.mark.parametrize("kind", ["fedstruct", "fedsgd-dgcn"])
def test_balanced_classes_step_alike(kind):
    """Questions that parties do not answer as one come to each of them."""
    options = {"class_weight": "balanced", "rounds": 3, "dtype": "float64", "feature_hidden": 8}
    method, parts = fs.methods.METHODS[kind](**options), parts_of()
    fused, separate = (fs.run(method, parts, separate=apart) for apart in (False, True))
    assert rows_of(fused.ledger).equals(rows_of(separate.ledger))
    assert {"CountClasses", "Balance"} <= set(fused.ledger.frame()["kind"])
    np.testing.assert_allclose(*([h["loss"] for h in r.history] for r in (fused, separate)), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(fused.trained.confusion, separate.trained.confusion)


def test_the_results_count_the_same_traffic():
    fused, separate = both(parts_of(), rounds=3)
    assert fused.bytes == separate.bytes
    assert fused.messages == separate.messages
    assert all(count > 0 for count in fused.bytes.values())


@pytest.mark.parametrize("separate", [False, True])
def test_what_was_sent_was_received(separate):
    """Double entry: each row that a sender wrote stands in its receiver's book with the same rows and bytes."""
    ledger = both(parts_of(), rounds=3)[separate].ledger.frame().drop("run")
    halves = {
        entry: ledger.filter(pl.col("entry") == entry).drop("entry").sort(BY[:-1]) for entry in ("sent", "received")
    }
    assert halves["sent"].height + halves["received"].height == ledger.height > 0
    assert halves["sent"].equals(halves["received"])


def test_each_site_writes_down_its_own_messages_only():
    parts = parts_of()
    method = fs.methods.FedStruct(**{**OPTIONS, "rounds": 2})
    names = tuple(p.name for p in parts.parties)
    parties = [method.party(own, names, 0) for own in parts.parties]
    federation = LocalFederation(parties, method.sends, run="test", separate=True)
    method.train(federation, 0, Watch())
    for name, site in federation.sites.items():
        book = site.ledger.frame()
        assert book.height > 0
        assert ((book["sender"] == name) != (book["receiver"] == name)).all()
        assert [entry == "sent" for entry in book["entry"]] == [sender == name for sender in book["sender"]]
    books = [federation.ledger, *(s.ledger for s in federation.sites.values())]
    assert sum(b.frame().height for b in books) == federation.books.frame().height


@pytest.mark.parametrize("name", ["fedstruct", "fedstruct-propagated", "fedsgd-mlp"])
def test_the_coordinators_own_book_is_the_same_however_parties_step(name):
    """What it sent stands there as sent, and what it received as received."""
    parts, books = parts_of(), []
    names = tuple(p.name for p in parts.parties)
    method = fs.methods.METHODS[name](rounds=2, feature_hidden=8)
    for separate in (False, True):
        parties = [method.party(own, names, 0) for own in parts.parties]
        federation = LocalFederation(parties, method.sends, run="test", separate=separate)
        method.train(federation, 0, Watch())
        books.append(rows_of(federation.ledger))
    assert books[0].equals(books[1])
    sent = books[0].filter(pl.col("sender") == "coordinator")
    assert set(sent["entry"]) == {"sent"}
    assert 0 < sent.height < books[0].height


@pytest.mark.parametrize("name", fs.methods.METHODS)
def test_every_run_drops_other_units_and_every_party_of_a_run_the_same(name):
    method, parts = fs.methods.METHODS[name](), parts_of()
    names = tuple(p.name for p in parts.parties)
    draws = [{method.party(own, names, seed).draws for own in parts.parties} for seed in range(5)]
    assert [len(of_run) for of_run in draws] == [1] * 5
    assert len(set.union(*draws)) == 5


def same(one, other):
    """Bit for bit: parameters, counts, history, ledger."""
    return (
        all(one.trained.parameters[k].tobytes() == v.tobytes() for k, v in other.trained.parameters.items())
        and one.trained.confusion.tobytes() == other.trained.confusion.tobytes()
        and one.history == other.history
        and one.ledger.frame().equals(other.ledger.frame())
    )


@pytest.mark.parametrize("separate", [False, True])
def test_the_same_seed_gives_the_same_result_bit_for_bit(separate):
    def result():
        return fs.run(fs.methods.FedStruct(**OPTIONS), parts_of(seed=3), 3, separate=separate)

    torch.manual_seed(1)
    np.random.seed(1)
    one = result()
    torch.manual_seed(2)
    np.random.seed(2)
    assert same(one, result()), "torch's and numpy's global generators have no part in it"


def test_a_run_leaves_the_global_generators_alone():
    before = torch.random.get_rng_state()
    legacy = np.random.get_state()[1].copy()
    fs.run(fs.methods.FedStruct(**OPTIONS), parts_of())
    assert torch.equal(before, torch.random.get_rng_state())
    np.testing.assert_array_equal(legacy, np.random.get_state()[1])


def test_another_seed_gives_another_result():
    """On the same parts and split: other initial weights, other dropout; and on other parts, another partition."""
    parts = parts_of()
    one, other = (fs.run(fs.methods.FedStruct(**OPTIONS), parts, seed) for seed in (0, 1))
    assert not same(one, other)
    assert one.trained.parameters["theta"].tobytes() != other.trained.parameters["theta"].tobytes()
    assert one.history[0] != other.history[0]
    assert not np.array_equal(parts.owner, parts_of(seed=1).owner)
    assert not np.array_equal(parts.graph.split, parts_of(seed=1).graph.split)


WHEN = (0, 4)
SIZES = st.lists(st.integers(0, 6), min_size=1, max_size=5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.99])
def test_dropout_is_written_out(rate, dtype):
    """The compiled loop, and the same in whole arrays: a 32-bit finaliser of two keys; and its gradient."""
    rows = row_keys(["bank", "shop"], [40, 2])
    units = np.arange(9, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key(*WHEN))
    units = ((units ^ (units >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(32)
    mixed = rows[:, None] ^ units.astype(np.uint32)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        mixed = (mixed ^ (mixed >> np.uint32(shift))) * np.uint32(factor)
    keep = torch.from_numpy((mixed ^ (mixed >> np.uint32(16))) >= np.uint32(rate * 2**32))
    given, pull = (torch.from_numpy(np.random.default_rng(i).normal(size=(42, 9))).to(dtype) for i in range(2))
    found, expected = (given.T.contiguous().T.requires_grad_(), given.clone().requires_grad_())
    ours, plain = dropped_relu(found, rows, rate, *WHEN), torch.relu(expected) * keep / (1 - rate)
    torch.testing.assert_close(ours, plain)
    ours.backward(pull)
    plain.backward(pull)
    torch.testing.assert_close(found.grad, expected.grad)


@given(SIZES, st.integers(1, 5), st.floats(0, 0.99))
def test_a_nodes_mask_does_not_depend_on_who_is_stacked_with_it(sizes, width, rate):
    """Keys and masks of parties side by side are theirs one by one, one below the other."""
    names = [f"party-{i}" for i in range(len(sizes))]
    together = row_keys(names, sizes)
    apart = [row_keys([name], [size]) for name, size in zip(names, sizes, strict=True)]
    np.testing.assert_array_equal(together, np.concatenate(apart))
    masks = torch.cat([keep_mask(keys, width, rate, *WHEN) for keys in apart])
    assert torch.equal(keep_mask(together, width, rate, *WHEN), masks)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 99), max_size=20), st.integers(1, 8), st.integers(0, 3))
def test_a_mask_of_some_rows_is_those_rows_of_the_mask(rows, narrow, round_number):
    keys = row_keys(["bank"], [100])
    whole = keep_mask(keys, 8, 0.3, 7, round_number)
    assert torch.equal(keep_mask(keys[rows], 8, 0.3, 7, round_number), whole[rows])
    assert torch.equal(keep_mask(keys, narrow, 0.3, 7, round_number), whole[:, :narrow])


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_the_models_draws_belong_to_nodes_not_to_places(layers):
    """A node's logits under dropout are the same in a model of few nodes, in any order, as in that of all."""
    own = parts_of(1).parties[0]
    keys = row_keys([own.name], [own.nodes])
    mlp = MLP(own.features.shape[1], (16,), own.classes, torch.Generator().manual_seed(0), torch.float64)

    def logits(nodes, round_number=2):
        model = DecoupledGCN(own.inner, own.features, nodes, layers, keys, torch.float64)
        return model.logits(mlp, 0.5, (0, round_number)).detach()

    whole = logits(np.arange(own.nodes))
    some = np.random.default_rng(0).permutation(own.nodes)[:20]
    torch.testing.assert_close(logits(some), whole[some], rtol=0, atol=1e-10)
    assert not torch.allclose(whole, logits(np.arange(own.nodes), 3))


def test_rate_0_keeps_everything():
    assert keep_mask(row_keys(["bank"], [500]), 32, 0.0, *WHEN).all()


def test_without_dropout_a_round_has_no_draws():
    """With rate 0 the same weights give the same gradient in every round; with a rate they do not."""
    parts = parts_of()
    for rate, equal in ((0.0, True), (0.5, False)):
        _, parties, reach = ready(fs.methods.FedStruct(**{**OPTIONS, "dropout": rate}), parts)
        own = parties[0]
        length = len(Flat(MLP(12, (16,), 3, torch.Generator())))
        theta = np.random.default_rng(1).normal(size=length).astype(np.float32)
        structure = np.zeros((len(reach[own.own.name]), 3), np.float32)
        first, second = (own.answer(Weights(theta=theta, structure=structure, round=t)).theta for t in (0, 1))
        assert (first.tobytes() == second.tobytes()) is equal


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5, 0.8, 0.99])
def test_the_share_that_is_kept(rate):
    """In all, per node and per unit: within five standard deviations of 1 - rate."""
    keep = keep_mask(row_keys(["a", "b"], [3000, 1000]), 64, rate, 1, 2).double()
    for shares, draws in ((keep.mean().reshape(1), keep.numel()), (keep.mean(0), 4000), (keep.mean(1), 64)):
        spread = (rate * (1 - rate) / draws) ** 0.5
        # A binomial of few draws has a longer tail than the normal distribution.
        assert (shares - (1 - rate)).abs().max() <= 5 * spread + 2 / draws


def test_draws_of_other_seeds_rounds_parties_and_units_are_unrelated():
    """Two masks of rate 1/2 agree on half of their places."""
    keys = row_keys(["bank"], [4000])
    mask = keep_mask(keys, 32, 0.5, 0, 0)
    others = [
        keep_mask(keys, 32, 0.5, 1, 0),
        keep_mask(keys, 32, 0.5, 0, 1),
        keep_mask(row_keys(["shop"], [4000]), 32, 0.5, 0, 0),
        mask.roll(1, dims=0),
        mask.roll(1, dims=1),
        mask.roll(7, dims=0).roll(3, dims=1),
    ]
    for other in others:
        agree = (mask == other).double().mean().item()
        assert agree == pytest.approx(0.5, abs=5 * 0.5 / mask.numel() ** 0.5)
