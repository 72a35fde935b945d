"""The page: figures put into templates, with every word of the data escaped, within a bound on its size."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from fedstruct.atomic import replaced
from fedstruct.errors import FedstructError
from fedstruct.experiments.report.charts import curves, strips, thinned
from fedstruct.experiments.show import percent, size, spread
from fedstruct.experiments.visible import brief, visible
from fedstruct.graph.datasets import stem

MOST_BYTES = 1_500_000
ROOM_FOR_RUNS = 700_000
"""Of these, what the runs may take that are told one by one."""

MOST_SEEDS = 1000
MOST_PARTIES = 60
MOST_CLASSES = 16


def page(told: dict[str, Any]) -> str:
    """One HTML file that asks for nothing else.

    >>> page({"folders": [], "runs": [], "cards": []}).startswith("<!doctype html>")
    True
    """
    templates = Environment(
        loader=PackageLoader("fedstruct.experiments.report", "templates"),
        autoescape=True, undefined=StrictUndefined, finalize=seen, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    templates.filters |= {
        "percent": percent,
        "size": size,
        "spread": spread,
        "shade": shade,
        "largest": largest,
        "name": name,
    }
    runs = told["runs"]
    blocks, left_out = list[tuple[dict[str, Any], Markup]](), list[str]()
    room = ROOM_FOR_RUNS
    for run in runs:
        block = templates.get_template("run.html").render(run=run, alone=len(runs) == 1, **limits())
        room -= len(block.encode())
        if room >= 0:
            blocks.append((run, Markup(block)))
        else:
            left_out.append(run["name"])
    html = templates.get_template("page.html").render(
        **told,
        title=title(runs),
        style=Markup((files("fedstruct.experiments.report") / "templates" / "page.css").read_text("utf-8")),
        strips=strips(runs),
        curves=curves(runs),
        without_curve=[run["name"] for run in runs if not run["curve"]],
        seeds=thinned([(run, each) for run in runs for each in run["runs"]], MOST_SEEDS),
        blocks=blocks,
        left_out=left_out,
        two_classes=any("auprc" in run for run in runs),
        **limits(),
    )
    if len(html.encode()) > MOST_BYTES:
        raise FedstructError(f"{len(runs)} run folders are too much for one page; give fewer")
    return html


def check_new(path: Path, force: bool) -> None:
    """Refuse a file that is there, unless it is to be replaced; found out before anything is read."""
    if path.is_dir():
        raise FedstructError(f"{path} is a folder; name a file, for example --out {path / 'report.html'}")
    if path.exists() and not force:
        raise FedstructError(f"{path} exists and is not overwritten; give another --out, or --force")


def write(html: str, path: Path) -> None:
    """Save the page."""
    try:
        replaced(path, lambda part: part.write_text(html, encoding="utf-8", newline="\n"))
    except OSError as error:
        raise FedstructError(f"{path} cannot be written: {error.strerror or error}; give another --out") from None


def title(runs: Sequence[dict[str, Any]]) -> str:
    """What all runs have in common.

    >>> title([{"dataset": "cora", "parties": n, "partition": "random", "method": "fedstruct"} for n in (5, 10)])
    'cora, fedstruct, random partition'
    """
    forms = {"dataset": "{}", "method": "{}", "parties": "{} parties", "partition": "{} partition"}
    shared = [
        form.format(stem(str(runs[0][key])) if key == "dataset" else runs[0][key])
        for key, form in forms.items()
        if runs and all(run[key] == runs[0][key] for run in runs)
    ]
    return ", ".join(shared) or "several runs"


def seen(value: Any) -> Any:
    """What the page is given passes here, so that no character from outside turns or hides what stands beside it."""
    return type(value)(visible(value)) if isinstance(value, str) else value


def name(full: str) -> Markup:
    """A name that may be long, with the whole of it for who points at it."""
    short = brief(full)
    return escape(short) if short == full else Markup('<span title="{}">{}</span>').format(visible(full), short)


def shade(share: float | None) -> int:
    """How dark a cell is, from 0 to 9."""
    return 0 if share is None else min(9, round(9 * share))


def largest(counts: Sequence[int]) -> str:
    if not sum(counts):
        return "–"
    most = max(range(len(counts)), key=counts.__getitem__)
    return f"{most}: {percent(counts[most] / sum(counts))} %"


def limits() -> dict[str, int]:
    return {"most_parties": MOST_PARTIES, "most_classes": MOST_CLASSES}
