"""Messages as bytes: one form on every transport, and nothing is built from bytes that were not checked.

A frame is the kind's name, then each field in its order; numbers are little-endian. What is decoded is read-only. Plain
arrays are views of the frame; others are made anew, so that a message takes at most five times the bytes that came.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any

import numpy as np

from fedstruct.errors import RefusedMessage
from fedstruct.federation import arrays
from fedstruct.federation.message import Message, Wire
from fedstruct.federation.reader import Reader

MAGIC = b"FS1"


@dataclass(frozen=True)
class Limits:
    """What the receiver knows of the messages that may come."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    """Dimensions, and bounds of indices, that it knows."""
    most: Mapping[str, int] = field(default_factory=dict)
    """The most that a dimension may be."""
    bytes: int = 1 << 30


def encode(message: Message, wire: Wire = "full") -> bytes:
    """The frame of a message."""
    name = type(message).__name__.encode()
    parts: list[Any] = [MAGIC, struct.pack("<B", len(name)), name]
    specs = message.specs()
    for f in fields(message):
        value = getattr(message, f.name)
        if f.name in specs:
            parts += arrays.encoded(message, f.name, wire)
        elif isinstance(value, str):
            text = value.encode()
            parts += [struct.pack("<I", len(text)), text]
        else:
            parts.append(struct.pack("<d" if _is_float(f) else "<q", value))
    return b"".join(parts)


def size(message: Message, rows: np.ndarray | None = None) -> Any:
    """The length of the frame in full, without making it; with `rows`, of each that holds so many rows instead."""
    if rows is not None:
        cut = [getattr(message, name) for name in message.by_row()]
        width = sum(a.nbytes // max(len(a), 1) for a in cut)
        return size(message) - sum(a.nbytes for a in cut) + rows * width
    total = len(MAGIC) + 1 + len(type(message).__name__)
    specs = message.specs()
    for f in fields(message):
        value = getattr(message, f.name)
        if f.name in specs:
            total += arrays.length(message, f.name)
        else:
            total += 4 + len(value.encode()) if isinstance(value, str) else 8
    return total


def decode(frame: bytes | memoryview, kinds: Iterable[type[Message]], limits: Limits, wire: Wire = "full") -> Message:
    """The message in a frame, if it is one of these kinds and keeps the limits; else `RefusedMessage`."""
    if len(frame) > limits.bytes:
        raise RefusedMessage(f"a message of {len(frame):,} bytes exceeds the limit of {limits.bytes:,}")
    reader = Reader(frame)
    if reader.take(3) != MAGIC:
        raise RefusedMessage("a message does not start as messages do")
    name = bytes(reader.take(reader.number("<B"))).decode("ascii", "replace")
    kind = next((k for k in kinds if k.__name__ == name), None)
    if kind is None:
        raise RefusedMessage(f"a message of kind '{name}' is not expected here")
    reader.where = name
    specs = kind.specs()
    dims: dict[str, int] = {}
    values: dict[str, Any] = {}
    for f in fields(kind):
        reader.where = f"{name}.{f.name}"
        if f.name in specs:
            values[f.name] = arrays.decoded(reader, specs[f.name], values, dims, limits, wire)
        elif f.type in (str, "str"):
            values[f.name] = reader.text()
        else:
            values[f.name] = reader.number("<d" if _is_float(f) else "<q")
            if not isfinite(values[f.name]):
                raise RefusedMessage(f"{reader.where} is not a finite number")
    if reader.left:
        raise RefusedMessage(f"a message of kind '{name}' has {reader.left} bytes too many")
    message = kind(**values)
    if complaint := message.complaint():
        raise RefusedMessage(f"a message of kind '{name}' is refused: {complaint}")
    return message


def _is_float(f: Any) -> bool:
    return f.type in (float, "float")
