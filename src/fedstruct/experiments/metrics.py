"""Measures, from summed counts alone."""

from __future__ import annotations

import numpy as np


def accuracy(confusion: np.ndarray) -> float | None:
    """The share of nodes whose class was found; None where there are no nodes.

    >>> accuracy(np.array([[3, 1], [0, 4]]))
    0.875
    """
    total = confusion.sum()
    return float(np.trace(confusion) / total) if total else None


def macro_f1(confusion: np.ndarray) -> float | None:
    """The mean of the classes' F1 scores, over the classes that occur.

    >>> round(macro_f1(np.array([[3, 1], [0, 4]])), 4)
    0.873
    """
    hit = np.diag(confusion)
    either = confusion.sum(axis=0) + confusion.sum(axis=1)
    occurs = either > 0
    return float((2 * hit[occurs] / either[occurs]).mean()) if occurs.any() else None


def auprc(scores: np.ndarray) -> float | None:
    """Average precision of class 1, from histograms of its score; nodes in one bin count as ties.

    >>> auprc(np.array([[5, 0, 0], [0, 0, 5]]))
    1.0
    """
    negatives, positives = scores[:, ::-1].cumsum(axis=1)
    if not positives[-1]:
        return None
    seen = positives + negatives > 0
    precision = positives[seen] / (positives + negatives)[seen]
    gained = np.diff(positives[seen], prepend=0) / positives[-1]
    return float((precision * gained).sum())


def recall_at(scores: np.ndarray, budget: int) -> float | None:
    """The share of class 1 among the `budget` nodes of highest score, from histograms of its score.

    Nodes in one bin count as ties: where the budget ends within a bin, its expected share of it is taken.

    >>> recall_at(np.array([[5, 2, 0], [0, 2, 4]]), 6)
    0.8333333333333334
    """
    negatives, positives = scores[:, ::-1]
    if not positives.any():
        return None
    nodes = positives + negatives
    taken = np.clip(budget - (nodes.cumsum() - nodes), 0, nodes)
    return float((positives * taken / np.maximum(nodes, 1)).sum() / positives.sum())
