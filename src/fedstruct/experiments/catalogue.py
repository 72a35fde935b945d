"""The methods and their options, told from what declares them."""

from __future__ import annotations

from functools import partial
from inspect import getdoc
from typing import Any

from fedstruct.experiments.presets import recipe
from fedstruct.methods import METHODS, made

BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
"""How a schema calls a bound, and how people write it."""


def methods() -> list[dict[str, Any]]:
    """Each method in a line."""
    return [{"name": name, "about": _about(name)} for name in METHODS]


def options(method: str, dataset: str | None = None) -> list[dict[str, Any]]:
    """A method's options: by default, what they take and mean; for a dataset, what the preset `ours` sets.

    >>> prune = next(o for o in options("fedstruct", "cora") if o["name"] == "prune")
    >>> prune["default"], prune["minimum"], prune["ours"]
    (30, 1, 30)
    """
    own = made(method).options
    schema = own.model_json_schema()["properties"]
    preset = {} if dataset is None else recipe("ours", dataset, method)
    found = []
    for name, default in own.model_dump(mode="json").items():
        told = {k: v for k, v in schema[name].items() if k != "title"}
        row = {"name": name, **told, "default": default, "takes": takes(told)}
        found.append(row if dataset is None else row | {"ours": preset.get(name, default)})
    return found


def takes(schema: dict[str, Any]) -> str:
    """The values that fit, in short.

    >>> takes({"type": "integer", "minimum": 1}), takes({"enum": ["adam", "sgd"]})
    ('whole number ≥ 1', 'adam, sgd')
    """
    if "anyOf" in schema:
        return " or ".join(takes(each) for each in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return ", ".join(schema.get("enum", [schema.get("const")]))
    if schema["type"] == "array":
        return f"list of: {takes(schema['items'])}"
    kind = {"integer": "whole number", "number": "number", "boolean": "true, false", "null": "none"}[schema["type"]]
    return " ".join([kind, *(f"{sign} {schema[bound]:g}" for bound, sign in BOUNDS.items() if bound in schema)])


def _about(name: str) -> str:
    make = METHODS[name]
    if isinstance(make, partial):
        return f"{_line(make.func)} With model {make.args[0]}."
    kind: Any = type(make())
    plain = kind().options.model_dump()
    differs = [f"{key}={value}" for key, value in make().options.model_dump().items() if plain[key] != value]
    return _line(kind) + (f" With {', '.join(differs)}." if differs else "")


def _line(kind: Any) -> str:
    return (getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")
