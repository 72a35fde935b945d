"""Options of methods: checked once, in one sentence when they are wrong."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from fedstruct.errors import explained
from fedstruct.federation.message import Wire

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
            raise explained(error, cls.model_fields, "option") from None


class WireOptions(Options):
    """How floating values travel, for methods that send any."""

    wire: Wire = Field("full", description="floating arrays travel as they are, or in 16 bits a value (half)")
