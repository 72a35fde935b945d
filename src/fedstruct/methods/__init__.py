"""The methods, one file each."""

from collections.abc import Callable
from functools import partial

from fedstruct.methods.central import Central
from fedstruct.methods.feature_model import MODELS
from fedstruct.methods.fedavg import FedAvg
from fedstruct.methods.fedsgd import FedSGD
from fedstruct.methods.fedstruct import FedStruct
from fedstruct.methods.local import Local
from fedstruct.methods.method import Method

METHODS: dict[str, Callable[..., Method]] = {
    "fedstruct": FedStruct,
    **{
        f"fedstruct-{features}": partial(FedStruct, features=features)
        for features in ("hop2vec-mlp", "degree", "fedstar")
    },
    **{
        f"{method.family}-{model}": partial(method, model)
        for method in (Central, Local, FedSGD, FedAvg)
        for model in MODELS
    },
}
"""What makes each method that comes with the library, by the name that the command line takes."""

__all__ = ["METHODS", "Central", "FedAvg", "FedSGD", "FedStruct", "Local", "Method"]
