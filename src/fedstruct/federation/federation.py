"""The federation, as a method's coordinator sees it: it can ask, and it can sum."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Protocol

import numpy as np

from fedstruct.errors import FedstructError, RefusedMessage
from fedstruct.federation.codec import Limits, decode, encode
from fedstruct.federation.ledger import Ledger
from fedstruct.federation.message import Message, Wire
from fedstruct.federation.site import sealed_with
from fedstruct.federation.transport import COORDINATOR, Transport

Rows = Mapping[str, np.ndarray]
"""For each party, which rows of a message's `by_row` arrays it has to do with."""


class Federation(Protocol):
    """All that a method's coordinator code can see. Each call is one superstep."""

    parties: tuple[str, ...]
    step: int

    def ask(self, question: Message, limits: Limits = Limits()) -> Mapping[str, Message]:
        """Every party's answer to the same question."""
        ...

    def sum(self, question: Message, rows: Rows | None = None, limits: Limits = Limits()) -> Message:
        """The sum of the answers, field by field, in federation order.

        With `rows`, party i sees only `rows[i]` of the question's `by_row` arrays, and those of its answer are
        added back at these rows.
        """
        ...


class Coordinator:
    """The federation over a transport: each question and answer is a frame, and stands in the ledger."""

    def __init__(
        self,
        parties: tuple[str, ...],
        kinds: Collection[type[Message]],
        transport: Transport,
        ledger: Ledger,
        wire: Wire = "full",
    ) -> None:
        if COORDINATOR in parties or "" in parties or len(set(parties)) < len(parties):
            raise FedstructError(f"parties need names of their own, and none may be called '{COORDINATOR}'")
        self.parties = parties
        self.step = 0
        self.answers: Mapping[str, Message] = {}
        """What each party answered last; nothing after a step that parties took as one."""
        self.ledger = ledger
        self._kinds = frozenset(kinds)
        self._transport = transport
        self._wire = wire

    def ask(self, question: Message, limits: Limits = Limits()) -> Mapping[str, Message]:
        return self._exchange(dict.fromkeys(self.parties, question), dict.fromkeys(self.parties, limits))

    def sum(self, question: Message, rows: Rows | None = None, limits: Limits = Limits()) -> Message:
        if rows is None:
            return total(list(self.ask(question, limits).values()))
        names = question.by_row()
        questions = {p: replace(question, **{f: getattr(question, f)[rows[p]] for f in names}) for p in self.parties}
        dim = question.specs()[names[0]].dims[0]
        known = {p: replace(limits, sizes={**limits.sizes, dim: len(rows[p])}) for p in self.parties}
        answers = self._exchange(questions, known)
        length = len(getattr(question, names[0]))
        return total([answers[p] for p in self.parties], [rows[p] for p in self.parties], length)

    def _exchange(self, questions: Mapping[str, Message], limits: Mapping[str, Limits]) -> dict[str, Message]:
        self.step += 1
        kind = type(questions[self.parties[0]])
        if kind not in self._kinds or kind.reply is None:
            raise FedstructError(f"a message of kind '{kind.__name__}' is not a question of this method")
        frames: dict[str, bytes] = {}
        encoded: dict[int, bytes] = {}
        for party, question in questions.items():
            frame = encoded.setdefault(id(question), b"") or encode(question, self._wire)
            frames[party] = encoded[id(question)] = frame
            self.ledger.record(self.step, COORDINATOR, party, kind, question.rows, len(frame))
        raw = self._transport.call({p: sealed_with(self.step, f) for p, f in frames.items()})
        answers = {}
        for party in self.parties:
            try:
                answers[party] = decode(raw[party], [kind.reply], limits[party], self._wire)
            except RefusedMessage as refused:
                raise RefusedMessage(f"{party} answered step {self.step} with what cannot be read: {refused}") from None
            self.ledger.record(self.step, party, COORDINATOR, kind.reply, answers[party].rows, len(raw[party]))
        self.answers = answers
        return answers


def total(answers: list[Message], rows: list[np.ndarray] | None = None, length: int = 0) -> Message:
    """Messages of one kind, added up field by field in the order given."""
    first = answers[0]
    sums: dict[str, object] = {}
    by_row = first.by_row() if rows is not None else ()
    for f in fields(first):
        values = [getattr(a, f.name) for a in answers]
        if f.name in by_row and rows is not None:
            whole = np.zeros((length, *values[0].shape[1:]), values[0].dtype)
            for at, value in zip(rows, values, strict=True):
                whole[at] += value
            sums[f.name] = whole
        elif isinstance(values[0], np.ndarray):
            added = values[0].copy()
            for value in values[1:]:
                added += value
            sums[f.name] = added
        else:
            sums[f.name] = sum(values[1:], values[0])
    return type(first)(**sums)
