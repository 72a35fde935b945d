"""Files that are the old one or the new one, never a half."""

from __future__ import annotations

import os
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
