"""What a run tells whoever watches it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext


class Watch:
    """Sees a run pass by; this one looks away. Subclasses measure time, draw progress, write histories."""

    def phase(self, name: str) -> AbstractContextManager[None]:
        """The block is one phase: `structure`, `training` or `evaluation`."""
        return nullcontext()

    def advance(self, done: int, of: int, **figures: float) -> None:
        """One more hop or round is done; `figures` is what is known of it, such as the loss."""


class Watches(Watch):
    """Several who watch the same run."""

    def __init__(self, *watches: Watch) -> None:
        self._watches = watches

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        with ExitStack() as stack:
            for watch in self._watches:
                stack.enter_context(watch.phase(name))
            yield

    def advance(self, done: int, of: int, **figures: float) -> None:
        for watch in self._watches:
            watch.advance(done, of, **figures)
