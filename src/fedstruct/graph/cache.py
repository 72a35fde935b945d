"""The folder of graphs that were downloaded, or made and too large to be made again."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fedstruct"
