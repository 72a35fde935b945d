"""Files and folders that are the old ones or the new ones, never a half."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def replaced(path: Path, write: Callable[[Path], Any]) -> None:
    """Write beside, then rename."""
    part = path.with_name(path.name + ".part")
    try:
        write(part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def made_once(folder: Path, make: Callable[[Path], Any]) -> None:
    """Make a folder beside, then rename, unless it is there; who comes meanwhile waits for it."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = folder.with_name(folder.name + ".part")
    parent = os.open(folder.parent, os.O_RDONLY)
    try:
        fcntl.flock(parent, fcntl.LOCK_EX)
        if folder.exists():
            return
        try:
            # Nobody else has the lock, so what stands here was left by a process that was killed.
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            make(part)
            os.replace(part, folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    finally:
        os.close(parent)
