"""The command line: thin; what takes long to import is imported inside the commands."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from fedstruct.cli.compare import compare
from fedstruct.cli.demo import demo
from fedstruct.cli.look import datasets, ledger
from fedstruct.cli.methods import methods
from fedstruct.cli.mistakes import UsageError, sentence
from fedstruct.cli.options import fail
from fedstruct.cli.partition import partition
from fedstruct.cli.report import report
from fedstruct.cli.run import run
from fedstruct.cli.sweep import sweep
from fedstruct.cli.tables import generate, import_
from fedstruct.cli.tune import tune
from fedstruct.errors import FedstructError

PROGRAM = "fedstruct"

app = typer.Typer(
    name=PROGRAM,
    help="Train one node classifier on one graph with many owners, and see what each owner learned.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Examples: [bold]fedstruct demo[/bold] · [bold]fedstruct run cora --seeds 10[/bold]",
    context_settings={"help_option_names": ["-h", "--help"]},
)

EXAMPLES: dict[Callable[..., None], list[str]] = {
    demo: ["fedstruct demo"],
    run: [
        "fedstruct run cora --seeds 10",
        "fedstruct run mine.npz --parties 4 --set rounds=100 --set prune=50",
        "fedstruct run consortium:banks=5,cross=0.3 --split time",
        "fedstruct run --config runs/cora-fedstruct-…/config.toml",
    ],
    compare: [
        "fedstruct compare cora --methods fedstruct,fedsgd-dgcn,central-dgcn --seeds 5",
        "fedstruct compare cora --methods all",
    ],
    sweep: [
        "fedstruct sweep cora --over layers_structure=1,2,5,10 --methods fedstruct,central-dgcn --seeds 3",
        "fedstruct sweep cora --over train=0.05,0.1,0.2 --over parties=5,20 --out runs/labels",
    ],
    tune: ["fedstruct tune cora --method fedsgd-dgcn", "fedstruct tune cora --budget 40 --seeds 3 --set rounds=50"],
    partition: [
        "fedstruct partition cora --by louvain",
        "fedstruct partition cora --by kmeans --parties 5 --out owners.txt",
        "fedstruct run cora --partition owners.txt",
    ],
    ledger: ["fedstruct ledger runs/cora-fedstruct-… --party party-1"],
    report: ["fedstruct report runs/cora-fedstruct-…", "fedstruct report runs/cora-compare-… --out compare.html"],
    methods: ["fedstruct methods", "fedstruct methods fedstruct --dataset cora"],
    datasets: ["FEDSTRUCT_DATA=~/graphs fedstruct datasets"],
    import_: [
        "fedstruct import accounts.csv payments.csv --owner bank --label illicit --weight amount --time day",
        "fedstruct import HI-Small_Trans.csv --largest 20 --out aml.npz",
    ],
    generate: ["fedstruct generate consortium:banks=3,accounts=2000 --out banks"],
}
"""The commands, in the order in which help lists them."""

for _command, _typed in EXAMPLES.items():
    _heading = "Example: " if len(_typed) == 1 else "Examples: "
    # A name that Python keeps for itself has an underscore at its end.
    app.command(_command.__name__.rstrip("_"), epilog=_heading + " · ".join(f"[bold]{line}[/bold]" for line in _typed))(
        _command
    )

OUT_OF_MEMORY = "out of memory: try fewer --jobs, fewer hidden units, a smaller graph or fewer layers_structure"


def main() -> None:
    """Run the command line; a mistake of the user is one sentence on stderr and exit code 2."""
    # A polite end is an end like Ctrl-C: workers are stopped, and what was saved stays.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal or a file that does not take every letter gets a question mark in its place.
        sys.stdout.reconfigure(errors="replace")
    try:
        _check_text(sys.argv)
        if len(sys.argv) == 1:
            app(["--help"], prog_name=PROGRAM, standalone_mode=False)
            sys.exit(2)
        if (code := app(prog_name=PROGRAM, standalone_mode=False)) == 130:
            # Ctrl-C before a command had anything that could be kept, say while it was being imported.
            raise KeyboardInterrupt
        sys.exit(code)
    except KeyboardInterrupt:
        fail("stopped", 130)
    except UsageError as error:
        fail(str(sentence(error, sys.argv[1:])), 2)
    except FedstructError as error:
        fail(str(error), 2)
    except MemoryError:
        fail(OUT_OF_MEMORY, 1)
    except RuntimeError as error:
        if "DefaultCPUAllocator" not in str(error):
            raise
        fail(OUT_OF_MEMORY, 1)
    except BrokenPipeError:
        _say_no_more()
    except OSError as error:
        _say_no_more()
        why = error.strerror or str(error)
        if error.filename is None:
            fail(f"the system stopped it: {why}", 1)
        fail(f"{error.filename} cannot be used: {why}", 2)


def _check_text(arguments: list[str]) -> None:
    """Names of files may be any bytes, but run folders and their tables are UTF-8."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise FedstructError(f"{argument!r} is not UTF-8 text; give the file another name") from None


def _say_no_more() -> None:
    """What is left to be written would fail once more at the end of the process."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
