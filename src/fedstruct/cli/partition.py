"""`fedstruct partition`: who owns what, and what the parts are like."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedstruct.cli.options import Dataset, Json, Parties, print_json


def partition(
    dataset: Dataset,
    parties: Parties = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="random, louvain, kmeans, attribute:NAME, or a file of one owner per node. "
            "[dim]default: the graph's own owners, else random[/dim]"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws the partition; the same seed, the same parts.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write each node's owner to a new .txt or .npy file, for `run --partition`.")
    ] = None,
    card: Annotated[bool, typer.Option("--card", help="Show the card even when the owners are written.")] = False,
    as_json: Json = False,
) -> None:
    """Give a graph's nodes to owners, and show what the parts are like."""
    from fedstruct.experiments.card import LARGEST, Card
    from fedstruct.experiments.config import Experiment
    from fedstruct.experiments.process import prepare_process
    from fedstruct.experiments.protocol import prepared
    from fedstruct.experiments.show import line, shell, working
    from fedstruct.experiments.show_card import show_card
    from fedstruct.graph.partition import check_new, write_owners

    experiment = Experiment.of({"dataset": dataset, "parties": parties, "partition": by})
    if out is not None:
        check_new(out)
    prepare_process()
    with working("graph and partition"):
        parts = experiment.cut(prepared(experiment.load_graph()), seed)
    if out is not None:
        write_owners(parts, out)
    if card or as_json or out is None:
        with working("second hop of the exchange"):
            found = Card.of(parts, exchange=parts.graph.adjacency.nnz <= LARGEST)
        if as_json:
            print_json({"seed": seed, "out": None if out is None else str(out), **found.as_json()})
            return
        show_card(found)
    if out is not None:
        path = shell(out)
        line(f"{parts.graph.nodes:,} owners are in {path}. Train with [bold]--partition {path}[/bold].")
