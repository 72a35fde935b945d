"""Methods that train one of several feature models."""

from __future__ import annotations

from typing import Any, ClassVar

from fedstruct.errors import unknown
from fedstruct.federation.message import Message
from fedstruct.methods.feature_model import OPTIONS
from fedstruct.methods.method import Method
from fedstruct.methods.opening import BALANCING
from fedstruct.methods.options import Options


class ModelMethod(Method):
    """A method for any feature model: `gnn`, `dgcn` or `mlp`."""

    family: ClassVar[str]
    more_options: ClassVar[type[Options] | None] = None
    """Options of the method itself, beside those of the model."""
    kinds: ClassVar[frozenset[type[Message]]]
    """The messages of the method, but for those that balance classes."""
    options: Any

    def __init__(self, model: str = "gnn", **options: Any) -> None:
        if model not in OPTIONS:
            raise unknown("feature model", model, OPTIONS)
        self.name = f"{self.family}-{model}"
        own = OPTIONS[model]
        self.options_type = own if self.more_options is None else type(own.__name__, (self.more_options, own), {})
        super().__init__(**options)

    @property
    def sends(self) -> frozenset[type[Message]]:
        return self.kinds | (BALANCING if self.options.class_weight == "balanced" else frozenset())
