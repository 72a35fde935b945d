"""Evaluation by counting: parties answer with sums, from which every measure follows; never with labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedstruct.federation.message import EVERYTHING, Message, array
from fedstruct.graph.graph import TEST
from fedstruct.methods.divergence import must_be_finite

BINS = 1024
"""Resolution of the score histograms of two-class problems."""


@dataclass(frozen=True, eq=False)
class Counts(Message):
    sources = EVERYTHING
    tells = "how many nodes of each class a party has in each split, and how the model classifies them"
    unit = "confusion"
    confusion: np.ndarray = array("i8", "splits", "classes", "classes")
    scores: np.ndarray = array("i8", "splits", "classes", "bins")


def counted(logits: Tensor, labels: np.ndarray, split: np.ndarray) -> Counts:
    """Count nodes by split, true class and predicted class; with two classes, by score as well.

    >>> counted(torch.tensor([[2.0, 1.0], [0.0, 3.0]]), np.array([0, 0]), np.array([3, 3])).confusion[3].tolist()
    [[1, 1], [0, 0]]
    """
    must_be_finite(logits, "a logit of the trained model")
    splits, classes = TEST + 1, logits.shape[1]
    predicted = logits.argmax(dim=1).numpy()
    at = (split.astype(np.int64) * classes + labels) * classes + predicted
    confusion = np.bincount(at, minlength=splits * classes * classes).reshape(splits, classes, classes)
    bins = BINS if classes == 2 else 0
    scores = np.zeros((splits, classes, bins), np.int64)
    if bins:
        score = torch.softmax(logits, dim=1)[:, 1].numpy()
        np.add.at(scores, (split, labels, np.minimum((score * bins).astype(np.int64), bins - 1)), 1)
    return Counts(confusion.astype(np.int64), scores)
