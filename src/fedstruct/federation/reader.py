"""Reads a frame from its beginning to its end, and never beyond."""

from __future__ import annotations

import struct
from typing import Any

from fedstruct.errors import RefusedMessage


class Reader:
    """The bytes of a frame, and how far they have been read; `where` names what is being read."""

    def __init__(self, frame: bytes | memoryview) -> None:
        self.frame = memoryview(frame)
        self.at = 0
        self.where = "a message"

    @property
    def left(self) -> int:
        return len(self.frame) - self.at

    def rest(self) -> memoryview:
        """All that is left, not taken yet."""
        return self.frame[self.at :]

    def take(self, count: int) -> memoryview:
        if count > self.left:
            raise RefusedMessage(f"{self.where} is cut short")
        self.at += count
        return self.frame[self.at - count : self.at]

    def numbers(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def number(self, form: str) -> Any:
        return self.numbers(form)[0]

    def text(self) -> str:
        raw = bytes(self.take(self.number("<I")))
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise RefusedMessage(f"{self.where} is not text") from None
