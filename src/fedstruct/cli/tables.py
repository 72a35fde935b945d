"""`fedstruct import` and `fedstruct generate`: graphs from tables, and tables from a seed."""

from __future__ import annotations

from pathlib import Path
from shlex import join
from typing import Annotated

import typer

from fedstruct.cli.options import Json, print_json


def import_(
    nodes: Annotated[Path, typer.Argument(help="A table of nodes, CSV or Parquet, or one of IBM's files of payments.")],
    edges: Annotated[Path | None, typer.Argument(help="A table of edges; an IBM file has its edges in it.")] = None,
    id: Annotated[str, typer.Option(help="NODES: the column that names each node.")] = "id",
    owner: Annotated[str | None, typer.Option(help="NODES: the column that says who owns a node.")] = None,
    label: Annotated[
        str, typer.Option(help="NODES: the column of classes: 0, 1, 2 … or words; an empty one is unknown.")
    ] = "label",
    features: Annotated[
        str | None,
        typer.Option(help="NODES: columns with commas between them. [dim]default: all that are nothing else[/dim]"),
    ] = None,
    attributes: Annotated[
        str | None, typer.Option(help="NODES: columns that are kept, but are no features, with commas between them.")
    ] = None,
    source: Annotated[str, typer.Option(help="EDGES: the column that names the node where an edge begins.")] = "source",
    target: Annotated[str, typer.Option(help="EDGES: the column that names the node where it ends.")] = "target",
    weight: Annotated[str | None, typer.Option(help="EDGES: a column of weights; repeated edges add up.")] = None,
    time: Annotated[str | None, typer.Option(help="EDGES: a column of numbers or dates, for --split time.")] = None,
    undirected: Annotated[bool, typer.Option("--undirected", help="Edges have no direction.")] = False,
    as_they_are: Annotated[
        bool, typer.Option("--as-they-are", help="Leave numbers as they are, instead of mean 0 and deviation 1.")
    ] = False,
    largest: Annotated[
        int | None, typer.Option(min=1, help="Keep so many owners, the largest; the rest becomes one, 'others'.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The new file. [dim]default: NODES, ending in .npz[/dim]")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Make a graph of two tables, as a file that goes wherever a dataset's name does."""
    from fedstruct.errors import FedstructError
    from fedstruct.experiments.show import line, shell, working
    from fedstruct.experiments.show_tables import imported, imported_table
    from fedstruct.graph import ibm, npz
    from fedstruct.graph.table import Table
    from fedstruct.graph.tables import Tables

    out = out or Path(f"{nodes.stem}.npz")
    npz.check_new(out)
    with working("tables"):
        if edges is not None:
            tables = Tables(
                Table.of(nodes, "nodes"), Table.of(edges, "edges"),
                id=id, label=label, source=source, target=target, owner=owner, weight=weight, time=time,
                features=_columns(features), attributes=_columns(attributes) or [],
                directed=not undirected, standardise=not as_they_are, largest=largest,
            )  # fmt: skip
        elif ibm.is_of_this_form(nodes):
            tables = ibm.tables(nodes, largest)
        else:
            raise FedstructError(
                f"{nodes} is no table of IBM's payments, so a second table must say what the edges are"
            )
        graph = tables.graph(out.stem)
        npz.write(graph, out)
    told = imported(graph, tables) | {"out": str(out)}
    if as_json:
        print_json(told)
        return
    imported_table(told)
    path = shell(out)
    train = f", then [bold]fedstruct run {path}[/bold]" if told["unknown"] < told["nodes"] else ""
    line(f"\nWritten to {path}. Next: [bold]fedstruct partition {path}[/bold]{train}")


def generate(
    dataset: Annotated[str, typer.Argument(help="A generator, say consortium:banks=5,cross=0.3.", metavar="DATASET")],
    out: Annotated[Path, typer.Option(help="The folder that the tables are written into.")],
    as_json: Json = False,
) -> None:
    """Write the two tables of a made-up network of payments, as CSV: something to try `fedstruct import` on."""
    from rich.markup import escape

    from fedstruct.errors import FedstructError
    from fedstruct.experiments.show import line, shell
    from fedstruct.graph import generators
    from fedstruct.graph.tables import Tables

    made = generators.made(dataset)
    if not isinstance(made, Tables):
        raise FedstructError(f"{generators.family(dataset)} makes a graph and no tables; train on it by its name")
    nodes, edges = made.write(out)
    next_one = f"{join(['fedstruct', 'import', str(nodes), str(edges)])} {made.flags()}"
    if as_json:
        print_json({"dataset": dataset, "nodes": str(nodes), "edges": str(edges), "import": next_one})
        return
    line(f"{len(made.nodes):,} {made.nodes.name} are in {shell(nodes)}, {len(made.edges):,} {made.edges.name} in "
         f"{shell(edges)}. Next:\n\n[bold]{escape(next_one)}[/bold]")  # fmt: skip


def _columns(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
