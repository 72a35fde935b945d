"""`fedstruct run`: one method."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedstruct.cli.options import (
    DATASET,
    Inference,
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

if TYPE_CHECKING:
    from fedstruct.experiments.config import Experiment


def run(
    dataset: Annotated[str | None, typer.Argument(help=DATASET, metavar="DATASET")] = None,
    method: Annotated[str | None, typer.Option(help="The method to train. [dim]default: fedstruct[/dim]")] = None,
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
    config: Annotated[Path | None, typer.Option(help="A TOML file with these settings; flags go before it.")] = None,
    separate: Annotated[
        bool | None,
        typer.Option("--separate/--together", help="Step parties one by one, each message encoded and sealed."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Train so many seeds at once, each in its own process.")] = 1,
    memory: Memory = None,
    out: Annotated[
        Path | None, typer.Option(help="The run folder. [dim]default: runs/DATASET-METHOD-TIME[/dim]")
    ] = None,
    track: Track = None,
    as_json: Json = False,
) -> None:
    """Train a method over the parts of a graph, once per seed."""
    from fedstruct.experiments.config import Experiment, read

    given: dict[str, Any] = read(config) if config else {}
    typed = settings(
        options, inference, dataset=dataset, method=method, parties=parties, partition=partition, seeds=seeds,
        preset=preset, train=train, validation=validation, split=split, recall_at=recall_at, separate=separate,
    )  # fmt: skip
    if "options" in given:
        table = given["options"]
        typed["options"] = {**table, **typed.get("options", {})} if isinstance(table, dict) else table
    _train(Experiment.of({**given, **typed}), jobs, memory, out, track, as_json)


def _train(
    experiment: Experiment, jobs: int, memory: str | None, out: Path | None, track: str | None, as_json: bool
) -> None:
    from fedstruct.experiments.bench import Bench
    from fedstruct.experiments.estimate import check_all
    from fedstruct.experiments.experiment import Runs, folder_name
    from fedstruct.experiments.folder import RunFolder
    from fedstruct.experiments.process import prepare_process
    from fedstruct.experiments.show import line, result_table, say, shell, watching, working
    from fedstruct.experiments.track import tracker
    from fedstruct.experiments.words import exposure_words
    from fedstruct.federation.watch import Watch, Watches

    prepare_process()
    bench = Bench()
    if memory is not None:
        check_all([experiment], memory, jobs, bench)
    with working("graph and partition"):
        runs = Runs(experiment, bench)
    tracked, name = tracker(track), folder_name(experiment)
    folder = RunFolder(out, name, experiment.to_toml(), runs.about)
    results: list[dict[str, Any]] = []
    summary: dict[str, Any] = {}
    with folder.kept():
        try:
            with watching(experiment.seeds) as bar, tracked:

                def watches(unit: tuple[int, int]) -> Watch:
                    seed = unit[1]
                    return Watches(folder.history.watch(seed), bar, tracked.begin(name, seed, experiment, runs.method))

                for result in runs.all(jobs, watches):
                    results.append(result.as_json())
                    summary = runs.summary(results)
                    folder.save(result, summary)
                    tracked.finish(name, result)
                    bar.finished(result.test_accuracy)
        except KeyboardInterrupt:
            stopped(len(results), experiment.seeds, folder.path)
    if as_json:
        print_json(summary)
        return
    result_table(summary)
    say(f"\n{exposure_words(summary['runs'][0])}")
    path = shell(folder.path)
    line(f"\nSaved in {path}. Who learned what from whom: [bold]fedstruct ledger {path}[/bold]")
