"""The options of FedStruct with an exchanged Ā."""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from fedstruct.methods.exchange import StructureOptions
from fedstruct.methods.feature_model import DGCNOptions, start_of
from fedstruct.methods.hops import MOST_HOPS
from fedstruct.methods.options import HiddenUnits
from fedstruct.models.mlp import MLP

FEDSGD_ONLY = "FedStruct is trained by FedSGD and by nothing else: its parties' gradients are summed in every round"


def no_fedavg(given: dict[str, Any]) -> None:
    """Refuse what would have parties train on their own."""
    for name in {"aggregation", "local_epochs"} & given.keys():
        raise ValueError(f"{FEDSGD_ONLY}; leave out '{name}'")


class FedStructOptions(StructureOptions, DGCNOptions):
    """The options of FedStruct; those of the structure exchange and of the feature model are among them."""

    structure: Literal["exchanged", "propagated"] = Field(
        "exchanged", description="Ā is exchanged (Algorithm 3), or multiplied with over the border and never shared"
    )
    features: Literal["hop2vec", "hop2vec-mlp", "degree", "fedstar"] = Field(
        "hop2vec", description="node structure features: learned (hop2vec, hop2vec-mlp), or counted (degree, fedstar)"
    )
    lr_structure: float = Field(0.1, gt=0, le=1000, description="λ_s, the rate of the structure embedding S")
    structure_dim: int = Field(
        256, ge=1, description="numbers per node in S, but for hop2vec, which takes one per class"
    )
    structure_hidden: HiddenUnits = Field((256,), description="hidden units of the model over S")
    return_steps: int = Field(50, ge=1, le=MOST_HOPS, description="return probabilities of fedstar")
    inference: Literal["both", "structure", "features"] = Field("both", description="which part of the model judges")

    @model_validator(mode="before")
    @classmethod
    def _exchanged(cls, given: dict[str, Any]) -> dict[str, Any]:
        no_fedavg(given)
        for name in ("carry", "free", "teleport", "local", "min_group"):
            if name in given:
                raise ValueError(f"'{name}' is for propagated structure; set structure = propagated, or leave it out")
        return given

    @model_validator(mode="after")
    def _room_for_degrees(self) -> FedStructOptions:
        if self.features == "fedstar" and self.return_steps >= self.structure_dim:
            raise ValueError(
                f"return_steps = {self.return_steps} leave no room for degrees "
                f"in structure_dim = {self.structure_dim}: take fewer"
            )
        return self

    @property
    def exchange_hops(self) -> int:
        return max(self.layers_structure, self.return_steps) if self.features == "fedstar" else self.layers_structure

    @property
    def exchange_key(self) -> tuple[Any, ...]:
        return *super().exchange_key, self.return_steps if self.features == "fedstar" else 0

    @property
    def learned(self) -> bool:
        """S is trained."""
        return self.features.startswith("hop2vec")

    def modules(self, features: int, classes: int, seed: int = 0) -> nn.ModuleList:
        """f, and g where there is a model over S, as they are at the start of a run with this seed."""
        modules = nn.ModuleList([self.module(features, classes, start_of(seed))])
        if self.features != "hop2vec":
            generator = torch.Generator().manual_seed(start_of(seed, "structure model"))
            modules.append(MLP(self.structure_dim, self.structure_hidden, classes, generator, self.precision))
        return modules

    def embedding(self, nodes: int, classes: int, seed: int) -> Tensor:
        """S at the start: zero for hop2vec, N(0, 0.05²) under an MLP; without columns where it is not trained."""
        if self.features != "hop2vec-mlp":
            return torch.zeros(nodes, classes if self.learned else 0, dtype=self.precision)
        generator = torch.Generator().manual_seed(start_of(seed, "embedding"))
        return (0.05 * torch.randn(nodes, self.structure_dim, generator=generator)).to(self.precision)
