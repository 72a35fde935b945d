"""Parties that step as one, in a simulation: what they answer in sum, and what they would have posted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedstruct.federation.message import Message


@dataclass(frozen=True, eq=False)
class Posts:
    """Posts of one kind that parties would have sent each other in a step, had they taken it one by one.

    Only their sizes are here: nothing has to travel between parties that step as one.
    """

    like: Message
    """A message of this kind whose `by_row` arrays have any number of rows but zero."""
    senders: Sequence[str]
    receivers: Sequence[str]
    rows: np.ndarray
    """How many rows each of them would hold."""


class Stack(ABC):
    """Parties side by side. A class of parties that offers `stack(parties)` is stepped so by the local federation.

    It may hold what the parties would hold from step to step.
    """

    steps: ClassVar[Collection[type[Message]]]
    """The questions that they answer as one; the others, each party answers for itself."""

    @abstractmethod
    def total(self, question: Message) -> Message:
        """The sum of what the parties would answer."""

    def posts(self, question: Message) -> Sequence[Posts]:
        """What they would post to each other in answering it."""
        return ()
