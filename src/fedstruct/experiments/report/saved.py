"""What a run folder holds, checked as it is read; folders of older versions lack some of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedstruct.errors import FedstructError
from fedstruct.experiments.config import read
from fedstruct.experiments.folder import ABOUT, CONFIG, HISTORY, LEDGER, RESULT, read_ledger, read_result

Checked = TypeVar("Checked", bound=BaseModel)


class Figures(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class Spread(Figures):
    mean: float | None
    std: float | None


class Shares(Figures):
    inner_share: float
    border_share: float


class PartyExposure(Figures):
    party: str
    inner_edges: int
    border_edges: int
    inner_by_any: int
    border_by_any: int
    towards: dict[str, Shares]


class RunExposure(Figures):
    inner_edges: int
    inner_share: float
    border_edges: int
    border_share: float
    parties: list[PartyExposure]


class Sizes(Figures):
    """Sums over one node, over two, and over more."""

    one: int
    two: int
    more: int


class Times(Figures):
    forward: int
    backward: int


class Ways(Figures):
    forward: Sizes
    backward: Sizes


class PartySums(Figures):
    party: str
    towards: dict[str, Ways]


class RunSums(Sizes):
    times: Times
    parties: list[PartySums]


class SavedRun(Figures):
    seed: int
    test_accuracy: float | None
    validation_accuracy: float | None = None
    macro_f1: float | None
    auprc: float | None = None
    recall: float | None = None
    seconds: dict[str, float]
    cpu_seconds: dict[str, float]
    bytes: dict[str, int]
    messages: int
    exchange: dict[str, float] | None
    exposure: RunExposure | None
    sums: RunSums | None = None


class SavedResult(Figures):
    dataset: str
    method: str
    protocol: str
    preset: str
    parties: int
    partition: str
    test_accuracy: Spread
    macro_f1: Spread
    auprc: Spread | None = None
    recall: Spread | None = None
    recall_at: int | str | None = None
    options: dict[str, Any]
    runs: list[SavedRun] = Field(min_length=1)
    peak_rss_mb: float


class Entry(Figures):
    """A line of the history."""

    seed: int
    round: int
    loss: float | None


class SavedPart(Figures):
    party: str
    nodes: int
    inner_edges: int
    border_edges: int
    neighbours: int
    classes: list[int]


class SavedCard(Figures):
    nodes: int
    edges: int
    parties: list[SavedPart]
    classes: list[int]
    border_share: float | None
    homophily_inside: float | None
    homophily_across: float | None
    label_skew: float | None


class About(Figures):
    """What the runs stood on."""

    versions: dict[str, str] | None = None
    card: SavedCard | None = None


@dataclass(frozen=True)
class Saved:
    """A run folder."""

    path: Path
    config: dict[str, Any]
    result: SavedResult
    history: list[Entry]
    ledger: Any
    about: About

    @classmethod
    def read(cls, path: Path) -> Saved:
        about = path / ABOUT
        return cls(
            path=path,
            config=read(path / CONFIG),
            result=result_of(path),
            history=history(path / HISTORY),
            ledger=read_ledger(path),
            about=checked(About, _json(about), about) if about.exists() else About(),
        )


def result_of(path: Path) -> SavedResult:
    """The figures in a run folder."""
    return checked(SavedResult, read_result(path), path / RESULT)


def found(path: Path) -> list[Path]:
    """The run folders that a path stands for: itself, or those of a comparison or a sweep, in its order."""
    if (path / LEDGER).exists():
        return [path]
    result = read_result(path)
    inside = sorted(p.parent for p in path.glob(f"*/{RESULT}"))
    if not inside:
        raise FedstructError(f"{path} is not a run folder: it has no {LEDGER}, and no run folders are in it")
    rows = [*_rows(result, "methods", "method"), *_rows(result, "cells", "folder")]
    return sorted(inside, key=lambda p: rows.index(p.name) if p.name in rows else len(rows))


def history(path: Path) -> list[Entry]:
    """The rounds of all runs; none where there is no file. A run that was killed may have left half a line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise FedstructError(f"{path} cannot be read: {error}") from None
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
    try:
        return [Entry.model_validate_json(line) for line in lines]
    except ValidationError:
        raise FedstructError(f"{path} cannot be read: it holds something else than a history; remove it") from None


def checked(kind: type[Checked], value: Any, path: Path) -> Checked:
    """The value as what it should be, or the error that says where it is something else."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise FedstructError(
            f"{path} cannot be read: {where} is not what a run folder holds there ({first['msg'].lower()}); "
            "train again, or give another folder"
        ) from None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FedstructError(f"{path} cannot be read: {error}") from None


def _rows(result: Any, rows: str, key: str) -> list[str]:
    """Names in the table of a study; what is damaged there tells no order, and that is all it would tell."""
    table = result.get(rows, []) if isinstance(result, dict) else []
    return [row[key] for row in table if isinstance(row, dict) and key in row] if isinstance(table, list) else []
