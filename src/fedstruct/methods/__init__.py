"""The methods, one file each."""

from fedstruct.methods.fedstruct import FedStruct
from fedstruct.methods.method import Method

METHODS: dict[str, type[Method]] = {method.name: method for method in (FedStruct,)}
"""The methods that come with the library, by the name that the command line takes."""

__all__ = ["METHODS", "FedStruct", "Method"]
