"""A model over many rows, some at a time: the same values and the same gradient as all at once."""

import numpy as np
import pytest
import torch

from fedstruct.models import pieces
from fedstruct.models.dropout import row_keys
from fedstruct.models.feature_rows import FeatureRows
from fedstruct.models.mlp import MLP, StandardRows
from fedstruct.models.pieces import NodeFeatures, in_pieces

NODES = 50
TABLE = np.random.default_rng(0).normal(size=(NODES, 6)).astype(np.float32)
KEYS = row_keys(["north", "south"], [20, 30])


def model():
    return MLP(6, (8,), 3, torch.Generator().manual_seed(0), torch.float64)


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize("some", [1, 7, 50, 64])
def test_values_and_gradients_are_those_of_all_rows_at_once(monkeypatch, rate, some):
    monkeypatch.setattr(pieces, "SOME", some)
    rows, slopes = StandardRows(TABLE, torch.float64), torch.randn(NODES, 3, dtype=torch.float64)
    found = []
    for many in (0, 10**9):
        monkeypatch.setattr(pieces, "MANY", many)
        module = model()
        logits = in_pieces(module, rows, KEYS, rate, (3, 1))
        gradient = torch.autograd.grad(logits, list(module.parameters()), slopes)
        found.append([logits, *gradient])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_nodes_judged_some_at_a_time_are_judged_alike(monkeypatch):
    module = model()
    with torch.no_grad():
        whole = module(StandardRows(TABLE, torch.float64))
        monkeypatch.setattr(pieces, "SOME", 7)
        found = NodeFeatures(FeatureRows([TABLE[:20], TABLE[20:]]), np.arange(NODES), KEYS, torch.float64).logits(
            module
        )
        nobody = NodeFeatures(FeatureRows([TABLE]), np.zeros(0, np.int64), KEYS[:0], torch.float64).logits(module)
    torch.testing.assert_close(found, whole)
    assert nobody.shape == (0, 3)
