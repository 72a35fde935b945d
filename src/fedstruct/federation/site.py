"""A site: one party's end of the wire. It decodes, checks, writes the ledger, and steps the party."""

from __future__ import annotations

import struct
from collections.abc import Collection

from fedstruct.errors import RefusedMessage
from fedstruct.federation.codec import decode, encode
from fedstruct.federation.ledger import Ledger
from fedstruct.federation.message import Message, Wire
from fedstruct.federation.party import Party
from fedstruct.federation.sealing import Keyring
from fedstruct.federation.transport import COORDINATOR, Transport

_STEP = struct.Struct("<Q")


class Site:
    """One party behind its boundary: frames come in, frames go out, and nothing else does."""

    def __init__(
        self,
        party: Party,
        kinds: Collection[type[Message]],
        transport: Transport,
        ledger: Ledger,
        keyring: Keyring | None = None,
        wire: Wire = "full",
    ) -> None:
        self.party = party
        self.name = party.own.name
        self.ledger = ledger
        self._kinds = [k for k in kinds if not k.peer]
        self._peer_kinds = [k for k in kinds if k.peer]
        self._transport = transport
        self._keyring = keyring
        self._wire = wire
        self._step = 0
        self._arrived: dict[int, dict[str, list[bytes]]] = {}
        self._kept: dict[int, list[Message]] = {}

    def on_call(self, envelope: bytes) -> bytes:
        """Answer one question of the coordinator; what the party posts is delivered before the answer leaves."""
        step, frame = opened(envelope)
        if step <= self._step:
            raise RefusedMessage(f"{self.name} has answered step {self._step} already; step {step} came too late")
        # A step whose posts cannot be read is over all the same: asked again, the party would go on without them.
        self._step = step
        inbox = self._read_inbox(step - 1)
        question = decode(frame, self._kinds, self.party.limits(), self._wire)
        self.ledger.record(step, COORDINATOR, self.name, type(question), question.rows, len(frame))
        self.party.put_inbox(inbox)
        try:
            reply = self.party.answer(question)
        finally:
            posts = self.party.take_posts()
        for to, message in posts:
            self._post(step, to, message)
        answer = encode(reply, self._wire)
        self.ledger.record(step, self.name, COORDINATOR, type(reply), reply.rows, len(answer))
        return answer

    def on_deliver(self, sender: str, envelope: bytes) -> None:
        """Store what a peer posts; it is read at the start of the next step."""
        if sender not in self.party.own.peers:
            raise RefusedMessage(f"'{sender}' is not a peer of {self.name}")
        step, frame = opened(envelope)
        if step < self._step or (step > self._step and any(self._step < other != step for other in self._arrived)):
            raise RefusedMessage(f"{self.name} is at step {self._step}; a post of step {step} does not belong here")
        if len(frame) > self.party.limits().bytes:
            raise RefusedMessage(f"a post of {len(frame):,} bytes from {sender} exceeds {self.name}'s limit")
        frames = self._arrived.setdefault(step, {}).setdefault(sender, [])
        if len(frames) >= len(self._peer_kinds):
            raise RefusedMessage(f"{sender} has posted to {self.name} already in step {step}")
        frames.append(frame)

    def _post(self, step: int, to: str, message: Message) -> None:
        if to == self.name:
            self._kept.setdefault(step, []).append(message)
            return
        frame = encode(message, self._wire)
        self.ledger.record(step, self.name, to, type(message), message.rows, len(frame))
        if self._keyring is not None:
            frame = self._keyring.seal(to, frame, self._context(step, self.name, to))
        self._transport.deliver(self.name, to, sealed_with(step, frame))

    def _read_inbox(self, step: int) -> dict[str, list[Message]]:
        inbox = {self.name: self._kept.pop(step, [])}
        self._kept.clear()
        limits = self.party.limits()
        arrived = self._arrived.pop(step, {})
        self._arrived = {later: posts for later, posts in self._arrived.items() if later > step}
        for sender, frames in arrived.items():
            for frame in frames:
                if self._keyring is not None:
                    frame = self._keyring.open(sender, frame, self._context(step, sender, self.name))
                message = decode(frame, self._peer_kinds, limits, self._wire)
                if any(type(message) is type(other) for other in inbox.get(sender, ())):
                    raise RefusedMessage(
                        f"{sender} has posted '{type(message).__name__}' to {self.name} twice in a step"
                    )
                self.ledger.record(step, sender, self.name, type(message), message.rows, len(frame))
                inbox.setdefault(sender, []).append(message)
        return inbox

    def _context(self, step: int, sender: str, receiver: str) -> bytes:
        return f"{self.ledger.run}\x1f{step}\x1f{sender}\x1f{receiver}".encode()


def sealed_with(step: int, frame: bytes) -> bytes:
    """A frame in the envelope that says to which step it belongs."""
    return _STEP.pack(step) + frame


def opened(envelope: bytes) -> tuple[int, bytes]:
    if len(envelope) < _STEP.size:
        raise RefusedMessage("an envelope is cut short")
    return _STEP.unpack_from(envelope)[0], envelope[_STEP.size :]
