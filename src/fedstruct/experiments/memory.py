"""The memory of structure exchanges: what several runs of a simulation would do alike is done once."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fedstruct.federation.codec import Limits
from fedstruct.federation.ledger import Entry
from fedstruct.federation.local import LocalFederation
from fedstruct.federation.message import Done, Message, Wire
from fedstruct.federation.party import Party
from fedstruct.graph.party_graph import PartyGraph
from fedstruct.methods.exchange import Collect, Multiply, Sizes


@dataclass(eq=False)
class Exchange:
    """What one structure exchange left behind: each party's state, the rows in every book, and what it took."""

    began: int
    """The step of its first question."""
    owners: list[PartyGraph]
    """Kept, because the memory knows them by their identity."""
    entries: list[list[list[Entry]]] = field(default_factory=list)
    """For each of its steps, what each book wrote down."""
    states: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float = 0.0


Memory: TypeAlias = dict[tuple[Any, ...], Exchange]
"""Exchanges, by the owners' edges and by the options that they depend on."""


class RememberingFederation(LocalFederation):
    """A simulated federation that computes a structure exchange once, and repeats it when another run asks for it.

    A run that repeats one has the same parties, ledger and exposure as a run that computes it.
    """

    def __init__(
        self,
        parties: Sequence[Party],
        kinds: Collection[type[Message]],
        run: str,
        memory: Memory,
        wire: Wire = "full",
    ) -> None:
        super().__init__(parties, kinds, run, wire=wire)
        self.repeated: Exchange | None = None
        """The exchange that was repeated instead of being computed."""
        self._owners: list[Any] = list(parties)
        self._memory = memory
        self._ledgers = [self.ledger, *(site.ledger for site in self.sites.values())]

    def ask(self, question: Message, limits: Limits = Limits()) -> Mapping[str, Message]:
        if not isinstance(question, (Sizes, Multiply, Collect)):
            return super().ask(question, limits)
        if isinstance(question, Sizes):
            self._begin()
        return self._compute(question, limits) if self.repeated is None else self._repeat(self.repeated)

    def _begin(self) -> None:
        self._began = self.step + 1
        edges = tuple(id(part) for p in self._owners for part in (p.own.inner, p.own.outgoing, p.own.incoming))
        self._key = (type(self._owners[0]), edges, self._owners[0].structure.exchange_key)
        self.repeated = self._memory.get(self._key)
        if self.repeated is None:
            self._new = Exchange(self._began, [p.own for p in self._owners])
            self._before = [p.held() for p in self._owners]
        else:
            for party, state in zip(self._owners, self.repeated.states, strict=True):
                vars(party).update(state)

    def _compute(self, question: Message, limits: Limits) -> Mapping[str, Message]:
        lengths = [len(book) for book in self._ledgers]
        wall, cpu = time.perf_counter(), time.process_time()
        done = super().ask(question, limits)
        self._new.seconds += time.perf_counter() - wall
        self._new.cpu_seconds += time.process_time() - cpu
        self._new.entries.append([book.since(length) for book, length in zip(self._ledgers, lengths, strict=True)])
        hop = 1 if isinstance(question, Sizes) else question.hop  # type: ignore[attr-defined]
        if hop == self._owners[0].structure.exchange_hops and not isinstance(question, Multiply):
            for party, before in zip(self._owners, self._before, strict=True):
                changed = {k: v for k, v in party.held().items() if k not in before or before[k] is not v}
                self._new.states.append(changed)
            self._memory[self._key] = self._new
        return done

    def _repeat(self, exchange: Exchange) -> Mapping[str, Message]:
        entries = exchange.entries[self.step + 1 - self._began]
        self.step += 1
        for book, rows in zip(self._ledgers, entries, strict=True):
            book.repeat(rows, later=self._began - exchange.began)
        return dict.fromkeys(self.parties, Done())
