"""What the page shows, as figures and words; `fedstruct report --json` prints it as it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars

from fedstruct.errors import FedstructError
from fedstruct.experiments.config import read, toml
from fedstruct.experiments.folder import CONFIG
from fedstruct.experiments.report.labels import labels
from fedstruct.experiments.report.repeat import command
from fedstruct.experiments.report.saved import Entry, Saved, found
from fedstruct.experiments.result import mean
from fedstruct.experiments.words import exposure_words, grouped, learned, rows_of

MOST_RUNS = 300
"""So many rows fit into one page."""

MEASURES = ("test_accuracy", "macro_f1", "auprc", "recall")


def tell(paths: Sequence[Path]) -> dict[str, Any]:
    """Read the folders, and say what is in them."""
    folders = list(dict.fromkeys(folder for path in paths for folder in found(path)))
    if len(folders) > MOST_RUNS:
        raise FedstructError(f"there are {len(folders)} run folders; a page has room for {MOST_RUNS}, so give fewer")
    saved = [Saved.read(folder) for folder in folders]
    names = labels(saved)
    return {
        "folders": [{"path": str(path), "command": command(read(path / CONFIG))} for path in dict.fromkeys(paths)],
        "runs": [run(name, each) for name, each in zip(names, saved, strict=True)],
        "cards": cards(names, saved),
    }


def run(name: str, saved: Saved) -> dict[str, Any]:
    """One run folder: the figures of all its seeds; traffic and exposure are those of the first."""
    result = saved.result
    first = min(result.runs, key=lambda each: each.seed)
    book = rows_of(saved.ledger, first.seed)
    traffic = grouped(book)
    unknown = {key for key in ("auprc", "recall", "recall_at") if getattr(result, key) is None}
    figures = result.model_dump(exclude={"runs", "options", *unknown})
    return {
        "name": name,
        "folder": str(saved.path),
        **figures,
        "seeds": [each.seed for each in result.runs],
        "runs": [
            each.model_dump(include={"seed", "validation_accuracy", *(m for m in MEASURES if m in figures)})
            | {"cpu_seconds": sum(each.cpu_seconds.values()), "bytes": sum(each.bytes.values())}
            for each in result.runs
        ],
        "cpu_seconds": mean([sum(each.cpu_seconds.values()) for each in result.runs]),
        "bytes": mean([sum(each.bytes.values()) for each in result.runs]),
        "phases": {
            phase: {"cpu_seconds": first.cpu_seconds.get(phase, 0.0), "bytes": size}
            for phase, size in first.bytes.items()
        },
        "curve": curve(saved.history),
        "of_seed": first.seed,
        "traffic": {"kinds": traffic.to_dicts(), "parties": by_party(book)},
        "learned": learned(traffic),
        "read_off": exposure_words(first.model_dump()),
        "exposure": first.exposure and first.exposure.model_dump(),
        "config": toml(saved.config),
        "command": command(saved.config),
        "options": result.options,
        "versions": saved.about.versions,
    }


def curve(history: Sequence[Entry]) -> list[dict[str, float]]:
    """The loss of each round, over the seeds that have it: the mean, the lowest and the highest."""
    rounds: dict[int, list[float]] = {}
    for entry in history:
        if entry.loss is not None:
            rounds.setdefault(entry.round, []).append(entry.loss)
    return [
        {"round": t, "mean": sum(losses) / len(losses), "low": min(losses), "high": max(losses)}
        for t, losses in sorted(rounds.items())
    ]


def by_party(book: polars.DataFrame) -> list[dict[str, Any]]:
    """What each site sent and received, the coordinator's too, in the order in which they first speak."""
    sent = book.filter(polars.col("entry") == "sent")
    out = dict(sent.group_by("sender").agg(polars.col("bytes").sum()).iter_rows())
    into = dict(sent.group_by("receiver").agg(polars.col("bytes").sum()).iter_rows())
    pairs = sent.select("sender", "receiver").unique(maintain_order=True)
    names = dict.fromkeys(name for pair in pairs.iter_rows() for name in pair)
    return [{"party": name, "sent": out.get(name, 0), "received": into.get(name, 0)} for name in names]


def cards(names: Sequence[str], saved: Sequence[Saved]) -> list[dict[str, Any]]:
    """Each partition once, with the runs that stood on it."""
    seen: list[dict[str, Any]] = []
    for name, each in zip(names, saved, strict=True):
        result, card = each.result, each.about.card
        about = {"dataset": result.dataset, "partition": result.partition, "parties": result.parties}
        told = {**about, "card": card and card.model_dump()}
        known = next((other for other in seen if {k: other[k] for k in told} == told), None)
        if known is None:
            seen.append({**told, "of": [name]})
        else:
            known["of"].append(name)
    return seen
