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
"""The columns that hold whole numbers; the others hold text."""


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
            bytes=int(sum(np.broadcast_to(e[5], _many(e)).sum() for e in at)),
            rows=int(sum(np.broadcast_to(e[4], _many(e)).sum() for e in at)),
        )

    def frame(self) -> polars.DataFrame:
        """The ledger as a table, one row per message and entry."""
        import polars

        many = [_many(e) for e in self._entries]

        def spread(values: Iterable[Any]) -> np.ndarray:
            return np.repeat(np.array(list(values), dtype=object), many)

        def each(position: int, kind: Any) -> np.ndarray:
            parts = [np.broadcast_to(np.asarray(e[position], dtype=kind), _many(e)) for e in self._entries]
            return np.concatenate(parts) if parts else np.array([], dtype=kind)

        kinds = [e[3] for e in self._entries]
        data = {
            "run": np.full(sum(many), self.run, dtype=object),
            "step": spread(e[0] for e in self._entries).astype(np.int64),
            "sender": each(1, object),
            "receiver": each(2, object),
            "kind": spread(k.__name__ for k in kinds),
            "sources": spread(k.sources.words for k in kinds),
            "tells": spread(k.tells for k in kinds),
            "rows": each(4, np.int64),
            "bytes": each(5, np.int64),
            "entry": spread(e[6] for e in self._entries),
        }
        return polars.DataFrame(
            [
                polars.Series(name, list(data[name]), dtype=polars.String)
                if data[name].dtype == object
                else polars.Series(name, data[name])
                for name in COLUMNS
            ]
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
