"""The methods, one file each."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from fedstruct.errors import FedstructError, unknown
from fedstruct.methods.central import Central
from fedstruct.methods.feature_model import MODELS
from fedstruct.methods.fedavg import FedAvg
from fedstruct.methods.fedsgd import FedSGD
from fedstruct.methods.fedstruct import FedStruct
from fedstruct.methods.fedstruct_options import FEDSGD_ONLY
from fedstruct.methods.local import Local
from fedstruct.methods.method import Method
from fedstruct.methods.propagated import PropagatedFedStruct

METHODS: dict[str, Callable[..., Method]] = {
    "fedstruct": FedStruct,
    **{
        f"fedstruct-{features}": partial(FedStruct, features=features)
        for features in ("hop2vec-mlp", "degree", "fedstar")
    },
    "fedstruct-propagated": PropagatedFedStruct,
    "fedstruct-propagated-features": partial(PropagatedFedStruct, carry="features"),
    **{
        f"{method.family}-{model}": partial(method, model)
        for method in (Central, Local, FedSGD, FedAvg)
        for model in MODELS
    },
}
"""What makes each method that comes with the library, by the name that the command line takes."""


def made(name: str, **options: Any) -> Method:
    """The method of this name.

    >>> made("fedavg-mlp", rounds=5).options.rounds
    5
    """
    if name not in METHODS:
        raise unknown_method(name)
    return METHODS[name](**options)


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
    "Central",
    "FedAvg",
    "FedSGD",
    "FedStruct",
    "Local",
    "Method",
    "PropagatedFedStruct",
    "made",
    "option_names",
    "resolved",
    "unknown_method",
]
