"""Graphs that are made from a seed, by names with parameters: `consortium:banks=5,cross=0.3`.

A generator is a `checked` function: its signature says which parameters there are, of which type and in which range.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fedstruct.errors import FedstructError, unknown
from fedstruct.graph.generate import consortium, planted, synthetic
from fedstruct.graph.graph import Graph
from fedstruct.graph.synthetic import Blocks
from fedstruct.graph.tables import Tables

GENERATORS: dict[str, Callable[..., Graph | Tables | Blocks]] = {
    "consortium": consortium,
    "planted": planted,
    "synthetic": synthetic,
}


def is_generated(name: str) -> bool:
    """The name is that of a generator, with parameters or without."""
    return family(name) in GENERATORS


def family(name: str) -> str:
    """What a name is without its parameters.

    >>> family("consortium:banks=5,cross=0.3"), family("cora")
    ('consortium', 'cora')
    """
    return name.partition(":")[0]


def parsed(name: str) -> tuple[str, dict[str, Any]]:
    """A name, and its parameters as numbers or text.

    >>> parsed("consortium:banks=5,cross=0.3"), parsed("consortium")
    (('consortium', {'banks': 5, 'cross': 0.3}), ('consortium', {}))
    """
    generator, colon, typed = name.partition(":")
    given: dict[str, Any] = {}
    for part in typed.split(",") if colon else []:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise FedstructError(
                f"'{name}' is not understood at '{part}': parameters are KEY=VALUE, with commas between"
            )
        if ";" in value:
            raise FedstructError(f"'{name}' has a ';' at '{part}': parameters have commas between them")
        if key in given:
            raise FedstructError(f"'{name}' gives '{key}' twice; leave out one of them")
        given[key] = _value(value)
    return generator, given


def written(generator: str, **given: Any) -> str:
    """The name of a graph with these parameters; `parsed` takes it apart again.

    >>> written("consortium", banks=5, cross=0.3)
    'consortium:banks=5,cross=0.3'
    """
    return ":".join([generator, *([",".join(f"{key}={value}" for key, value in given.items())] if given else [])])


def parameters(generator: str) -> dict[str, Any]:
    """A generator's parameters and their defaults."""
    return {name: p.default for name, p in inspect.signature(GENERATORS[generator]).parameters.items()}


def made(name: str) -> Graph | Tables | Blocks:
    """What the generator of this name makes, or the error that says which parameter is wrong.

    >>> made("planted:nodes=50,seed=3").nodes
    50
    """
    generator, given = parsed(name)
    if generator not in GENERATORS:
        raise unknown("generator", generator, GENERATORS)
    return GENERATORS[generator](**given)


def graph(name: str) -> Graph:
    """The graph of this name."""
    found = made(name)
    return replace(found, name=name) if isinstance(found, Graph) else found.graph(name)


def _value(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    # A truth value would count as 0 or 1.
    return value if isinstance(value, int | float) and not isinstance(value, bool) else text
