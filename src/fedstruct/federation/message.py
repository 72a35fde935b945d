"""Messages: all that ever passes between a party and anybody else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Flag, auto
from functools import cache, cached_property
from typing import Any, ClassVar, Literal

import numpy as np


class Source(Flag):
    """What a message is derived from: a claim, which the non-interference tests prove."""

    NOTHING = 0
    COUNTS = auto()
    STRUCTURE = auto()
    FEATURES = auto()
    LABELS = auto()

    @property
    def words(self) -> str:
        """
        >>> (Source.COUNTS | Source.LABELS).words, Source.NOTHING.words
        ('counts, labels', 'nothing')
        """
        return ", ".join(s.name.lower() for s in Source if s in self and s.name) or "nothing"


EVERYTHING = Source.COUNTS | Source.STRUCTURE | Source.FEATURES | Source.LABELS


Wire = Literal["full", "half"]
"""How floating arrays travel, agreed at every site of a run: as they are, or in 16 bits a value."""

Form = Literal["plain", "short", "half"]
"""How an array is written: as it is; as whole numbers in few bytes; as values in 16 bits."""


@dataclass(frozen=True)
class ArraySpec:
    """What a message's array must look like, checked before anything is made of it."""

    dtype: str
    """`i4`, `i8`, `f8`; or `f`, either of the two floating-point precisions that models train in."""
    dims: tuple[str, ...]
    """A name per dimension: dimensions of one name agree within a message, and with what the receiver knows."""
    below: str | None = None
    """Whole numbers: at least 0 and below the size of this name."""
    coded: Literal["numbers", "gaps"] | None = None
    """`i4`, written in few bytes: numbers that are small, or the gaps between numbers that increase."""
    within: str | None = None
    """Gaps: numbers increase in each of the rows whose lengths are in this field, which comes before."""

    def form(self, wire: Wire) -> Form:
        """How the array travels."""
        if self.coded:
            return "short"
        return "half" if wire == "half" and self.dtype in ("f", "f4", "f8") else "plain"

    def rows(self, entries: int, fields: Mapping[str, Any]) -> np.ndarray:
        """The lengths of the rows that so many coded numbers are in; `fields` are those of the message."""
        return np.array([entries], np.int32) if self.within is None else np.asarray(fields[self.within])

    @cached_property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        names = ("f4", "f8") if self.dtype == "f" else (self.dtype,)
        return tuple(np.dtype(f"<{name}") for name in names)


def array(
    dtype: str,
    *dims: str,
    below: str | None = None,
    by_row: bool = False,
    coded: Literal["numbers", "gaps"] | None = None,
    within: str | None = None,
) -> Any:
    """Declare a field that holds an array.

    With `by_row`, each party sees only those rows of the array that it has to do with (`Federation.sum`). With `coded`,
    whole numbers of rank 1 are written in as few bytes as they need.
    """
    return field(metadata={"array": ArraySpec(dtype, dims, below, coded, within), "by_row": by_row})


@dataclass(frozen=True, eq=False)
class Message:
    """One kind of message: a closed set of fields, each int, float, str or an array."""

    sources: ClassVar[Source]
    """What it is derived from."""
    tells: ClassVar[str]
    """What its receiver learns, in words."""
    peer: ClassVar[bool] = False
    """From party to party: sealed."""
    reply: ClassVar[type[Message] | None] = None
    """The kind of message that answers it."""
    unit: ClassVar[str | None] = None
    """The array whose length the ledger counts as rows."""

    @classmethod
    @cache
    def specs(cls) -> Mapping[str, ArraySpec]:
        """The arrays of this kind of message."""
        return {f.name: f.metadata["array"] for f in fields(cls) if "array" in f.metadata}

    @classmethod
    def by_row(cls) -> tuple[str, ...]:
        """The arrays of which each party sees its own rows only."""
        return tuple(f.name for f in fields(cls) if f.metadata.get("by_row"))

    @property
    def rows(self) -> int:
        return len(getattr(self, self.unit)) if self.unit else 0

    def complaint(self) -> str | None:
        """What is wrong with the fields taken together, if anything; asked once a message is decoded."""
        return None


@dataclass(frozen=True, eq=False)
class Done(Message):
    """A party has finished a step that has nothing to tell the coordinator."""

    sources = Source.NOTHING
    tells = "that a step is finished"
