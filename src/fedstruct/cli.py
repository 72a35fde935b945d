"""The command line: thin; what takes long to import is imported inside the commands."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedstruct.errors import FedstructError

if TYPE_CHECKING:
    from fedstruct.experiments.config import Experiment

app = typer.Typer(
    name="fedstruct",
    help="Train one node classifier on one graph with many owners, and see what each owner learned.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Examples: [bold]fedstruct demo[/bold] · [bold]fedstruct run cora --seeds 10[/bold]",
    context_settings={"help_option_names": ["-h", "--help"]},
)

OUT_OF_MEMORY = "out of memory: try fewer --jobs, fewer hidden units, a smaller graph or fewer layers_structure"

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]


def main() -> None:
    """Run the command line; a mistake of the user is one sentence on stderr and exit code 2."""
    # A polite end is an end like Ctrl-C: workers are stopped, and what was saved stays.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except FedstructError as error:
        _fail(str(error), 2)
    except MemoryError:
        _fail(OUT_OF_MEMORY, 1)
    except RuntimeError as error:
        if "DefaultCPUAllocator" not in str(error):
            raise
        _fail(OUT_OF_MEMORY, 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@app.command(epilog="Example: [bold]fedstruct demo[/bold]")
def demo(as_json: Json = False) -> None:
    """Make a graph, give it to three parties, train, and say what each learned of the others."""
    from fedstruct.experiments.config import Experiment
    from fedstruct.experiments.experiment import Runs, prepare_process
    from fedstruct.experiments.show import result_table, say, watching
    from fedstruct.experiments.words import grouped, say_learned, traffic_table
    from fedstruct.graph.generate import planted

    prepare_process()
    graph = planted()
    experiment = Experiment(dataset="planted", parties=3, seeds=3)
    runs = Runs(experiment, graph)
    if not as_json:
        say(
            f"A made-up graph of {graph.nodes:,} nodes and {graph.edges:,} edges in {graph.classes} communities, "
            "owned by three parties at random: two of three edges cross a border."
        )
    results = []
    with watching(experiment.seeds) as watch:
        for result in runs.all(watch=watch):
            results.append(result)
            watch.finished(result.test_accuracy)
    summary = runs.summary(results)
    if as_json:
        _print_json(summary)
        return
    result_table(summary)
    say("\nThe ledger of the first of these runs:\n")
    traffic = grouped(results[0].ledger.frame())
    traffic_table(traffic)
    say_learned(traffic, summary["runs"][0]["exposure"])
    say("\nNext: [bold]fedstruct datasets[/bold], then [bold]fedstruct run cora --seeds 10[/bold]")


@app.command(
    epilog="Examples: [bold]fedstruct run cora --seeds 10[/bold] · "
    "[bold]fedstruct run mine.npz --parties 4 --set rounds=100 --set prune=50[/bold] · "
    "[bold]fedstruct run --config runs/cora-fedstruct-…/config.toml[/bold]"
)
def run(
    dataset: Annotated[
        str | None, typer.Argument(help="A name that `fedstruct datasets` lists, or an .npz file.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="The method to train. [dim]default: fedstruct[/dim]")] = None,
    parties: Annotated[int | None, typer.Option(help="How many owners. [dim]default: 10[/dim]")] = None,
    partition: Annotated[
        str | None,
        typer.Option(
            help="random, louvain, kmeans, attribute:NAME, or a file of one owner per node. [dim]default: random[/dim]"
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs, with seeds 0, 1, 2 … [dim]default: 1[/dim]")] = None,
    preset: Annotated[
        str | None, typer.Option(help="ours, paper (Table 5) or code (made the tables). [dim]default: ours[/dim]")
    ] = None,
    options: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="An option of the method; repeatable.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with these settings; flags go before it.")] = None,
    separate: Annotated[
        bool | None,
        typer.Option("--separate/--together", help="Step parties one by one, each message encoded and sealed."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Train so many seeds at once, each in its own process.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="The run folder. [dim]default: runs/DATASET-METHOD-TIME[/dim]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a method over the parts of a graph, once per seed."""
    from fedstruct.experiments.config import Experiment, read, setting

    given: dict[str, Any] = read(config) if config else {}
    flags = {
        "dataset": dataset, "method": method, "parties": parties, "partition": partition,
        "seeds": seeds, "preset": preset, "separate": separate,
    }  # fmt: skip
    given |= {key: value for key, value in flags.items() if value is not None}
    typed = dict(setting(text) for text in options or [])
    if typed and isinstance(given.setdefault("options", {}), dict):
        given["options"] = {**given["options"], **typed}
    _train(Experiment.of(given), jobs, out, as_json)


def _train(experiment: Experiment, jobs: int, out: Path | None, as_json: bool) -> None:
    from rich.markup import escape

    from fedstruct.experiments.experiment import Runs, folder_name, prepare_process
    from fedstruct.experiments.folder import RunFolder
    from fedstruct.experiments.show import result_table, say, watching, working
    from fedstruct.experiments.words import exposure_words

    prepare_process()
    with working("graph and partition"):
        runs = Runs(experiment)
    folder = RunFolder(out, folder_name(experiment), experiment.to_toml())
    results: list[Any] = []
    summary: dict[str, Any] = {}
    try:
        with watching(experiment.seeds) as watch:
            for result in runs.all(jobs, watch):
                results.append(result)
                summary = runs.summary(results)
                folder.save(result, summary)
                watch.finished(result.test_accuracy)
    except KeyboardInterrupt:
        kept = f"{len(results)} of {experiment.seeds} runs are in {folder.path}" if results else "nothing was saved"
        _fail(f"stopped; {kept}", 130)
    finally:
        folder.discard()
    if as_json:
        _print_json(summary)
        return
    result_table(summary)
    say(f"\n{exposure_words(summary['runs'][0]['exposure'])}")
    path = escape(str(folder.path))
    say(f"\nSaved in {path}. Who learned what from whom: [bold]fedstruct ledger {path}[/bold]")


@app.command(
    epilog="Examples: [bold]fedstruct partition cora --by louvain[/bold] · "
    "[bold]fedstruct partition cora --by kmeans --parties 5 --out owners.txt[/bold], then "
    "[bold]fedstruct run cora --partition owners.txt[/bold]"
)
def partition(
    dataset: Annotated[
        str, typer.Argument(help="A name that `fedstruct datasets` lists, or an .npz file.", metavar="DATASET")
    ],
    parties: Annotated[int | None, typer.Option(help="How many owners. [dim]default: 10[/dim]")] = None,
    by: Annotated[
        str, typer.Option(help="random, louvain, kmeans, attribute:NAME, or a file of one owner per node.")
    ] = "random",
    seed: Annotated[int, typer.Option(min=0, help="Draws the partition; the same seed, the same parts.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write each node's owner to a new .txt or .npy file, for `run --partition`.")
    ] = None,
    card: Annotated[bool, typer.Option("--card", help="Show the card even when the owners are written.")] = False,
    as_json: Json = False,
) -> None:
    """Give a graph's nodes to owners, and show what the parts are like."""
    from rich.markup import escape

    from fedstruct.experiments.card import Card
    from fedstruct.experiments.config import Experiment
    from fedstruct.experiments.experiment import prepare_process
    from fedstruct.experiments.protocol import prepared
    from fedstruct.experiments.show import say, working
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
            found = Card.of(parts)
        if as_json:
            _print_json({"seed": seed, "out": None if out is None else str(out), **found.as_json()})
            return
        show_card(found)
    if out is not None:
        path = escape(str(out))
        say(f"{parts.graph.nodes:,} owners are in {path}. Train with [bold]--partition {path}[/bold].")


@app.command(epilog="Example: [bold]fedstruct ledger runs/cora-fedstruct-… --party party-1[/bold]")
def ledger(
    folder: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")],
    party: Annotated[str | None, typer.Option(help="Only what this party told and was told.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Which of the folder's runs.")] = 0,
    as_json: Json = False,
) -> None:
    """Say who learned what from whom in a run, and how much."""
    from fedstruct.experiments.folder import read_ledger, read_result
    from fedstruct.experiments.words import grouped, of_party, of_seed, say_learned, traffic_table

    result = read_result(folder)
    book, run = of_seed(read_ledger(folder), result, seed)
    if party is not None:
        book = of_party(book, party)
    traffic = grouped(book, party)
    if as_json:
        _print_json({"run": str(folder), "seed": seed, "party": party, "traffic": traffic.to_dicts()})
        return
    traffic_table(traffic)
    say_learned(traffic, run["exposure"], party)


@app.command(epilog="Example: [bold]FEDSTRUCT_DATA=~/graphs fedstruct datasets[/bold]")
def datasets(as_json: Json = False) -> None:
    """List the datasets, with their figures and where each was found."""
    from fedstruct.experiments.show import dataset_rows, dataset_table

    rows = dataset_rows()
    if as_json:
        _print_json({"datasets": rows})
    else:
        dataset_table(rows)


def _version(asked: bool) -> None:
    if asked:
        from fedstruct import __version__

        typer.echo(f"fedstruct {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _print_json(value: dict[str, Any]) -> None:
    typer.echo(json.dumps(value, indent=2))


def _fail(sentence: str, code: int) -> None:
    sys.stderr.write(f"fedstruct: {sentence}\n")
    sys.exit(code)
