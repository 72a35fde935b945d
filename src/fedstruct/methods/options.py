"""Options of methods: checked once, in one sentence when they are wrong."""

from __future__ import annotations

import re
from reprlib import repr as shortened
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from fedstruct.errors import FedstructError, unknown

MOST = 2**31 - 1
"""The largest whole number that an option may be: as large as the numbers of nodes."""

HiddenUnits = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)]
"""Hidden units, layer by layer."""


class Options(BaseModel):
    """Options are frozen, and there are no others than those that are declared."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _not_absurd(cls, value: Any) -> Any:
        numbers = value if isinstance(value, tuple) else (value,)
        if any(isinstance(number, int) and number > MOST for number in numbers):
            raise ValueError(f"should be at most {MOST}")
        return value

    @classmethod
    def of(cls, **given: Any) -> Self:
        """The options, or the error that says which of them is wrong and what it may be."""
        try:
            return cls(**given)
        except ValidationError as error:
            raise explained(error, cls, "option") from None


def explained(error: ValidationError, model: type[BaseModel], what: str) -> FedstructError:
    """The first of pydantic's complaints as one sentence."""
    first = error.errors()[0]
    path = [str(part) for part in first["loc"] if not str(part).startswith("function-")]
    if first["type"] == "extra_forbidden":
        return unknown(what, path[-1], model.model_fields)
    message = first["msg"].removeprefix("Value error, ")
    if not path:  # a complaint of the options together; it names them itself
        return FedstructError(message)
    message = re.sub(r"^(Input|Tuple) | after validation, not \d+$", "", message)
    return FedstructError(f"{what} '{path[0]}' is {shortened(first['input'])}, but it {_lower(message)}")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
