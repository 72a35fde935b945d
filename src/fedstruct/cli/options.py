"""Arguments and flags that several commands take, and what commands end with."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, NoReturn

import typer

from fedstruct.experiments.visible import visible

DATASET = "A name that `fedstruct datasets` lists, say cora or consortium:banks=5,cross=0.3, or an .npz file."

Dataset = Annotated[str, typer.Argument(help=DATASET, metavar="DATASET")]
Parties = Annotated[int | None, typer.Option(help="How many owners. [dim]default: 10[/dim]")]
Owners = Annotated[
    str | None,
    typer.Option(
        help="random, louvain, kmeans, attribute:NAME, or a file of one owner per node. "
        "[dim]default: the graph's own owners, else random[/dim]"
    ),
]
Seeds = Annotated[int | None, typer.Option(help="Runs, with seeds 0, 1, 2 … [dim]default: 1[/dim]")]
Preset = Annotated[
    str | None, typer.Option(help="ours, paper (Table 5) or code (made the tables). [dim]default: ours[/dim]")
]
Train = Annotated[float | None, typer.Option(help="Share of the nodes to train on. [dim]default: 0.1[/dim]")]
Validation = Annotated[
    float | None, typer.Option("--val", help="Share of the nodes to validate on. [dim]default: 0.1[/dim]")
]
Split = Annotated[
    str | None,
    typer.Option(help="random, or time: what was seen earliest trains, the last tests. [dim]default: random[/dim]"),
]
RecallAt = Annotated[
    str | None,
    typer.Option(
        metavar="COUNT|SHARE%",
        help="Two classes: alerts that can be looked into, for recall, say 100 or 1%. [dim]default: 100[/dim]",
    ),
]
Inference = Annotated[
    str | None,
    typer.Option(
        help="FedStruct: judge by both parts of the model, by structure or by features. [dim]default: both[/dim]"
    ),
]
OptionsOf = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="An option of the method; repeatable. `fedstruct methods NAME` lists them."
    ),
]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Processes that train at once. [dim]default: one for each core[/dim]")
]
Memory = Annotated[
    str | None,
    typer.Option(metavar="AMOUNT", help="Refuse runs that would need more memory, say 4GB, before they start."),
]
Track = Annotated[
    str | None,
    typer.Option(help="Report runs as they go on: mlflow, to MLFLOW_TRACKING_URI. [dim]needs fedstruct\\[track][/dim]"),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]


def settings(options: list[str] | None, inference: str | None = None, **flags: Any) -> dict[str, Any]:
    """What was typed: the flags that were given, and the method's options if there are any."""
    from fedstruct.experiments.config import setting

    given = {key: value for key, value in flags.items() if value is not None}
    table = dict(setting(text) for text in options or [])
    if inference is not None:
        table["inference"] = inference
    return given | ({"options": table} if table else {})


def print_json(value: dict[str, Any]) -> None:
    typer.echo(json.dumps(value, indent=2))


def fail(sentence: str, code: int) -> NoReturn:
    with suppress(OSError, AttributeError):  # nobody listens: stderr is full, or closed and None; the code still tells
        sys.stderr.write(f"fedstruct: {visible(' '.join(sentence.splitlines()))}\n")
        sys.stderr.flush()
        sys.exit(code)
    # What is left to be written would fail once more at the end of the process, and change the code.
    sys.stderr = None
    sys.exit(code)


def stopped(done: int, of: int, where: Path, resumable: bool = False) -> NoReturn:
    """The end of a command that was interrupted; a folder that is `resumable` is gone on with."""
    begun = any(where.rglob("history.jsonl"))
    said = f"no run was done, but rounds are in {where}" if begun else "nothing was saved"
    if done:
        said = f"{done} of {of} runs are in {where}"
    again = f"; the same with --out {quote(str(where))} goes on" if resumable and (done or begun) else ""
    fail(f"stopped; {said}{again}", 130)
