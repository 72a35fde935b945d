"""A worker process of the batch engine. It leaves Ctrl-C to the process that started it, from its first line on."""

from __future__ import annotations

import os
import signal
import traceback
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

from fedstruct.federation.watch import Watch


@dataclass(frozen=True)
class Begin:
    """A run begins in a worker."""

    unit: tuple[int, int]


@dataclass(frozen=True)
class Advance:
    """A round of a run is done in a worker."""

    unit: tuple[int, int]
    done: int
    of: int
    figures: dict[str, float]


class Reporting(Watch):
    """Says through the pipe that a run begins, and each of its rounds that has figures."""

    def __init__(self, pipe: Connection, unit: tuple[int, int]) -> None:
        self._pipe, self._unit = pipe, unit
        pipe.send(Begin(unit))

    def advance(self, done: int, of: int, **figures: float) -> None:
        if figures:
            self._pipe.send(Advance(self._unit, done, of, figures))


def serve(pipe: Connection) -> None:
    """Do the groups of runs that come through the pipe; rounds and runs go back at once, None after each group.

    A closed pipe is the end: there is no more to do, or nobody to do it for.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, ConnectionError):
        _serve(pipe)


def _serve(pipe: Connection) -> None:
    # One thread each, for the compiled loops too: numba reads this when it is first needed.
    os.environ["NUMBA_NUM_THREADS"] = "1"
    from fedstruct.experiments.batch import Batch
    from fedstruct.experiments.process import prepare_process

    prepare_process()
    try:
        batch = Batch(*pipe.recv())
        while True:
            for outcome in batch.together(pipe.recv(), lambda unit: Reporting(pipe, unit)):
                pipe.send(outcome)
            pipe.send(None)
    except (EOFError, ConnectionError):
        raise
    except Exception as error:
        error.add_note(f"In a worker process:\n{traceback.format_exc()}")
        pipe.send(error)
