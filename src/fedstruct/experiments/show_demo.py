"""The demonstration in the terminal."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from fedstruct.experiments.demo import ALONE, TOGETHER, WAYS, Demonstration
from fedstruct.experiments.result import RunResult
from fedstruct.experiments.show import out, percent, say, size
from fedstruct.experiments.words import exposure_words, grouped, say_learned


def show_ways(found: dict[str, RunResult]) -> None:
    """What each way to train finds, and takes."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("who trains with whom")
    for heading in ("AUPRC", "recall at 1 %", "macro F1", "seconds", "sent"):
        table.add_column(heading, justify="right", no_wrap=True)
    for method, result in found.items():
        table.add_row(
            f"{WAYS[method]} [dim]({method})[/dim]",
            f"[bold]{percent(result.auprc)}[/bold]",
            percent(result.recall),
            percent(result.macro_f1),
            f"{sum(result.seconds.values()):.1f}",
            size(sum(result.bytes.values())),
        )
    out.print(table)
    say(
        "\n[dim]Of the accounts that launder, recall counts those among the 1 % that look most like it; chance has an "
        "AUPRC of 3 %. Half of the accounts train. One network, one seed: with a tenth of them, joining made it worse "
        "(docs/consortium.md).[/dim]"
    )


def show_gains(demonstration: Demonstration) -> None:
    """What joining brings each bank."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("bank")
    for heading in ("launder", "AUPRC alone", "together", "gain"):
        table.add_column(heading, justify="right")
    cases = demonstration.cases()
    for bank, (alone, together) in demonstration.gains().items():
        gain = "–" if alone is None or together is None else f"{100 * (together - alone):+.2f}"
        table.add_row(escape(bank), f"{cases[bank]}", percent(alone), percent(together), f"[bold]{gain}[/bold]")
    out.print(table)
    say(
        f"\n[dim]{ALONE} and {TOGETHER}, each counted by the bank itself on its own test accounts. So few of them "
        "launder that each gain is rough.[/dim]"
    )


def show_costs(result: RunResult) -> None:
    """What joining costs in privacy."""
    say_learned(grouped(result.ledger.coded()), exposure_words(result.as_json()))
