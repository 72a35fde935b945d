"""Presets: the options that the paper prints, those that made its tables, and ours; a TOML file each.

A file has a table for each dataset, and one for each generator, whatever its parameters. Its keys are options, for
every method that has them; tables in it are for the methods whose names they match (`"*-mlp"`), the later ones over
the earlier.
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any

from fedstruct.errors import FedstructError, unknown
from fedstruct.graph.generators import family
from fedstruct.methods import option_names

Recipe = dict[str, Any]

PRESETS = ("ours", "paper", "code")


def recipe(preset: str, dataset: str, method: str = "fedstruct") -> Recipe:
    """The options of a preset for a dataset, as far as the method has them.

    >>> recipe("paper", "cora")["layers_structure"], recipe("paper", "cora", "central-mlp")["rounds"]
    (10, 40)
    """
    known, dataset = tables(preset), family(dataset)
    if preset != "ours" and dataset not in known:
        raise FedstructError(
            f"preset '{preset}' has no settings for '{dataset}', only for {', '.join(known)}; use --preset ours"
        )
    table = known.get(dataset, {})
    options = {name: value for name, value in table.items() if not isinstance(value, dict)}
    for pattern, more in table.items():
        if isinstance(more, dict) and fnmatchcase(method, pattern):
            options |= more
    names = option_names(method)
    return {name: value for name, value in options.items() if name in names}


@cache
def tables(preset: str) -> dict[str, Recipe]:
    """A preset's file: a table for each dataset."""
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    return tomllib.loads(files(__name__).joinpath(f"{preset}.toml").read_text(encoding="utf-8"))
