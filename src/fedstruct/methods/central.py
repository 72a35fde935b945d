"""The upper bound: one party that owns the whole graph.

Reference: Aliakbari, Östman and Graell i Amat, "Decoupled Subgraph Federated Learning", ICLR 2025, rows "Central".
"""

from __future__ import annotations

from fedstruct.methods.fedsgd import FedSGD


class Central(FedSGD):
    """Training on the pooled graph: what no consortium may do.

    >>> from fedstruct import generate, partition, run
    >>> parts = partition.random(generate.planted(nodes=200), parties=3)
    >>> run(Central("mlp", rounds=2), parts).ledger.frame()["receiver"].unique().sort().to_list()
    ['coordinator', 'everybody']
    """

    family = "central"
    more_options = None  # there is no wire
    pooled = True
