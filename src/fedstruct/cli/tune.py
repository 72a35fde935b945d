"""`fedstruct tune`: choose a method's options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedstruct.cli.options import (
    Dataset,
    Jobs,
    Json,
    OptionsOf,
    Owners,
    Parties,
    Split,
    Train,
    Validation,
    print_json,
    settings,
    stopped,
)


def tune(
    dataset: Dataset,
    method: Annotated[str | None, typer.Option(help="The method to tune. [dim]default: fedstruct[/dim]")] = None,
    parties: Parties = None,
    partition: Owners = None,
    seeds: Annotated[int, typer.Option(min=1, help="The best candidates train with so many seeds.")] = 2,
    budget: Annotated[int, typer.Option(min=1, help="Runs in all; a run is one candidate with one seed.")] = 20,
    options: OptionsOf = None,
    train: Train = None,
    validation: Validation = None,
    split: Split = None,
    by: Annotated[
        str, typer.Option(help="Choose by accuracy, macro_f1 or auprc; where one class is rare, by auprc.")
    ] = "accuracy",
    jobs: Jobs = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder. [dim]default: runs/DATASET-tune-METHOD-TIME[/dim]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Choose a method's options on the validation nodes; the labels of test nodes are not there.

    The settings that made the published tables, those that were chosen before, and random neighbours of both train with
    one seed; the better half goes on to the next seed. Options given with --set stay as they are.
    """
    from fedstruct.experiments.config import Experiment
    from fedstruct.experiments.folder import Folder
    from fedstruct.experiments.process import cores, prepare_process
    from fedstruct.experiments.show import line, shell, watching
    from fedstruct.experiments.show_study import tuning_table
    from fedstruct.experiments.tune import BEST, Tuning
    from fedstruct.graph.datasets import stem

    given = settings(
        options, dataset=dataset, method=method, parties=parties, partition=partition, seeds=seeds,
        train=train, validation=validation, split=split,
    )  # fmt: skip
    experiment = Experiment.of(given)
    prepare_process()
    tuning = Tuning(experiment, budget, by=by)
    folder = Folder(out, f"{stem(dataset)}-tune-{experiment.method}", experiment.to_toml())
    with folder.kept():
        try:
            with watching(tuning.runs, "runs") as watch:
                for run in tuning.search(folder.path, jobs or cores(), watch):
                    watch.finished(run[tuning.measure], f"candidate {run['candidate']}:", tuning.measure)
        except KeyboardInterrupt:
            stopped(len(tuning.tried), tuning.runs, folder.path)
    told = tuning.as_json() | {"config": str(folder.path / BEST)}
    if as_json:
        print_json(told)
        return
    tuning_table(told)
    path = shell(folder.path / BEST)
    line(f"\nThe best is in {path}. Next: [bold]fedstruct run --config {path} --seeds 10[/bold]")
