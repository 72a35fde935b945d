"""The versions of what a run stands on."""

from __future__ import annotations

import platform
from importlib.metadata import version

PACKAGES = ("fedstruct", "torch", "torch-geometric", "numpy", "scipy", "numba", "polars")


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
