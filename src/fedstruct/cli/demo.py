"""`fedstruct demo`: a first look, start to finish."""

from __future__ import annotations

from fedstruct.cli.options import Json, print_json


def demo(as_json: Json = False) -> None:
    """Make a consortium of banks, train in four ways, and say what joining brings and costs each bank."""
    from fedstruct.experiments.demo import TOGETHER, WAYS, Demonstration
    from fedstruct.experiments.process import prepare_process
    from fedstruct.experiments.show import say, watching, working
    from fedstruct.experiments.show_card import show_card
    from fedstruct.experiments.show_demo import show_costs, show_gains, show_ways

    prepare_process()
    demonstration = Demonstration()
    with working("a network of payments, and its owners"):
        card = demonstration.card
    if not as_json:
        say("[bold]Five banks, made up.[/bold] Some accounts launder money, mostly across banks. Who finds them?\n")
        show_card(card)
        say("\n[dim]Read off: if structure were exchanged over two hops, which the method below does not need.[/dim]")
    with watching(len(WAYS), "ways") as watch:
        for method, result in demonstration.train(watch):
            watch.finished(result.auprc, f"{method}:", "AUPRC")
    if as_json:
        print_json(demonstration.as_json())
        return
    say("\n[bold]What each way to train finds[/bold]\n")
    show_ways(demonstration.found)
    say("\n[bold]What joining brings each bank[/bold]\n")
    show_gains(demonstration)
    say("\n[bold]What joining costs[/bold]")
    show_costs(demonstration.found[TOGETHER])
    say(
        "\nNext: [bold]fedstruct compare consortium:cross=0.6 --methods local-gnn,fedstruct --train 0.5[/bold]"
        "\n      [bold]fedstruct generate consortium --out tables[/bold], to see what your own tables should look like"
        "\n      [bold]fedstruct run cora --seeds 10[/bold], if you have FEDSTRUCT_DATA or a network"
    )
