"""The ledger: who told whom what, and how much; each site keeps its own, double entry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedstruct.federation.message import Message

if TYPE_CHECKING:
    import polars

Entry = tuple[Any, ...]
"""(step, sender, receiver, kind, rows, size, entry)."""

COLUMNS = ("run", "step", "sender", "receiver", "kind", "sources", "tells", "rows", "bytes", "entry")
NUMBERS = frozenset({"step", "rows", "bytes"})
TEXTS = tuple(name for name in COLUMNS if name not in NUMBERS)
"""The columns that hold whole numbers, and those that hold text."""


class Ledger:
    """One site's book of the messages that it sent and received, in the order in which they passed.

    >>> from fedstruct.federation.message import Done
    >>> book = Ledger("run-1", owner="bank")
    >>> book.record(1, "bank", "coordinator", Done, rows=0, size=8)
    >>> book.bytes, book.messages
    (8, 1)
    """

    def __init__(self, run: str, owner: str) -> None:
        self.run = run
        self.owner = owner
        self._entries: list[Entry] = []

    def record(
        self,
        step: int,
        sender: str | Sequence[str],
        receiver: str | Sequence[str],
        kind: type[Message],
        rows: int | np.ndarray,
        size: int | np.ndarray,
        entry: str | None = None,
    ) -> None:
        """Write down a message, or one message to or from each of several parties."""
        if entry is None:
            entry = "sent" if sender == self.owner else "received"
        self._entries.append((step, sender, receiver, kind, rows, size, entry))

    def __len__(self) -> int:
        return len(self._entries)

    def since(self, length: int) -> list[Entry]:
        """What was written down since the book had this length."""
        return self._entries[length:]

    def repeat(self, entries: Iterable[Entry], later: int) -> None:
        """Write down what was written down before, so many steps later."""
        self._entries += [(step + later, *rest) for step, *rest in entries]

    @property
    def bytes(self) -> int:
        """Bytes sent."""
        return self.sent().bytes

    @property
    def messages(self) -> int:
        """Messages sent."""
        return self.sent().messages

    def sent(self, steps: range | None = None, kind: type[Message] | None = None) -> Traffic:
        """What was sent: in all, in some steps, or of one kind."""
        at = [
            e
            for e in self._entries
            if e[6] == "sent" and (steps is None or e[0] in steps) and (kind is None or e[3] is kind)
        ]
        return Traffic(
            messages=sum(_many(e) for e in at),
            bytes=sum(_total(e[5], _many(e)) for e in at),
            rows=sum(_total(e[4], _many(e)) for e in at),
        )

    def frame(self) -> polars.DataFrame:
        """The ledger as a table, one row per message and entry."""
        import polars

        return self._table(polars.String())

    def coded(self) -> polars.DataFrame:
        """The same table with its texts as categories: some fifty bytes a row, where there may be millions."""
        import polars

        return self._table(polars.Categorical())

    def _table(self, kind: polars.DataType) -> polars.DataFrame:
        import polars

        starts = np.cumsum([0, *(_many(e) for e in self._entries)])

        def spread(values: Iterable[int | np.ndarray], held: type[np.generic]) -> np.ndarray:
            column = np.empty(starts[-1], held)
            for first, last, value in zip(starts[:-1], starts[1:], values, strict=True):
                column[first:last] = value
            return column

        def texts(of: Iterable[str | Sequence[str]]) -> polars.Series:
            codes: dict[str, int] = {}
            several: dict[int, np.ndarray] = {}

            def code(text: str | Sequence[str]) -> int | np.ndarray:
                if isinstance(text, str):
                    return codes.setdefault(text, len(codes))
                # The same parties post to the same parties, hop by hop and round by round.
                if id(text) not in several:
                    several[id(text)] = np.array([code(name) for name in text], np.uint32)
                return several[id(text)]

            column = spread(map(code, of), np.uint32)
            return polars.Series(list(codes), dtype=kind).gather(column)

        kinds = [e[3] for e in self._entries]
        return polars.DataFrame(
            {
                "run": texts(self.run for _ in kinds),
                "step": spread((e[0] for e in self._entries), np.int64),
                "sender": texts(e[1] for e in self._entries),
                "receiver": texts(e[2] for e in self._entries),
                "kind": texts(k.__name__ for k in kinds),
                "sources": texts(k.sources.words for k in kinds),
                "tells": texts(k.tells for k in kinds),
                "rows": spread((e[4] for e in self._entries), np.int64),
                "bytes": spread((e[5] for e in self._entries), np.int64),
                "entry": texts(e[6] for e in self._entries),
            }
        )


@dataclass(frozen=True)
class Traffic:
    """How much passed."""

    messages: int
    bytes: int
    rows: int


def union(run: str, books: Iterable[Ledger]) -> Ledger:
    """All books of a run that was simulated in one place; in step order, as the books hold them."""
    whole = Ledger(run, owner="")
    whole._entries = sorted((e for book in books for e in book._entries), key=lambda e: e[0])
    return whole


def _many(entry: Entry) -> int:
    return max(1 if isinstance(side, str) else len(side) for side in entry[1:3])


def _total(value: int | np.ndarray, many: int) -> int:
    return int(value.sum()) if isinstance(value, np.ndarray) and value.ndim else int(value) * many
