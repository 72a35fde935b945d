"""The options of FedStruct by propagation."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from fedstruct.methods.feature_model import DGCNOptions
from fedstruct.methods.fedstruct_options import no_fedavg
from fedstruct.methods.hops import HopOptions
from fedstruct.methods.options import WireOptions


class PropagatedOptions(HopOptions, WireOptions, DGCNOptions):
    """How Z = Σ β_l Â^l s is computed over the border, and what s is."""

    structure: Literal["propagated"] = Field("propagated", description="Ā is multiplied with, and never shared")
    carry: Literal["structure", "features"] = Field(
        "structure", description="s, what nodes carry: a free row of S each, or their own prediction from features"
    )
    free: bool = Field(True, description="with carried features: add a free row of S to each prediction")
    local: bool = Field(True, description="add the feature model over inner edges to the logits")
    teleport: float = Field(0.0, ge=0, lt=1, description="α: at each hop, z becomes (1 - α) Â z + α s")
    min_group: int = Field(1, ge=1, description="edges whose sums would be over fewer nodes than this are left out")
    lr_structure: float = Field(0.1, gt=0, le=1000, description="λ_s, the rate of the structure embedding S")
    inference: Literal["both", "structure", "features"] = Field("both", description="which part of the model judges")

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_exchanged(cls, given: dict[str, Any]) -> dict[str, Any]:
        no_fedavg(given)
        for name in ("prune", "prune_rule", "keep"):
            if name in given:
                raise ValueError(f"propagated structure is exact and prunes nothing; leave out '{name}'")
        for name in ("features", "structure_dim", "structure_hidden", "return_steps"):
            if name in given:
                raise ValueError(f"'{name}' is for exchanged structure; with propagated structure, choose 'carry'")
        return given

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.carry == "structure" and not self.free:
            raise ValueError("free = false leaves carry = structure nothing to carry; take carry = features")
        if self.carry == "structure" and not self.local:
            raise ValueError("local = false leaves carry = structure without any feature; take carry = features")
        if self.teleport and self.betas is not None:
            raise ValueError("teleport and betas both say how much each hop counts; give one of them")
        if self.inference == "features" and not self.local:
            raise ValueError("local = false leaves no feature model to judge by; leave out inference = features")
        return self

    def beta(self, hop: int) -> float:
        """The weight of Â^hop; with teleport those of personalised PageRank, which begin at no hop."""
        if not self.teleport:
            return super().beta(hop)
        stay = (1 - self.teleport) ** hop
        return stay if hop == self.layers_structure else self.teleport * stay
