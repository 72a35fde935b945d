"""The card of a partition in the terminal: a line per party, a small bar per class, and the whole in words."""

from __future__ import annotations

from statistics import median

from rich.markup import escape
from rich.table import Table

from fedstruct.experiments.card import LARGEST, Card
from fedstruct.experiments.show import out, say
from fedstruct.experiments.visible import brief

BARS = "▁▂▃▄▅▆▇█"
NO_BAR = "·"

MOST_BARS = 24
"""Classes that are drawn side by side; of more than that, only the largest is named."""


def show_card(card: Card) -> None:
    """The parts in a table, and what they are together."""
    parties = card.parties
    say(f"[bold]{escape(card.graph)}, {_count(len(parties), 'party', 'parties')} ({escape(card.partition)})[/bold]\n")
    out.print(_parts(card))
    if card.label_skew is not None and len(card.classes) <= MOST_BARS:
        full, last = _percent(_tallest(card), 0), len(card.classes) - 1
        say(f"\n[dim]Bars: classes 0 to {last}; a full one is {full} of a party's labels, {NO_BAR} is none.[/dim]")
    say("")
    out.print(_whole(card))


def _parts(card: Card) -> Table:
    drawn = len(card.classes) <= MOST_BARS
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("\nparty", overflow="fold")
    for name in ("\nnodes", "inner\nedges", "border\nedges", "neigh-\nbours", "\nread off", "largest\nclass"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("\nclasses" if drawn else "", no_wrap=True)
    tallest = _tallest(card)
    for p in card.parties:
        table.add_row(
            escape(brief(p.party)),
            *(f"{n:,}" for n in (p.nodes, p.inner_edges, p.border_edges, p.neighbours)),
            _percent(p.read_off, 0),
            _largest(p.classes),
            bars(p.classes, tallest) if drawn else "",
        )
    inner = sum(p.inner_edges for p in card.parties)
    table.add_row(
        "everybody",
        *(f"{n:,}" for n in (card.nodes, inner, card.edges - inner)),
        "",
        _percent(card.read_off, 0),
        _largest(card.classes),
        bars(card.classes, tallest) if drawn else "",
        style="bold",
    )
    return table


def _whole(card: Card) -> Table:
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    sizes = [p.nodes for p in card.parties]
    table.add_row("sizes", f"{min(sizes):,} to {max(sizes):,} nodes, median {round(median(sizes)):,}")
    table.add_row("border edges", f"{_percent(card.border_share, 1)} of {_count(card.edges, 'edge', 'edges')}")
    inside, across = _figure(card.homophily_inside), _figure(card.homophily_across)
    table.add_row("homophily", f"{inside} inside parties, {across} across borders: edges with both ends of one class")
    skew, read = "–", "–"
    if card.prune is None:
        read = f"not computed for a graph with more than {LARGEST // 2:,} edges; a run of fedstruct does"
    if card.label_skew is not None:
        skew = (
            f"{_figure(card.label_skew)}: on average, {_percent(card.label_skew, 0)} of a party's labelled nodes would "
            "need another class for its mixture to be everybody's (total variation distance)"
        )
    if card.read_off is not None:
        read = (
            f"at least {_percent(card.read_off, 1)} of inner edges, exactly, by some peer: second hop of the "
            f"structure exchange, p = {card.prune}"
        )
    table.add_row("label skew", skew)
    table.add_row("read off", read)
    return table


def bars(counts: list[int], tallest: float) -> str:
    """A bar per class, its height the class's share; `tallest` is the share of a full one.

    >>> bars([8, 0, 2, 6], tallest=0.5)
    '█·▂▆'
    """
    whole = sum(counts)
    if whole == 0:
        return "–"
    heights = [-(-len(BARS) * count / (whole * tallest) // 1) for count in counts]
    return "".join(BARS[min(int(h), len(BARS)) - 1] if h else NO_BAR for h in heights)


def _tallest(card: Card) -> float:
    """The largest share of one class in any part."""
    return max((max(p.classes) / sum(p.classes) for p in card.parties if sum(p.classes)), default=1.0)


def _largest(counts: list[int]) -> str:
    if sum(counts) == 0:
        return "–"
    largest = max(range(len(counts)), key=counts.__getitem__)
    return f"{largest}: {_percent(counts[largest] / sum(counts), 0)}"


def _percent(share: float | None, digits: int) -> str:
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
