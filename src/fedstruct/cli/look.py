"""`fedstruct ledger` and `fedstruct datasets`: what there is to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedstruct.cli.options import Json, print_json


def ledger(
    folder: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")],
    party: Annotated[str | None, typer.Option(help="Only what this party told and was told.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Which of the folder's runs.")] = 0,
    as_json: Json = False,
) -> None:
    """Say who learned what from whom in a run, and how much."""
    from fedstruct.experiments.folder import read_ledger
    from fedstruct.experiments.report.saved import result_of
    from fedstruct.experiments.words import exposure_words, grouped, of_party, of_seed, say_learned, traffic_table

    runs = {run.seed: run.model_dump() for run in result_of(folder).runs}
    book, run = of_seed(read_ledger(folder), runs, seed)
    if party is not None:
        book = of_party(book, party)
    traffic = grouped(book, party)
    if as_json:
        print_json({"run": str(folder), "seed": seed, "party": party, "traffic": traffic.to_dicts()})
        return
    read_off = exposure_words(run, party)
    traffic_table(traffic)
    say_learned(traffic, read_off)


def datasets(as_json: Json = False) -> None:
    """List the datasets, with their figures and where each was found."""
    from fedstruct.experiments.show import dataset_rows, dataset_table, generator_rows

    rows, generators = dataset_rows(), generator_rows()
    if as_json:
        print_json({"datasets": rows, "generators": generators})
    else:
        dataset_table(rows, generators)
