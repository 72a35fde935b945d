"""One owner's side of a method: no threads, no sockets, no other party's object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

from fedstruct.errors import RefusedMessage
from fedstruct.federation.codec import Limits
from fedstruct.federation.message import Message
from fedstruct.graph.party_graph import PartyGraph

M = TypeVar("M", bound=Message)
F = TypeVar("F", bound=Callable[..., Message])


def answers(kind: type[Message], after: type[Message] | None = None) -> Callable[[F], F]:
    """Mark the method of a party that answers this kind of message, once it has answered that other kind."""

    def mark(method: F) -> F:
        method._answers = kind  # type: ignore[attr-defined]
        method._after = after  # type: ignore[attr-defined]
        return method

    return mark


class Party:
    """One owner's side. Its site hands it one question at a time; it answers, and may post to peers.

    Posts leave when the step ends; the next step finds them in the inbox, in federation order.
    """

    _handlers: ClassVar[dict[type[Message], tuple[str, type[Message] | None]]] = {}

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        marked = {m._answers: (name, m._after) for name, m in vars(cls).items() if hasattr(m, "_answers")}
        inherited = [base._handlers for base in cls.__mro__[1:] if issubclass(base, Party)]
        cls._handlers = {k: v for handlers in reversed(inherited) for k, v in handlers.items()} | marked

    def __init__(self, own: PartyGraph, parties: tuple[str, ...]) -> None:
        self.own = own
        self.parties = parties
        """Everybody's name, in federation order."""
        self.me = parties.index(own.name)
        self._answered: frozenset[type[Message]] = frozenset()
        self._outbox: list[tuple[str, Message]] = []
        self._inbox: dict[str, list[Message]] = {}

    def answer(self, question: Message) -> Message:
        """Answer one question of the coordinator."""
        kind = type(question)
        if kind not in self._handlers:
            raise RefusedMessage(f"{self.own.name} has no answer to '{kind.__name__}'")
        name, after = self._handlers[kind]
        if after is not None and after not in self._answered:
            raise RefusedMessage(f"'{kind.__name__}' came to {self.own.name} before '{after.__name__}'")
        reply: Message = getattr(self, name)(question)
        self._answered |= {kind}
        return reply

    def limits(self) -> Limits:
        """What this party knows of the messages that may come to it."""
        return Limits()

    def held(self) -> dict[str, Any]:
        """All that this party holds, but for its mail: a simulation can put it back in place of the steps behind it."""
        return {name: value for name, value in vars(self).items() if name not in ("_inbox", "_outbox")}

    def post(self, to: str, message: Message) -> None:
        """Send to a peer when this step ends; what goes to oneself is not sent and not counted."""
        self._outbox.append((to, message))

    def inbox(self, kind: type[M]) -> Iterator[tuple[str, M]]:
        """What was posted to this party in the step before, in federation order."""
        for sender in self.parties:
            for message in self._inbox.get(sender, ()):
                if isinstance(message, kind):
                    yield sender, message

    def take_posts(self) -> list[tuple[str, Message]]:
        """For the site, at the end of a step: what is to leave."""
        posts, self._outbox = self._outbox, []
        return posts

    def put_inbox(self, inbox: dict[str, list[Message]]) -> None:
        """For the site, at the start of a step: what came."""
        self._inbox = inbox
