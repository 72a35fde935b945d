"""Loops compiled by numba, when they are first called."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from threading import Lock
from typing import Any

from numba import njit

Loop = Callable[..., Any]

ALONE = Lock()
"""Held by who runs a parallel loop: two at once abort the process where numba has no threads but its own."""


def part(function: Loop, parallel: bool = False) -> Loop:
    """Compile a loop that others call, at its first call; its machine code is kept where there is a folder for it."""
    try:
        return njit(function, cache=True, parallel=parallel)
    except RuntimeError:
        return njit(function, parallel=parallel)


def compiled(function: Loop, parallel: bool = False) -> Loop:
    """Compile a loop that Python calls; Ctrl-C ends it as it ends anything else."""
    loop = part(function, parallel)
    turn = ALONE if parallel else nullcontext()

    @wraps(function)
    def called(*arguments: Any) -> Any:
        try:
            with turn:
                return loop(*arguments)
        except SystemError as error:
            # What a signal raised in the meantime: numba gives a result all the same, which Python takes for a bug.
            cause: BaseException | None = error
            while isinstance(cause, SystemError):
                cause = cause.__cause__
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise

    return called
