"""The feature models that methods train: a plain MLP, a decoupled GCN, a GraphSAGE; all on inner edges."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from fedstruct.methods.hops import MOST_HOPS
from fedstruct.methods.options import HiddenUnits, Options
from fedstruct.methods.view import View
from fedstruct.models.decoupled import DecoupledGCN
from fedstruct.models.mlp import MLP
from fedstruct.seeds import key
from fedstruct.structure.kernels import normalised

MODELS = ("gnn", "dgcn", "mlp")


class Computation(Protocol):
    """The logits of some nodes of a view."""

    def logits(self, module: Any, rate: float = 0.0, when: tuple[int | str, ...] = ()) -> Tensor: ...


def start_of(seed: int, what: str = "model") -> int:
    """The number that names the start of a model in a run with this seed."""
    return key("initialise", what, seed) >> 1


class TrainingOptions(Options):
    """How a model is trained, whatever it is."""

    lr: float = Field(0.005, gt=0, le=1000, description="λ, the rate of the model")
    weight_decay: float = Field(5e-4, ge=0, le=1000, description="L2 penalty on the model")
    rounds: int = Field(60, ge=1, description="rounds of training")
    dropout: float = Field(0.5, ge=0, lt=1, description="share of hidden units dropped while training")
    optimizer: Literal["adam", "sgd"] = Field("adam", description="how the model is stepped")
    class_weight: Literal["none", "balanced"] = Field("none", description="weigh classes by 1/frequency, or not")
    dtype: Literal["float32", "float64"] = Field("float32", description="precision of training")

    @property
    def precision(self) -> torch.dtype:
        kind: torch.dtype = getattr(torch, self.dtype)
        return kind


class MLPOptions(TrainingOptions):
    feature_hidden: int = Field(64, ge=1, description="hidden units of the feature model")

    @property
    def hops(self) -> int:
        return 0

    def module(self, features: int, classes: int, start: int = 0) -> nn.Module:
        """The model as it is at the start that this number names."""
        generator = torch.Generator().manual_seed(start)
        return MLP(features, (self.feature_hidden,), classes, generator, self.precision)

    def on(self, view: View, nodes: np.ndarray) -> Computation:
        """The model on some nodes of a view."""
        return DecoupledGCN(normalised(view.inner), view.features, nodes, self.hops, view.keys, self.precision)


class DGCNOptions(MLPOptions):
    layers_feature: int = Field(2, ge=0, le=MOST_HOPS, description="L, the hops of the feature model over inner edges")

    @property
    def hops(self) -> int:
        return self.layers_feature


class GNNOptions(TrainingOptions):
    # torch-geometric takes as long to import as torch; runs without a GraphSAGE do not wait for it.
    sage_hidden: HiddenUnits = Field((128, 64), description="hidden units of each convolution")

    def module(self, features: int, classes: int, start: int = 0) -> nn.Module:
        from fedstruct.models.graphsage import GraphSAGE

        # torch-geometric's layers draw from torch's global generator: theirs is lent one of ours, and given back.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(start)
            return GraphSAGE(features, self.sage_hidden, classes).to(self.precision)

    def on(self, view: View, nodes: np.ndarray) -> Computation:
        from fedstruct.models.graphsage import Neighbourhoods

        return Neighbourhoods(view.inner, view.features, nodes, len(self.sage_hidden), view.keys, self.precision)


OPTIONS: dict[str, type[MLPOptions] | type[GNNOptions]] = {"gnn": GNNOptions, "dgcn": DGCNOptions, "mlp": MLPOptions}
