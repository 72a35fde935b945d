"""Arrays as bytes, in one of three forms; each is a code for type and form, the rank, the dimensions, and the entries.

`plain` is as in memory, and is read as a view. `short` is whole numbers in few bytes, `half` floating values in 16
bits; these are read into new arrays, of at most four bytes for each that came.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from math import isfinite, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from fedstruct.errors import RefusedMessage
from fedstruct.federation import halves, varints
from fedstruct.federation.message import ArraySpec, Form, Message, Wire
from fedstruct.federation.reader import Reader

if TYPE_CHECKING:
    from fedstruct.federation.codec import Limits

CODES: dict[tuple[Form, str], int] = {
    ("plain", "<i4"): 1,
    ("plain", "<i8"): 2,
    ("plain", "<f4"): 3,
    ("plain", "<f8"): 4,
    ("short", "<i4"): 5,
    ("half", "<f4"): 6,
    ("half", "<f8"): 7,
}
FORMS = {code: (form, np.dtype(name)) for (form, name), code in CODES.items()}


def encoded(message: Message, name: str, wire: Wire) -> list[Any]:
    """The bytes of a message's array, in parts."""
    value, spec, where = getattr(message, name), message.specs()[name], f"{type(message).__name__}.{name}"
    dtype, form = value.dtype.newbyteorder("<"), spec.form(wire)
    code = CODES.get((form, dtype.str))
    if dtype not in spec.dtypes or code is None or value.ndim != len(spec.dims):
        raise TypeError(f"{where} must be {spec.dtype} of rank {len(spec.dims)}, not {value.dtype} {value.shape}")
    raw = np.ascontiguousarray(value).astype(dtype, copy=False)
    header = struct.pack(f"<BB{value.ndim}Q", code, value.ndim, *value.shape)
    if form == "short":
        return [header, varints.packed(raw, spec.rows(len(raw), vars(message)), spec.coded == "numbers", where)]
    if form == "half":
        power, rounded = halves.halved(raw, where)
        return [header, struct.pack("<h", power), rounded]
    return [header, raw]


def length(message: Message, name: str) -> int:
    """How many bytes a message's array takes in full."""
    if message.specs()[name].coded:
        return sum(len(part) for part in encoded(message, name, "full"))
    value: np.ndarray = getattr(message, name)
    return 2 + 8 * value.ndim + value.nbytes


def decoded(
    reader: Reader, spec: ArraySpec, before: Mapping[str, Any], dims: dict[str, int], limits: Limits, wire: Wire
) -> np.ndarray:
    """The array that comes next, once it is checked; `before` holds the fields before it, `dims` their dimensions."""
    where = reader.where
    code, rank = reader.numbers("<BB")
    form, dtype = FORMS.get(code, (None, None))
    if dtype is None or dtype not in spec.dtypes:
        raise RefusedMessage(f"{where} is not of type {spec.dtype}")
    if form != spec.form(wire):
        raise RefusedMessage(
            f"{where} came in {form} form, and not in {spec.form(wire)} form; "
            "all sites of a run must have the same option wire"
        )
    if rank != len(spec.dims):
        raise RefusedMessage(f"{where} is not of rank {len(spec.dims)}")
    shape = reader.numbers(f"<{rank}Q")
    for dim, size in zip(spec.dims, shape, strict=True):
        expected = dims.setdefault(dim, limits.sizes.get(dim, size))
        if size != expected:
            raise RefusedMessage(f"{where} has {size} {dim} where {expected} are expected")
        if size > limits.most.get(dim, size):
            raise RefusedMessage(f"{where} has {size} {dim}; at most {limits.most[dim]} are allowed")
    entries, least = prod(shape), {"short": 1, "half": 2}.get(form, dtype.itemsize)
    # Dimensions count even where another is 0 and the array is empty: numpy cannot hold them if they are absurd.
    if entries * least > reader.left or prod(max(size, 1) for size in shape) > limits.bytes:
        raise RefusedMessage(f"{where} says it has {entries} entries, but the message ends before")
    if entries * dtype.itemsize > limits.bytes:
        raise RefusedMessage(f"{where} has {entries} entries, which exceed the limit of {limits.bytes:,} bytes")
    if entries and spec.below is not None and spec.below not in limits.sizes:
        raise RefusedMessage(f"{where} came before the number of {spec.below} was known")
    if form == "short":
        below = 1 << 31 if spec.below is None else limits.sizes.get(spec.below, 0)
        rows, apart = spec.rows(entries, before), spec.coded == "numbers"
        values, took = varints.unpacked(reader.rest(), rows, apart, entries, below, where)
        reader.take(took)
    elif form == "half":
        power = reader.number("<h")
        values = halves.restored(power, np.frombuffer(reader.take(2 * entries), np.uint16), dtype, where)
    else:
        values = np.frombuffer(reader.take(entries * dtype.itemsize), dtype)
        _check(values, spec, limits, where)
    values.flags.writeable = False
    return values.reshape(shape)


def _check(values: np.ndarray, spec: ArraySpec, limits: Limits, where: str) -> None:
    """Refuse a plain array that holds what it may not."""
    # Least and greatest find NaN and infinity without a temporary array; read without sign, so does the greatest
    # find indices out of range.
    if values.size and values.dtype.kind == "f" and not (isfinite(values.min()) and isfinite(values.max())):
        raise RefusedMessage(f"{where} holds NaN or infinity")
    if values.size and spec.below is not None:
        most = limits.sizes[spec.below]
        if values.view(values.dtype.str.replace("i", "u")).max() >= most:
            raise RefusedMessage(f"{where} names {spec.below} outside 0 to {most - 1}")
