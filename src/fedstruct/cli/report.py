"""`fedstruct report`: a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedstruct.cli.options import Json, print_json


def report(
    folders: Annotated[
        list[Path], typer.Argument(help="Run folders, or the folders of a comparison or a sweep.", metavar="RUN…")
    ],
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("report.html"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    as_json: Json = False,
) -> None:
    """Write what runs found, sent and gave away into one HTML file that needs no network.

    With --json the figures are printed instead, and no file is written.
    """
    from fedstruct.experiments.report.page import check_new, page, write
    from fedstruct.experiments.report.told import tell
    from fedstruct.experiments.show import line, shell

    if as_json:
        print_json(tell(folders))
        return
    check_new(out, force)
    write(page(tell(folders)), out)
    line(f"Written to {shell(out)}; open it in a browser.")
