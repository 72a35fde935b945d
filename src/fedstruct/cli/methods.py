"""`fedstruct methods`: the methods, and what `--set` takes."""

from __future__ import annotations

from typing import Annotated

import typer

from fedstruct.cli.options import Json, print_json


def methods(
    method: Annotated[
        str | None, typer.Argument(help="List the options of this method.", metavar="NAME", show_default=False)
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="With NAME: what the preset `ours` sets for this dataset, too.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the methods, or the options of one: their defaults, what they take, and what they mean."""
    from fedstruct.errors import FedstructError
    from fedstruct.experiments import catalogue
    from fedstruct.experiments.show_methods import methods_table, options_table

    if method is None:
        if dataset is not None:
            raise FedstructError("--dataset says whose options to list only with a method; name one")
        rows = catalogue.methods()
        if as_json:
            print_json({"methods": rows})
        else:
            methods_table(rows)
        return
    rows = catalogue.options(method, dataset)
    if as_json:
        print_json({"method": method, "dataset": dataset, "options": rows})
    else:
        options_table(rows, dataset)
