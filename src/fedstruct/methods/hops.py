"""How far structure reaches: the hops of Ā = Σ β_l Â^l and their weights."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from fedstruct.methods.options import Options

MOST_HOPS = 1000
"""Far beyond any use: after so many hops every node of a graph has reached all that it can."""

Beta = Annotated[float, Field(ge=-1e6, le=1e6)]


class HopOptions(Options):
    """The hops of Ā, whether it is exchanged or only multiplied with."""

    layers_structure: int = Field(5, ge=1, le=MOST_HOPS, description="L_s, the hops of the combined adjacency")
    betas: tuple[Beta, ...] | None = Field(None, description="β_1 … β_Ls; by default the last is 1, the others 0")

    @model_validator(mode="after")
    def _one_beta_per_hop(self) -> Self:
        if self.betas is not None and len(self.betas) != self.layers_structure:
            raise ValueError(
                f"there are {len(self.betas)} betas for layers_structure = {self.layers_structure} hops: give one each"
            )
        return self

    def beta(self, hop: int) -> float:
        """The weight of Â^hop in Ā; there is nothing beyond the last hop, and nothing of no hop at all."""
        if not 1 <= hop <= self.layers_structure:
            return 0.0
        if self.betas is None:
            return 1.0 if hop == self.layers_structure else 0.0
        return self.betas[hop - 1]
