"""A worker process of the batch engine. It leaves Ctrl-C to the process that started it, from its first line on."""

from __future__ import annotations

import signal
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection


def serve(pipe: Connection) -> None:
    """Do the groups of runs that come through the pipe; each run goes back at once, and None after each group.

    A closed pipe is the end: there is no more to do, or nobody to do it for.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, ConnectionError):
        _serve(pipe)


def _serve(pipe: Connection) -> None:
    from fedstruct.experiments.batch import Batch
    from fedstruct.experiments.process import prepare_process

    prepare_process()
    try:
        batch = Batch(*pipe.recv())
        while True:
            for outcome in batch.together(pipe.recv()):
                pipe.send(outcome)
            pipe.send(None)
    except (EOFError, ConnectionError):
        raise
    except Exception as error:
        error.add_note(f"In a worker process:\n{traceback.format_exc()}")
        pipe.send(error)
