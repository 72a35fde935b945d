"""`fedstruct compare`: methods side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedstruct.cli.options import (
    Dataset,
    Inference,
    Jobs,
    Json,
    Memory,
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


def compare(
    dataset: Dataset,
    methods: Annotated[str, typer.Option(help="Names with commas between them, or all; the first is compared to.")],
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
    memory: Memory = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder for all runs; of one begun before, what is missing is done. "
                     "[dim]default: runs/DATASET-compare-TIME[/dim]"),
    ] = None,
    track: Track = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Train several methods over the same parts of a graph, and set them side by side.

    With one seed, every method has the same owners and the same split. An option goes to every method that has it.
    """
    from fedstruct.experiments.bench import Bench
    from fedstruct.experiments.compare import Comparison
    from fedstruct.experiments.estimate import check_all
    from fedstruct.experiments.folder import Folder
    from fedstruct.experiments.process import cores, prepare_process
    from fedstruct.experiments.show import line, shell, watching
    from fedstruct.experiments.show_study import comparison_table
    from fedstruct.experiments.study import Study, chosen, of_methods
    from fedstruct.experiments.track import tracker
    from fedstruct.graph.datasets import stem

    given = settings(
        options, inference, dataset=dataset, parties=parties, partition=partition, seeds=seeds, preset=preset,
        train=train, validation=validation, split=split, recall_at=recall_at,
    )  # fmt: skip
    prepare_process()
    experiments = of_methods(given, chosen(methods))
    bench = Bench()
    if memory is not None:
        check_all(list(experiments.values()), memory, jobs or cores(), bench)
    study = Study(experiments, bench)
    comparison = Comparison(study)
    tracked = tracker(track)
    folder = Folder(out, f"{stem(dataset)}-compare", comparison.to_toml(), resume=True)
    with folder.held(), folder.kept():
        try:
            comparison.resume(folder)
            with watching(len(study.missing), "runs") as bar, tracked:
                for name, result in study.train(folder, jobs or cores(), bar, tracked):
                    comparison.saw(name, result.ledger.coded())
                    folder.save_result(comparison.as_json())
                    bar.finished(result.test_accuracy, f"{name}, seed {result.seed}:")
        except KeyboardInterrupt:
            of = len(study.batch.units)
            stopped(of - len(study.missing), of, folder.path, resumable=True)
        told = comparison.as_json()
        folder.save_result(told)
    if as_json:
        print_json(told)
        return
    comparison_table(told)
    ledger = shell("fedstruct", "ledger", folder.path / next(iter(study.runs)))
    line(f"\nSaved in {shell(folder.path)}, a run folder for each method: [bold]{ledger}[/bold]")
