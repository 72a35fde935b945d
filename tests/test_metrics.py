"""Measures from summed counts, beside scikit-learn's from every node."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, average_precision_score, confusion_matrix, f1_score

from fedstruct.experiments.metrics import accuracy, auprc, macro_f1, recall_at
from fedstruct.methods.evaluation import BINS


@st.composite
def predictions(draw):
    """True and predicted classes; some classes may occur in neither."""
    classes = draw(st.integers(2, 6))
    some = st.integers(0, classes - 1)
    pairs = draw(st.lists(st.tuples(some, some), min_size=1, max_size=60))
    true, predicted = np.array(pairs).T
    return classes, true, predicted


def counted(classes, true, predicted):
    return confusion_matrix(true, predicted, labels=np.arange(classes))


@given(predictions())
def test_accuracy_is_scikit_learns(drawn):
    classes, true, predicted = drawn
    assert accuracy(counted(classes, true, predicted)) == pytest.approx(accuracy_score(true, predicted), abs=1e-12)


@given(predictions())
def test_macro_f1_is_scikit_learns_over_the_classes_that_occur(drawn):
    classes, true, predicted = drawn
    expected = f1_score(true, predicted, average="macro", zero_division=0)
    assert macro_f1(counted(classes, true, predicted)) == pytest.approx(expected, abs=1e-12)


def histogram(true, bins):
    scores = np.zeros((2, BINS), np.int64)
    np.add.at(scores, (true, bins), 1)
    return scores


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, BINS - 1) | st.integers(0, 4)), min_size=1, max_size=80))
def test_auprc_is_scikit_learns_average_precision(drawn):
    """On scores that are the bins' centres, where nothing is lost by counting; small bins make ties."""
    true, bins = np.array(drawn).T
    assume(true.any())
    expected = average_precision_score(true, (bins + 0.5) / BINS)
    assert auprc(histogram(true, bins)) == pytest.approx(expected, abs=1e-12)


def test_auprc_of_the_best_and_the_worst_order():
    assert auprc(histogram(np.array([0, 0, 1, 1]), np.array([1, 2, 3, 4]))) == 1.0
    assert auprc(histogram(np.array([1, 0, 0, 0]), np.array([1, 2, 3, 4]))) == 0.25
    assert auprc(histogram(np.array([1, 0, 0, 0]), np.array([7, 7, 7, 7]))) == 0.25
    assert auprc(histogram(np.array([1, 1]), np.array([0, 1023]))) == 1.0


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, BINS - 1) | st.integers(0, 4)), min_size=1, max_size=60),
    st.integers(1, 70),
)
def test_recall_is_the_mean_over_the_orders_of_ties(drawn, budget):
    """Among ties, each node is as likely within the budget as the next: its chance is the same for all of a bin."""
    true, bins = np.array(drawn).T
    assume(true.any())
    above = (bins[None, :] > bins[:, None]).sum(axis=1)
    level = (bins[None, :] == bins[:, None]).sum(axis=1)
    chance = np.clip((budget - above) / level, 0, 1)
    expected = chance[true == 1].sum() / true.sum()
    assert recall_at(histogram(true, bins), budget) == pytest.approx(expected, abs=1e-12)


def test_recall_without_ties_counts_the_first():
    scores = histogram(np.array([1, 0, 1, 0, 1]), np.array([9, 8, 7, 6, 5]))
    assert [recall_at(scores, k) for k in (1, 2, 3, 4, 5, 100)] == pytest.approx([1 / 3, 1 / 3, 2 / 3, 2 / 3, 1, 1])


def test_where_there_are_no_nodes_there_is_no_measure():
    assert accuracy(np.zeros((3, 3), np.int64)) is None
    assert macro_f1(np.zeros((3, 3), np.int64)) is None
    assert auprc(np.zeros((2, BINS), np.int64)) is None
    assert auprc(histogram(np.array([0, 0]), np.array([3, 900]))) is None
    assert recall_at(histogram(np.array([0, 0]), np.array([3, 900])), 1) is None


def test_measures_are_plain_numbers():
    confusion = np.array([[3, 1], [0, 4]])
    for measure in (accuracy(confusion), macro_f1(confusion), auprc(histogram(np.array([0, 1]), np.array([1, 2])))):
        assert type(measure) is float
