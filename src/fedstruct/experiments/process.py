"""What a process needs to train many short runs, and what it took."""

from __future__ import annotations

import ctypes
import os
import resource
import sys


def prepare_process() -> None:
    """Make this process ready for many short runs: one thread each, and freed memory kept for the next.

    One thread, because the sums are small, and because their order then is the same everywhere. glibc hands large
    arrays back to the system as soon as they are freed, and faults them in again.
    """
    import torch

    torch.set_num_threads(1)
    if sys.platform == "linux":
        try:
            mallopt = ctypes.CDLL(None).mallopt
        except (OSError, AttributeError):
            return
        trim_threshold, mmap_threshold = -1, -3
        mallopt(trim_threshold, 1 << 30)
        mallopt(mmap_threshold, 1 << 25)


def use_cores(entries: int) -> None:
    """Let this process train on a graph with so many edge ends: all cores for a large one."""
    import torch

    from fedstruct.models.adjacency import MANY

    torch.set_num_threads(cores() if entries >= MANY else 1)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def peak_rss_mb() -> float:
    """The most memory that this process, or any that it started, has held."""
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(most / (1 << 20 if sys.platform == "darwin" else 1 << 10), 1)
