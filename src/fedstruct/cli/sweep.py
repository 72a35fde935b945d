"""`fedstruct sweep`: methods over the values of a setting."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedstruct.cli.options import (
    Dataset,
    Inference,
    Jobs,
    Json,
    OptionsOf,
    Owners,
    Parties,
    Preset,
    RecallAt,
    Seeds,
    Split,
    Track,
    Train,
    Validation,
    print_json,
    settings,
    stopped,
)


def sweep(
    dataset: Dataset,
    over: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=V1,V2,…",
            help="An option of the method, or train, val, parties, partition, dataset or preset; at most twice.",
        ),
    ],
    methods: Annotated[
        str, typer.Option("--methods", "--method", help="Names with commas between them, or all.")
    ] = "fedstruct",
    parties: Parties = None,
    partition: Owners = None,
    seeds: Seeds = None,
    preset: Preset = None,
    inference: Inference = None,
    options: OptionsOf = None,
    train: Train = None,
    validation: Validation = None,
    split: Split = None,
    recall_at: RecallAt = None,
    jobs: Jobs = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder for all runs; of one begun before, what is missing is done. "
                     "[dim]default: runs/DATASET-sweep-KEY-TIME[/dim]"),
    ] = None,
    track: Track = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Train methods at each value of a setting, or at each pair of values of two, and draw the result."""
    from fedstruct.errors import FedstructError
    from fedstruct.experiments.folder import Folder
    from fedstruct.experiments.plot import plot
    from fedstruct.experiments.process import cores, prepare_process
    from fedstruct.experiments.show import line, shell, watching
    from fedstruct.experiments.show_study import sweep_table
    from fedstruct.experiments.study import chosen
    from fedstruct.experiments.sweep import Sweep, axis
    from fedstruct.experiments.track import tracker
    from fedstruct.graph.datasets import stem

    if len(over) > 2:
        raise FedstructError("--over can be given twice at most; a picture has no room for more")
    given = settings(
        options, inference, dataset=dataset, parties=parties, partition=partition, seeds=seeds, preset=preset,
        train=train, validation=validation, split=split, recall_at=recall_at,
    )  # fmt: skip
    prepare_process()
    sweep = Sweep(given, chosen(methods), [axis(text) for text in over])
    study = sweep.study
    tracked = tracker(track)
    folder = Folder(out, f"{stem(dataset)}-sweep-{sweep.axes[0].key}", sweep.to_toml(), resume=True)
    with folder.held(), folder.kept():
        try:
            study.resume(folder)
            with watching(len(study.missing), "runs") as bar, tracked:
                for name, result in study.train(folder, jobs or cores(), bar, tracked):
                    folder.save_result(sweep.as_json())
                    bar.finished(result.test_accuracy, f"{name}, seed {result.seed}:")
        except KeyboardInterrupt:
            of = len(study.batch.units)
            stopped(of - len(study.missing), of, folder.path, resumable=True)
        told = sweep.as_json()
        folder.save_result(told)
        plot(told, folder.path / "sweep.svg")
    if as_json:
        print_json(told)
        return
    sweep_table(told)
    path, picture = shell(folder.path), shell(folder.path / "sweep.svg")
    line(f"\nSaved in {path}, a run folder for each row; the picture is {picture}")
