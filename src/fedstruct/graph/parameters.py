"""Parameters that a function's signature checks: type and range, in one sentence where one is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from fedstruct.errors import explained

P = ParamSpec("P")
R = TypeVar("R")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with its arguments made into the types that it declares, or refused.

    >>> @checked
    ... def ring(nodes: int = 5):
    ...     return list(range(nodes))
    >>> ring("4")
    [0, 1, 2, 3]
    >>> ring(node=2)
    Traceback (most recent call last):
    fedstruct.errors.FedstructError: unknown parameter of ring 'node': did you mean 'nodes'?
    """
    signature = inspect.signature(function)

    @wraps(function)
    def call(*values: P.args, **named: P.kwargs) -> R:
        # pydantic takes long to import; who makes no graph does not wait for it.
        from pydantic import ConfigDict, ValidationError, validate_call

        given: dict[str, Any] = {**signature.bind_partial(*values).arguments, **named}
        takes: Callable[..., R] = validate_call(config=ConfigDict(allow_inf_nan=False))(function)
        try:
            return takes(**given)
        except ValidationError as error:
            raise explained(error, signature.parameters, f"parameter of {function.__name__}") from None

    return call
