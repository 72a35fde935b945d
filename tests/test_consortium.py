"""The consortium: the same from the same seed, with the shares that were asked for, and no label in the attributes."""

from itertools import pairwise

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score
from sklearn.neural_network import MLPClassifier

import fedstruct as fs
from fedstruct.errors import FedstructError
from fedstruct.graph.consortium import consortium
from fedstruct.graph.consortium.accounts import KINDS, SHARES
from fedstruct.graph.consortium.laundering import THRESHOLD
from fedstruct.graph.consortium.patterns import SHAPES, SMALLEST, cut_into_patterns, cycle, layers, ring
from fedstruct.seeds import stream


@pytest.fixture(scope="module")
def tables():
    return consortium()


@pytest.fixture(scope="module")
def graph(tables):
    return tables.graph("consortium")


def crossing(graph):
    """The share of pairs of accounts that are at two banks."""
    u, v = graph.adjacency.tocoo().coords
    bank = graph.attributes["bank"]
    return (bank[u] != bank[v]).mean()


def test_the_same_seed_makes_the_same_tables_and_another_seed_others():
    one, again, other = (consortium(accounts=300, banks=3, seed=seed) for seed in (5, 5, 6))
    for table in ("nodes", "edges"):
        assert getattr(one, table).frame.equals(getattr(again, table).frame)
        assert not getattr(one, table).frame.equals(getattr(other, table).frame)


@pytest.mark.parametrize("cross", [0.0, 0.05, 0.3, 0.6, 1.0])
def test_the_share_of_crossing_pairs_is_that_asked_for(cross):
    graph = consortium(cross=cross, illicit=0.001).graph()
    assert crossing(graph) == pytest.approx(cross, abs=0.015)


@settings(max_examples=15)
@given(st.integers(1, 6), st.integers(200, 900), st.sampled_from([0.02, 0.1, 0.33]), st.integers(0, 9))
def test_accounts_banks_and_illicit_accounts_are_as_many_as_asked_for(banks, accounts, illicit, seed):
    made = consortium(banks=banks, accounts=accounts, cross=0.3 if banks > 1 else 0, illicit=illicit, seed=seed)
    nodes, edges = made.nodes.frame, made.edges.frame
    assert (nodes.height, nodes["bank"].n_unique()) == (accounts, banks)
    assert nodes["illicit"].sum() == round(illicit * accounts)
    assert set(nodes["kind"]) == set(KINDS)
    assert (nodes.group_by("bank").agg(polars.col("kind").n_unique())["kind"] == len(KINDS)).all()
    assert set(edges["source"]) | set(edges["target"]) == set(nodes["id"]), "nobody is without a payment"
    assert (edges["source"] != edges["target"]).all()
    assert edges["day"].is_sorted()
    assert edges["day"].min() >= 0
    assert edges["day"].max() <= 180
    assert edges["amount"].min() >= 1


def test_kinds_have_their_shares_and_sizes_of_banks_fall(tables):
    nodes = tables.nodes.frame
    found = [(nodes["kind"] == kind).mean() for kind in KINDS]
    assert found == pytest.approx(SHARES, abs=0.005)
    sizes = [nodes.filter(polars.col("bank") == f"bank-{i + 1}").height for i in range(5)]
    assert all(a > b for a, b in pairwise(sizes))


def test_degrees_and_amounts_have_heavy_tails(graph, tables):
    degree = np.sort(np.diff(graph.undirected().adjacency.indptr))
    assert degree[-1] > 30 * np.median(degree)
    amount = tables.edges.frame["amount"]
    assert amount.max() > 1000 * amount.median()


def test_span_says_how_many_patterns_cross_banks():
    bank = np.repeat(np.arange(4), 1000)
    for span in (0.0, 0.3, 1.0):
        patterns = list(cut_into_patterns(np.arange(4000), bank, span, stream(0, "patterns")))
        crossing = np.mean([len(np.unique(bank[p.members])) > 1 for p in patterns])
        assert crossing == pytest.approx(span, abs=0.06), "by chance one bank, or the last accounts of several"


def test_laundering_stays_below_the_threshold_and_is_among_ordinary_life(tables):
    illicit = set(tables.nodes.frame.filter(polars.col("illicit") == 1)["id"])
    edges = tables.edges.frame
    within = edges.filter(polars.col("source").is_in(illicit) & polars.col("target").is_in(illicit))
    assert 180 <= len(within.unique(["source", "target"])) <= 500
    large = within.filter(polars.col("amount") > 1000)
    assert large.height > within.height / 2
    assert large["amount"].max() <= THRESHOLD
    outside = edges.filter(polars.col("source").is_in(illicit) & ~polars.col("target").is_in(illicit))
    assert outside.height > 5 * len(illicit)


def test_payments_begin_when_both_accounts_are_open(tables):
    """What is known of an account's opening is its tenure, rounded to some four days."""
    tenure = dict(zip(tables.nodes.frame["id"], tables.nodes.frame["tenure"], strict=True))
    edges = tables.edges.frame.with_columns(
        opened=180 - 365 * polars.min_horizontal(*(polars.col(e).replace_strict(tenure) for e in ("source", "target")))
    )
    assert (edges["day"] >= edges["opened"] - 2).all()


# Attributes.


def attributes_tell(**parameters):
    """The AUPRC of a network that sees the attributes of half of the accounts, as a multiple of what chance has."""
    found = []
    for seed in range(3):
        graph = consortium(illicit=0.1, seed=seed, **parameters).graph()
        half = np.arange(graph.nodes) % 2 == 0
        network = MLPClassifier((16,), alpha=0.1, max_iter=30, random_state=0)
        with pytest.warns(match="Maximum iterations"):
            network.fit(graph.features[half], graph.labels[half])
        found.append(average_precision_score(graph.labels[~half], network.predict_proba(graph.features[~half])[:, 1]))
    return np.mean(found) / 0.1


def test_attributes_tell_as_much_as_asked_for():
    assert attributes_tell(tell=0) < 1.3
    assert 1.3 < attributes_tell() < 2.5
    assert attributes_tell(tell=4) > 5


# Patterns.


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_every_shape_joins_all_its_members_step_by_step(shape):
    for size in range(SMALLEST, SHAPES[shape][1] + 5):
        payer, payee, step = shape(size)
        assert len(payer) == len(payee) == len(step)
        assert set(payer) | set(payee) == set(range(size))
        assert (payer != payee).all()
        assert step.min() == 0
        assert len(set(zip(payer, payee, strict=True))) == len(payer)


def test_shapes_are_what_they_are_called():
    assert [p.tolist() for p in cycle(3)] == [[0, 1, 2], [1, 2, 0], [0, 1, 2]]
    assert [p.tolist() for p in layers(4)] == [[0, 0, 1, 2], [1, 2, 3, 3], [0, 0, 1, 1]]
    assert [p.tolist() for p in ring(4)] == [[0, 0, 1, 1, 2], [1, 2, 2, 3, 3], [0, 0, 1, 2, 2]]


@given(st.integers(SMALLEST, 200), st.integers(1, 5), st.floats(0, 1), st.integers(0, 9))
def test_patterns_take_every_member_once_and_none_is_too_small(count, banks, span, seed):
    bank = np.arange(500) % banks
    members = np.arange(500)[:count] * 2 % 499
    patterns = list(cut_into_patterns(members, bank, span, stream(seed, "patterns")))
    taken = np.concatenate([p.members for p in patterns])
    assert sorted(taken) == sorted(members)
    assert min(len(p.members) for p in patterns) >= SMALLEST


# Parameters.


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"banks": 0}, "parameter of consortium 'banks' is 0, but it should be greater than or equal to 1"),
        ({"cross": 1.5}, "parameter of consortium 'cross' is 1.5"),
        ({"illicit": 0}, "'illicit' is 0, but it should be greater than 0"),
        ({"accounts": 100}, "5 banks need at least 150 accounts, not 100"),
        ({"banks": 1}, "a single bank has nobody to pay at another one; give cross=0 or more banks"),
        ({"accounts": 150, "illicit": 0.01}, "fewer than the 3 of the smallest pattern"),
        ({"bank": 3}, "unknown parameter of consortium 'bank': did you mean 'banks'?"),
    ],
)
def test_a_wrong_parameter_is_one_sentence(wrong, expected):
    with pytest.raises(FedstructError) as caught:
        fs.generate.consortium(**wrong)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
