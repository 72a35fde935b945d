"""Algorithm 3, run as messages, against dense arithmetic and against a slow literal version of itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedstruct as fs
from fedstruct.errors import RefusedMessage
from fedstruct.federation.local import LocalFederation
from fedstruct.federation.watch import Watch
from fedstruct.methods.exchange import (
    EXCHANGE,
    Blocks,
    Collect,
    ExchangeParty,
    Multiply,
    Sizes,
    StructureOptions,
    acquire,
)
from strategies import EXACT_WEIGHT, bounds, dense, exchange, looped, partitions, row_normalised


def combined(parts, betas):
    """Σ β_l Â^l by dense powers of the whole matrix."""
    a = row_normalised(looped(parts))
    return sum(beta * np.linalg.matrix_power(a, hop) for hop, beta in enumerate(betas, start=1))


def all_rows(parties, what="reach"):
    return np.vstack([getattr(p, what).toarray() for p in parties])


@settings(max_examples=150)
@given(partitions(), st.integers(1, 5), st.booleans())
def test_unpruned_the_parties_acquire_the_last_power(parts, hops, separate):
    parties = exchange(parts, separate, layers_structure=hops, prune_rule="none")
    expected = combined(parts, [0] * (hops - 1) + [1])
    np.testing.assert_allclose(all_rows(parties), expected, rtol=0, atol=1e-12)


@settings(max_examples=150)
@given(partitions(), st.lists(st.floats(-1, 1), min_size=1, max_size=5))
def test_unpruned_the_parties_acquire_any_sum_of_powers(parts, betas):
    parties = exchange(parts, layers_structure=len(betas), betas=tuple(betas), prune_rule="none")
    np.testing.assert_allclose(all_rows(parties), combined(parts, betas), rtol=0, atol=1e-12)


@settings(max_examples=50)
@given(partitions(), st.integers(1, 4))
def test_a_budget_as_wide_as_the_graph_prunes_nothing(parts, hops):
    wide = exchange(parts, layers_structure=hops, prune=len(parts) * parts.graph.nodes)
    unpruned = exchange(parts, layers_structure=hops, prune_rule="none")
    assert_same_rows(wide, unpruned)


@pytest.mark.parametrize("directed", [False, True])
def test_parties_of_one_node_and_one_party_of_all(directed):
    edges = np.random.default_rng(1).integers(0, 8, size=(2, 20))
    graph = fs.Graph.from_edges(edges, features=np.ones((8, 1)), labels=np.zeros(8, int), directed=directed)
    for owners in (range(8), [0] * 8):
        parts = fs.partition.by_vector(graph, list(owners))
        parties = exchange(parts, layers_structure=4, prune_rule="none")
        np.testing.assert_allclose(all_rows(parties), combined(parts, [0, 0, 0, 1]), rtol=0, atol=1e-12)


def test_a_directed_weighted_edge_keeps_its_sources_weight():
    """0 → 1 weighs 2 and 1 → 0 weighs 5: row 0 has the one, row 1 the other, in both parties' hands."""
    graph = fs.Graph.from_edges(
        [[0, 1, 1], [1, 0, 2]], weights=[2, 5, 4], features=np.ones((3, 1)), labels=[0, 0, 0], directed=True
    )
    parts = fs.partition.by_vector(graph, ["a", "b", "c"])
    a, b, c = exchange(parts, layers_structure=1)
    weights = [[1, 2, 0], [5, 1, 4], [0, 0, 1]]
    np.testing.assert_array_equal(all_rows([a, b, c], "rows"), weights)
    np.testing.assert_array_equal(np.hstack([p.columns.toarray() for p in (a, b, c)]), weights)
    np.testing.assert_array_equal(all_rows([a, b, c]), [[1 / 3, 2 / 3, 0], [0.5, 0.1, 0.4], [0, 0, 1]])
    a, b, c = exchange(parts, layers_structure=2)
    posted = dense(a.received[2]["b"], (1, 3))
    np.testing.assert_allclose(posted, [[2 * 0.5, 2 * 0.1, 2 * 0.4]], rtol=1e-15)
    assert len(c.received[2]["b"].values) == 0, "c has no edge to b, though b has one to c"
    np.testing.assert_allclose(dense(b.received[2]["c"], (1, 3)), [[0, 0, 4]], rtol=1e-15)


@settings(max_examples=40)
@given(partitions(weights=EXACT_WEIGHT, directed=True))
def test_every_entry_of_a_is_with_its_source_and_with_its_target(parts):
    """Ã^[i] and Ã_i, as the parties build them from their own edges, are the rows and columns of A + I."""
    parties = exchange(parts, layers_structure=1)
    np.testing.assert_array_equal(all_rows(parties, "rows"), looped(parts))
    np.testing.assert_array_equal(np.hstack([p.columns.toarray() for p in parties]), looped(parts))


def largest(block, budget):
    """The pruned block: its `budget` largest entries, of equal ones those first in row and column order."""
    order = sorted((-block[v, u], v, u) for v in range(block.shape[0]) for u in range(block.shape[1]) if block[v, u])
    pruned = np.zeros_like(block)
    for _, v, u in order[:budget]:
        pruned[v, u] = block[v, u]
    return pruned


def literal_algorithm_3(parts, hops, prune, keep=None):
    """Algorithm 3 as it is printed, over dense blocks: the posts B_ijk of each hop, and the last power's rows."""
    K, at, whole = len(parts), bounds(parts), looped(parts)
    own = [range(at[i], at[i + 1]) for i in range(K)]
    tilde = [[whole[np.ix_(own[i], own[j])] for j in range(K)] for i in range(K)]
    degrees = [whole[own[i]].sum(axis=1)[:, None] for i in range(K)]
    power = [[tilde[i][j] / degrees[i] for j in range(K)] for i in range(K)]
    posts = {}
    for hop in range(2, hops + 1):
        for i in range(K):
            for k in range(K):
                for j in range(K):
                    block = np.zeros((len(own[i]), len(own[j])))
                    for v in range(len(own[i])):
                        for u in range(len(own[k])):
                            block[v] += tilde[i][k][v, u] * power[k][j][u]
                    posts[hop, i, j, k] = largest(block, -(-prune // K) * len(own[i]))
        for i in range(K):
            for j in range(K):
                total = np.zeros((len(own[i]), len(own[j])))
                for k in range(K):
                    total += posts[hop, i, j, k]
                power[i][j] = total / degrees[i]
            if keep is not None:
                rows = largest(np.hstack(power[i]), keep * len(own[i]))
                power[i] = [rows[:, at[j] : at[j + 1]] for j in range(K)]
    return posts, np.vstack([np.hstack(rows) for rows in power])


def assert_as_literal(parts, hops, prune, keep):
    """Every post of every hop holds the same entries with the same values, and so do the rows at the end."""
    posts, power = literal_algorithm_3(parts, hops, prune, keep)
    parties = exchange(parts, layers_structure=hops, prune=prune, keep=keep)
    at = bounds(parts)
    for hop in range(2, hops + 1):
        for i, receiver in enumerate(parties):
            for k, sender in enumerate(parties):
                blocks = receiver.received[hop][sender.own.name]
                sent = dense(blocks, (receiver.own.nodes, at[-1]))
                assert len(blocks.columns) == np.count_nonzero(sent), "each entry once, and no zero among them"
                for j in range(len(parts)):
                    block = sent[:, at[j] : at[j + 1]]
                    np.testing.assert_array_equal(block, posts[hop, i, j, k], err_msg=f"hop {hop}, B_{i}{j}{k}")
    np.testing.assert_array_equal(all_rows(parties), power)


@settings(max_examples=150)
@given(partitions(12, EXACT_WEIGHT), st.integers(2, 5), st.integers(1, 9), st.none() | st.integers(1, 6))
def test_block_pruning_is_algorithm_3_to_the_letter(parts, hops, prune, keep):
    assert_as_literal(parts, hops, prune, keep)


@pytest.mark.parametrize("keep", [None, 5])
@pytest.mark.parametrize(("prune", "parties"), [(4, 3), (7, 4), (1, 5), (6, 6)])
def test_block_pruning_to_the_letter_where_it_bites(prune, parties, keep):
    """A dense unweighted graph is full of ties; a budget of ⌈p/K⌉ per row drops most of them."""
    rng = np.random.default_rng(prune)
    graph = fs.Graph.from_edges(rng.integers(0, 26, size=(2, 90)), features=np.ones((26, 1)), labels=np.zeros(26, int))
    parts = fs.partition.random(graph, parties, seed=prune)
    assert_as_literal(parts, 4, prune, keep)
    ties = literal_algorithm_3(parts, 2, parties * 26)[0]
    full = sum(np.count_nonzero(block) for block in ties.values())
    kept = sum(np.count_nonzero(block) for block in literal_algorithm_3(parts, 2, prune)[0].values())
    assert kept < full, "something is pruned"
    assert any(len(np.unique(block[block > 0])) < np.count_nonzero(block) for block in ties.values()), "there are ties"


def test_of_equal_entries_the_first_in_the_partys_own_numbering_are_kept():
    """A star whose centre belongs to another party: its 12 leaves are alike, and each leaf keeps the first of them."""
    leaves = np.arange(1, 13)
    graph = fs.Graph.from_edges([np.zeros(12, int), leaves], features=np.ones((13, 1)), labels=np.zeros(13, int))
    parts = fs.partition.by_vector(graph, ["hub"] + ["leaf"] * 12, seed=3)
    hub, leaf = exchange(parts, layers_structure=2, prune=2)
    sent = dense(leaf.received[2]["hub"], (12, 13))
    full = np.full(12, 1 / 13)
    np.testing.assert_array_equal(sent[:, 0], full)
    np.testing.assert_array_equal(sent[0, 1:], full, err_msg="budget 1 · 12, all spent on the first row")
    assert not sent[1:, 1:].any()
    assert hub.exposure.inner_edges == 0


@settings(max_examples=100)
@given(partitions(), st.integers(1, 4), st.integers(1, 9))
def test_no_more_entries_are_sent_than_the_bound(parts, hops, prune):
    parties = exchange(parts, layers_structure=hops, prune=prune)
    n, K = parts.graph.nodes, len(parts)
    sent = sum(
        len(blocks.columns)
        for p in parties
        for by_sender in p.received.values()
        for sender, blocks in by_sender.items()
        if sender != p.own.name
    )
    assert sent <= n * (hops - 1) * K * (K - 1) * -(-prune // K)


def complete(nodes):
    u, v = np.nonzero(1 - np.eye(nodes))
    split = np.full(nodes, 3)
    split[: nodes // 2] = 1
    return fs.Graph.from_edges([u, v], features=np.ones((nodes, 1)), labels=np.arange(nodes) % 2, split=split)


@pytest.mark.parametrize(("prune", "parties", "hops"), [(6, 4, 3), (1, 4, 2), (5, 5, 4), (7, 1, 3), (8, 3, 1)])
def test_a_complete_graph_reaches_the_bound_and_the_result_says_so(prune, parties, hops):
    """With p = 1 and K = 4 the bound is half as much again as the paper's L K p n."""
    graph = complete(40)
    result = fs.run(
        fs.methods.FedStruct(layers_structure=hops, prune=prune, rounds=1), fs.partition.random(graph, parties, seed=0)
    )
    at_most = 40 * (hops - 1) * parties * (parties - 1) * -(-prune // parties)
    assert result.exchange["entries"] == at_most
    assert result.exchange["at_most"] == at_most
    assert result.exchange["paper"] == hops * parties * prune * 40
    assert result.exchange["ratio_to_paper"] == at_most / (hops * parties * prune * 40)
    if (prune, parties, hops) == (1, 4, 2):
        assert result.exchange["ratio_to_paper"] == 1.5


@pytest.mark.parametrize("rule", ["block", "none"])
@pytest.mark.parametrize("separate", [False, True])
def test_the_result_counts_the_entries_that_were_sent(rule, separate):
    graph = fs.generate.planted(nodes=120, seed=4)
    parts = fs.partition.random(fs.split(graph, seed=0, train=0.3), 4, seed=0)
    options = {"layers_structure": 3, "prune": 10, "prune_rule": rule}
    parties = exchange(parts, **options)
    sent = sum(
        len(blocks.values)
        for p in parties
        for by_sender in p.received.values()
        for sender, blocks in by_sender.items()
        if sender != p.own.name
    )
    result = fs.run(fs.methods.FedStruct(rounds=1, **options), parts, separate=separate)
    assert result.exchange["entries"] == sent == result.ledger.sent(kind=Blocks).rows
    assert 0 < sent <= result.exchange["at_most"]
    assert result.exchange["ratio_to_paper"] == sent / (3 * 4 * 10 * 120)


def assert_same_rows(parties, others):
    for one, other in zip(parties, others, strict=True):
        for what in ("power", "reach"):
            a, b = getattr(one, what), getattr(other, what)
            assert a.shape == b.shape
            assert a.indptr.tolist() == b.indptr.tolist()
            assert a.indices.tolist() == b.indices.tolist()
            assert a.data.tobytes() == b.data.tobytes()


@settings(max_examples=50)
@given(partitions(), st.integers(1, 4), st.integers(1, 9), st.sampled_from(["block", "none"]))
def test_sealed_and_unsealed_federations_keep_identical_entries(parts, hops, prune, rule):
    options = {"layers_structure": hops, "prune": prune, "prune_rule": rule}
    fused, separate = exchange(parts, **options), exchange(parts, separate=True, **options)
    assert_same_rows(fused, separate)
    for one, other in zip(fused, separate, strict=True):
        for hop, by_sender in one.received.items():
            for sender, blocks in by_sender.items():
                again = other.received[hop][sender]
                for field in Blocks.specs():
                    assert getattr(blocks, field).tobytes() == getattr(again, field).tobytes()


def test_the_rows_that_run_trains_on_are_those_of_the_exchange():
    """Fused and separate runs end with bit-identical Ā in their parties' hands, at a size where order could matter."""
    graph = fs.generate.planted(nodes=400, degree=8, seed=2)
    parts = fs.partition.random(graph, 7, seed=1)
    fused = exchange(parts, layers_structure=5, prune=20)
    assert_same_rows(fused, exchange(parts, separate=True, layers_structure=5, prune=20))
    assert_same_rows(fused, exchange(parts, layers_structure=5, prune=20))


@pytest.mark.parametrize(
    "questions",
    [
        (Multiply(1),),
        (Multiply(3),),
        (Collect(2),),
        (Multiply(2), Collect(3)),
        (Multiply(2), Collect(2), Multiply(2)),
        (Multiply(2), Collect(2), Collect(2)),
        (Multiply(2), Collect(2), Multiply(3), Collect(3), Multiply(4)),
    ],
    ids=str,
)
@pytest.mark.parametrize("separate", [False, True])
def test_a_party_counts_the_hops_of_the_exchange_itself(questions, separate):
    """And gives nothing away beyond those that were agreed."""
    parts = fs.partition.random(fs.generate.planted(nodes=30, degree=4, seed=0), 3)
    structure, names = StructureOptions(layers_structure=3), tuple(p.name for p in parts.parties)
    parties = [ExchangeParty(own, names, structure) for own in parts.parties]
    federation = LocalFederation(parties, EXCHANGE, run="test", separate=separate)
    federation.ask(Sizes(np.diff(bounds(parts))))
    for question in questions[:-1]:
        federation.ask(question)
    sent = federation.books.sent(kind=Blocks).messages
    with pytest.raises(RefusedMessage):
        federation.ask(questions[-1])
    assert federation.books.sent(kind=Blocks).messages == sent


@pytest.mark.parametrize("greedy", [{"prune": 20}, {"prune_rule": "none"}], ids=str)
def test_a_peer_that_sends_more_than_was_agreed_is_refused(greedy):
    parts = fs.partition.random(fs.generate.planted(nodes=40, degree=12, seed=0), 2)
    names, agreed = tuple(p.name for p in parts.parties), {"layers_structure": 3, "prune": 2}
    structures = [StructureOptions(**agreed), StructureOptions(**{**agreed, **greedy})]
    parties = [ExchangeParty(*each) for each in zip(parts.parties, [names] * 2, structures, strict=True)]
    federation = LocalFederation(parties, EXCHANGE, run="test", separate=True)
    with pytest.raises(RefusedMessage, match=r"Blocks\.columns has \d+ entries; at most \d+ are allowed"):
        acquire(federation, structures[0], np.diff(bounds(parts)), Watch())
