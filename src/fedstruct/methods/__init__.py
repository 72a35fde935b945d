"""The methods, one file each, and what the author of another one builds on.

>>> FedStruct(rounds=20, prune=50).options.layers_structure
5
"""

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from reprlib import repr as shortened
from typing import Any

from fedstruct.errors import FedstructError, unknown
from fedstruct.methods.central import Central
from fedstruct.methods.evaluation import Counts, counted
from fedstruct.methods.feature_model import MODELS
from fedstruct.methods.fedavg import FedAvg
from fedstruct.methods.fedsgd import FedSGD
from fedstruct.methods.fedstruct import FedStruct
from fedstruct.methods.fedstruct_options import FEDSGD_ONLY
from fedstruct.methods.local import Local
from fedstruct.methods.method import Method, Trained
from fedstruct.methods.opening import OPENING, OpeningParty, announced
from fedstruct.methods.options import Options, WireOptions
from fedstruct.methods.propagated import PropagatedFedStruct


def _known_as(name: str, kind: type[Method], **fixed: str) -> dict[str, Callable[..., Method]]:
    """A method with options that belong to its name: with other values it would be another method."""

    def make(**options: Any) -> Method:
        for option in fixed.keys() & options.keys():
            if options[option] != fixed[option]:
                raise FedstructError(
                    f"'{name}' has {option} = {fixed[option]}, and not {shortened(options[option])}; "
                    f"leave out '{option}', or take the method 'fedstruct'"
                )
        return kind(**{**options, **fixed})

    return {name: make}


METHODS: dict[str, Callable[..., Method]] = {
    "fedstruct": FedStruct,
    **_known_as("fedstruct-hop2vec-mlp", FedStruct, structure="exchanged", features="hop2vec-mlp"),
    **_known_as("fedstruct-degree", FedStruct, structure="exchanged", features="degree"),
    **_known_as("fedstruct-fedstar", FedStruct, structure="exchanged", features="fedstar"),
    **_known_as("fedstruct-propagated", PropagatedFedStruct, structure="propagated"),
    **_known_as("fedstruct-propagated-features", PropagatedFedStruct, structure="propagated", carry="features"),
    **{
        f"{method.family}-{model}": partial(method, model)
        for method in (Central, Local, FedSGD, FedAvg)
        for model in MODELS
    },
}
"""What makes each method that comes with the library, by the name that the command line takes."""


def made(name: str, **options: Any) -> Method:
    """The method of this name, or the one at this dotted path: `my_module.MyMethod`.

    >>> made("fedavg-mlp", rounds=5).options.rounds
    5
    """
    return maker(name)(**options)


def maker(name: str) -> Callable[..., Method]:
    """What makes the method of this name; a dotted path is imported, from the working directory too."""
    if name in METHODS:
        return METHODS[name]
    module, dot, attribute = name.rpartition(".")
    if not all(part.isidentifier() for part in name.split(".")) or not dot:
        raise unknown_method(name)
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found = getattr(import_module(module), attribute)
    except AttributeError:
        raise FedstructError(f"there is no '{attribute}' in {module}; check the name of the method's class") from None
    except Exception as error:  # whatever somebody's module may raise
        raise FedstructError(f"the module {module} of '{name}' cannot be imported: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise FedstructError(f"'{name}' is not a method: it must be a class derived from fedstruct.methods.Method")
    return found


def resolved(name: str, options: Mapping[str, Any]) -> str:
    """The name under which a method with these options has its presets: propagated structure is a method of its own.

    >>> resolved("fedstruct", {"structure": "propagated"}), resolved("fedstruct", {"rounds": 5})
    ('fedstruct-propagated', 'fedstruct')
    """
    if name in ("fedstruct", "fedstruct-propagated"):
        if options.get("structure") == "propagated":
            name = "fedstruct-propagated"
        if name == "fedstruct-propagated" and options.get("carry") == "features":
            name = "fedstruct-propagated-features"
    return name


def unknown_method(name: str, *others: str) -> FedstructError:
    """The error for a method that does not exist; `others` may stand where its name does."""
    if {"fedstruct", "fedavg"} <= set(name.split("-")):
        return FedstructError(f"there is no method '{name}': {FEDSGD_ONLY}; take fedstruct or fedavg-dgcn")
    return unknown("method", name, [*METHODS, *others])


def option_names(name: str) -> frozenset[str]:
    """The options that a method has."""
    return frozenset(made(name).options_type.model_fields)


__all__ = [
    "METHODS",
    "OPENING",
    "Central",
    "Counts",
    "FedAvg",
    "FedSGD",
    "FedStruct",
    "Local",
    "Method",
    "OpeningParty",
    "Options",
    "PropagatedFedStruct",
    "Trained",
    "WireOptions",
    "announced",
    "counted",
    "made",
    "maker",
    "option_names",
    "resolved",
    "unknown_method",
]
