"""Results: small, frozen, and turned into JSON as they are."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from fedstruct.federation.ledger import Ledger
from fedstruct.methods.exchange import Blocks, StructureOptions
from fedstruct.methods.method import Method, Trained
from fedstruct.methods.propagated_options import PropagatedOptions
from fedstruct.structure.border import Told
from fedstruct.structure.exposure import Exposure

PHASES = ("structure", "training", "evaluation")


@dataclass(frozen=True, eq=False)
class RunResult:
    """One run: one seed, one partition, one trained model.

    >>> from fedstruct import generate, methods, partition, run
    >>> result = run(methods.FedSGD("mlp", rounds=2), partition.random(generate.planted(nodes=100), parties=2))
    >>> result.ledger.bytes == sum(result.bytes.values()), result.exposure
    (True, None)
    """

    seed: int
    protocol: str
    test_accuracy: float | None
    validation_accuracy: float | None
    macro_f1: float | None
    auprc: float | None
    recall: float | None
    """Two classes: of class 1, among as many test nodes as the experiment's `recall_at`."""
    by_party: dict[str, dict[str, float | None]] | None
    """The measures of each party's own test nodes; None where parties that stepped as one counted them together."""
    seconds: dict[str, float]
    cpu_seconds: dict[str, float]
    bytes: dict[str, int]
    messages: int
    exchange: dict[str, float] | None
    """Entries that the structure exchange sent, the most that it may send, and the paper's count."""
    exposure: dict[str, Any] | None
    sums: dict[str, Any] | None
    """With propagated structure: how many sums each party told each peer, over how many nodes, and how often."""
    reused: bool | None
    """Whether the structure exchange came from memory; None where there was no memory. The seconds are those that it
    took when it was computed, so that runs compare."""
    history: list[dict[str, float]] = field(repr=False)
    ledger: Ledger = field(repr=False)
    trained: Trained = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """The run as JSON: AUPRC and recall with two classes, `reused`, `sums` and `by_party` where they are known."""
        left_out = {"history", "ledger", "trained", "protocol"}
        left_out |= set() if self.trained.scores.shape[-1] else {"auprc", "recall"}
        left_out |= {name for name in ("reused", "sums", "by_party") if getattr(self, name) is None}
        return {k: v for k, v in self.__dict__.items() if k not in left_out}


def exposures(found: list[Exposure]) -> dict[str, Any] | None:
    """All parties' exposure, as shares: of inner edges, and of border edges to third parties."""
    if not found:
        return None
    inner, border = (sum(getattr(e, f) for e in found) for f in ("inner_edges", "border_edges"))
    return {
        "inner_edges": inner,
        "inner_share": _share(sum(e.inner_by_any for e in found), inner),
        "border_edges": border,
        "border_share": _share(sum(e.border_by_any for e in found), border),
        "parties": [
            {
                **{k: v for k, v in asdict(e).items() if k not in ("inner", "border", "third")},
                "towards": {
                    peer: {
                        "inner_share": _share(e.inner[peer], e.inner_edges),
                        "border_share": _share(e.border[peer], e.third[peer]),
                    }
                    for peer in e.inner
                },
            }
            for e in found
        ],
    }


def sums_told(found: list[Told], method: Method) -> dict[str, Any] | None:
    """The sums that parties told each other in a hop, by how many nodes they are over, and the number of hops."""
    if not found or not isinstance(method.options, PropagatedOptions):
        return None
    hops, rounds = method.options.layers_structure, method.options.rounds
    every = [sizes for t in found for way in (t.forward, t.backward) for sizes in way.values()]
    return {
        "times": {"forward": hops * (rounds + 1), "backward": hops * rounds},
        **{name: sum(getattr(sizes, name) for sizes in every) for name in ("one", "two", "more")},
        "parties": [
            {
                "party": t.party,
                "towards": {
                    peer: {"forward": asdict(t.forward[peer]), "backward": asdict(t.backward[peer])}
                    for peer in t.forward
                },
            }
            for t in found
        ],
    }


def exchanged(ledger: Ledger, method: Method, nodes: int, parties: int) -> dict[str, float] | None:
    """What the structure exchange sent, beside what it may send and what the paper says it sends."""
    if not isinstance(method.options, StructureOptions):
        return None
    entries = ledger.sent(kind=Blocks).rows
    limits = method.options.entries_at_most(nodes, parties)
    return {"entries": entries, **limits, "ratio_to_paper": entries / limits["paper"]}


def mean(values: list[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return float(np.mean(known)) if known else None


def std(values: list[float | None]) -> float | None:
    """The standard deviation of the sample; None for a single run."""
    known = [v for v in values if v is not None]
    return float(np.std(known, ddof=1)) if len(known) > 1 else None


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
