"""Messages as bytes: one form on every transport, and nothing is built from bytes that were not checked.

A frame is the kind's name, then each field in its order. Numbers are little-endian; an array is its type, its rank, its
dimensions and its entries. Decoding copies nothing: arrays are read-only views of the frame, so that a message
never takes more memory than the bytes that came.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from math import isfinite, prod
from typing import Any

import numpy as np

from fedstruct.errors import RefusedMessage
from fedstruct.federation.message import ArraySpec, Message

MAGIC = b"FS1"
CODES = {"<i4": 1, "<i8": 2, "<f4": 3, "<f8": 4}
DTYPES = {code: np.dtype(name) for name, code in CODES.items()}


@dataclass(frozen=True)
class Limits:
    """What the receiver knows of the messages that may come."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    """Dimensions, and bounds of indices, that it knows."""
    most: Mapping[str, int] = field(default_factory=dict)
    """The most that a dimension may be."""
    bytes: int = 1 << 30


def encode(message: Message) -> bytes:
    """The frame of a message."""
    name = type(message).__name__.encode()
    parts: list[Any] = [MAGIC, struct.pack("<B", len(name)), name]
    specs = message.specs()
    for f in fields(message):
        value = getattr(message, f.name)
        if f.name in specs:
            parts += _encode_array(value, specs[f.name], f"{type(message).__name__}.{f.name}")
        elif isinstance(value, str):
            text = value.encode()
            parts += [struct.pack("<I", len(text)), text]
        else:
            parts.append(struct.pack("<d" if _is_float(f) else "<q", value))
    return b"".join(parts)


def size(message: Message, rows: np.ndarray | None = None) -> Any:
    """The length of the frame, without making it; with `rows`, of each frame that holds so many rows instead."""
    if rows is not None:
        arrays = [getattr(message, name) for name in message.by_row()]
        width = sum(a.nbytes // max(len(a), 1) for a in arrays)
        return size(message) - sum(a.nbytes for a in arrays) + rows * width
    total = len(MAGIC) + 1 + len(type(message).__name__)
    specs = message.specs()
    for f in fields(message):
        value = getattr(message, f.name)
        if f.name in specs:
            total += 2 + 8 * value.ndim + value.nbytes
        else:
            total += 4 + len(value.encode()) if isinstance(value, str) else 8
    return total


def decode(frame: bytes | memoryview, kinds: Iterable[type[Message]], limits: Limits) -> Message:
    """The message in a frame, if it is one of these kinds and keeps the limits; else `RefusedMessage`."""
    if len(frame) > limits.bytes:
        raise RefusedMessage(f"a message of {len(frame):,} bytes exceeds the limit of {limits.bytes:,}")
    reader = _Reader(frame)
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
            values[f.name] = _decode_array(reader, specs[f.name], dims, limits)
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


def _encode_array(value: np.ndarray, spec: ArraySpec, where: str) -> tuple[bytes, np.ndarray]:
    dtype = value.dtype.newbyteorder("<")
    code = CODES.get(dtype.str)
    if dtype not in spec.dtypes or code is None or value.ndim != len(spec.dims):
        raise TypeError(f"{where} must be {spec.dtype} of rank {len(spec.dims)}, not {value.dtype} {value.shape}")
    raw = np.ascontiguousarray(value).astype(DTYPES[code], copy=False)
    return struct.pack(f"<BB{value.ndim}Q", code, value.ndim, *value.shape), raw


def _decode_array(reader: _Reader, spec: ArraySpec, dims: dict[str, int], limits: Limits) -> np.ndarray:
    where = reader.where
    code, rank = reader.numbers("<BB")
    dtype = DTYPES.get(code)
    if dtype is None or dtype not in spec.dtypes:
        raise RefusedMessage(f"{where} is not of type {spec.dtype}")
    if rank != len(spec.dims):
        raise RefusedMessage(f"{where} is not of rank {len(spec.dims)}")
    shape = reader.numbers(f"<{rank}Q")
    for dim, length in zip(spec.dims, shape, strict=True):
        expected = dims.setdefault(dim, limits.sizes.get(dim, length))
        if length != expected:
            raise RefusedMessage(f"{where} has {length} {dim} where {expected} are expected")
        if length > limits.most.get(dim, length):
            raise RefusedMessage(f"{where} has {length} {dim}; at most {limits.most[dim]} are allowed")
    entries = prod(shape)
    # Dimensions count even where another is 0 and the array is empty: numpy cannot hold them if they are absurd.
    if entries * dtype.itemsize > reader.left or prod(max(length, 1) for length in shape) > limits.bytes:
        raise RefusedMessage(f"{where} says it has {entries} entries, but the message ends before")
    values = np.frombuffer(reader.take(entries * dtype.itemsize), dtype).reshape(shape)
    # Least and greatest find NaN and infinity without a temporary array; read without sign, so does the greatest
    # find indices out of range.
    if entries and dtype.kind == "f" and not (isfinite(values.min()) and isfinite(values.max())):
        raise RefusedMessage(f"{where} holds NaN or infinity")
    if entries and spec.below is not None:
        if spec.below not in limits.sizes:
            raise RefusedMessage(f"{where} came before the number of {spec.below} was known")
        if values.view(dtype.str.replace("i", "u")).max() >= limits.sizes[spec.below]:
            raise RefusedMessage(f"{where} names {spec.below} outside 0 to {limits.sizes[spec.below] - 1}")
    return values


class _Reader:
    def __init__(self, frame: bytes | memoryview) -> None:
        self.frame = memoryview(frame)
        self.at = 0
        self.where = "a message"

    @property
    def left(self) -> int:
        return len(self.frame) - self.at

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
