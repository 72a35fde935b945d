"""What a run tells whoever watches it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext


class Watch:
    """Sees a run pass by; this one looks away. Subclasses measure time, draw progress, write histories."""

    def phase(self, name: str) -> AbstractContextManager[None]:
        """The block is one phase: `structure`, `training` or `evaluation`."""
        return nullcontext()

    def advance(self, done: int, of: int, **figures: float) -> None:
        """One more hop or round is done; `figures` is what is known of it, such as the loss."""
