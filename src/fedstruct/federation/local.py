"""The local federation: every party in one process, one after the other, or stepping as one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from fedstruct.federation.codec import Limits, size
from fedstruct.federation.federation import Coordinator, Rows
from fedstruct.federation.ledger import Ledger, union
from fedstruct.federation.message import Message, Wire
from fedstruct.federation.party import Party
from fedstruct.federation.sealing import keyrings
from fedstruct.federation.site import Site
from fedstruct.federation.stack import Posts, Stack
from fedstruct.federation.transport import COORDINATOR


class LocalTransport:
    """Bytes handed over in memory."""

    def __init__(self) -> None:
        self.sites: dict[str, Site] = {}

    def call(self, envelopes: Mapping[str, bytes]) -> Mapping[str, bytes]:
        return {to: self.sites[to].on_call(envelope) for to, envelope in envelopes.items()}

    def deliver(self, sender: str, to: str, envelope: bytes) -> None:
        self.sites[to].on_deliver(sender, envelope)


class LocalFederation(Coordinator):
    """A simulated federation.

    With `separate`, every question, answer and post is a frame, and posts are sealed, as on a network. Without it,
    sums are computed for all parties side by side where their class offers `stack`; the ledger has the same rows, those
    of posts between the parties included. What is rounded on the wire is rounded for each party: with `wire` half,
    nothing is computed side by side, and a run is bit for bit the one with `separate`.
    """

    def __init__(
        self,
        parties: Sequence[Party],
        kinds: Collection[type[Message]],
        run: str,
        separate: bool = False,
        wire: Wire = "full",
    ) -> None:
        names = tuple(p.own.name for p in parties)
        transport = LocalTransport()
        super().__init__(names, kinds, transport, Ledger(run, COORDINATOR), wire)
        rings = keyrings(names) if separate else {}
        for party in parties:
            name = party.own.name
            transport.sites[name] = Site(party, kinds, transport, Ledger(run, name), rings.get(name), wire)
        self.sites = transport.sites
        self._together = Ledger(run, "the parties together")
        self._stackable = None if separate or wire == "half" else getattr(type(parties[0]), "stack", None)
        self._parties = list(parties)
        self._stack: Stack | None = None
        self._rows: tuple[Rows | None, np.ndarray] = None, np.zeros(0)

    @property
    def books(self) -> Ledger:
        """The union of all sites' ledgers."""
        books = [self.ledger, *(s.ledger for s in self.sites.values()), self._together]
        return union(self.ledger.run, books)

    def ask(self, question: Message, limits: Limits = Limits()) -> Mapping[str, Message]:
        self._stack = None
        return super().ask(question, limits)

    def sum(self, question: Message, rows: Rows | None = None, limits: Limits = Limits()) -> Message:
        if self._stackable is None:
            return super().sum(question, rows, limits)
        if self._stack is None:
            self._stack = self._stackable(self._parties)
        if type(question) not in self._stack.steps:
            return super().sum(question, rows, limits)
        self.step += 1
        self.answers = {}
        answer = self._stack.total(question)
        self._record(question, rows, asked=True)
        for posts in self._stack.posts(question):
            self._record_posts(posts)
        self._record(answer, rows, asked=False)
        return answer

    def _record(self, message: Message, rows: Rows | None, asked: bool) -> None:
        """The rows that the ledgers of separate sites would have."""
        kind = type(message)
        sizes: Any = size(message)
        count: Any = message.rows
        if rows is not None:
            lengths = self._lengths(rows)
            sizes = size(message, lengths)
            if kind.unit in kind.by_row():
                count = lengths
        sender, receiver = (COORDINATOR, self.parties) if asked else (self.parties, COORDINATOR)
        for book, entry in ((self.ledger, asked), (self._together, not asked)):
            book.record(self.step, sender, receiver, kind, count, sizes, "sent" if entry else "received")

    def _record_posts(self, posts: Posts) -> None:
        sizes = size(posts.like, posts.rows)
        for entry in ("sent", "received"):
            self._together.record(self.step, posts.senders, posts.receivers, type(posts.like), posts.rows, sizes, entry)

    def _lengths(self, rows: Rows) -> np.ndarray:
        # The same rows come round after round; they are counted once.
        if self._rows[0] is not rows:
            self._rows = rows, np.array([len(rows[p]) for p in self.parties])
        return self._rows[1]
