"""FedStruct with Hop2Vec: local features and a learned structure embedding, Algorithm 2.

Reference: Aliakbari, Östman and Graell i Amat, "Decoupled Subgraph Federated Learning", ICLR 2025.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from fedstruct.federation.codec import Limits
from fedstruct.federation.federation import Federation
from fedstruct.federation.message import EVERYTHING, Message, Source, array
from fedstruct.federation.party import answers
from fedstruct.federation.watch import Watch
from fedstruct.graph.graph import TRAIN
from fedstruct.graph.party_graph import PartyGraph
from fedstruct.methods.evaluation import Counts, counted
from fedstruct.methods.exchange import EXCHANGE, ExchangeParty, StructureOptions, acquire, announced
from fedstruct.methods.method import Method, Trained
from fedstruct.methods.optimiser import Optimiser, must_be_finite
from fedstruct.methods.view import View
from fedstruct.models.decoupled import DecoupledGCN
from fedstruct.models.flat import Flat
from fedstruct.models.mlp import MLP
from fedstruct.models.sparse import SparseMatrix
from fedstruct.seeds import key
from fedstruct.structure.kernels import columns_of, onto_columns, stacked


class FedStructOptions(StructureOptions):
    """The options of FedStruct; those of the structure exchange are among them."""

    features: Literal["hop2vec"] = Field("hop2vec", description="node structure features")
    lr: float = Field(0.005, gt=0, le=1000, description="λ, the rate of the feature model")
    lr_structure: float = Field(0.1, gt=0, le=1000, description="λ_s, the rate of the structure embedding S")
    weight_decay: float = Field(5e-4, ge=0, le=1000, description="L2 penalty on the feature model")
    rounds: int = Field(60, ge=1, description="rounds of training")
    layers_feature: int = Field(2, ge=0, description="L, the hops of the feature model over inner edges")
    feature_hidden: int = Field(64, ge=1, description="hidden units of the feature model")
    dropout: float = Field(0.5, ge=0, lt=1, description="share of hidden units dropped while training")
    optimizer: Literal["adam", "sgd"] = Field("adam", description="how the coordinator steps")
    dtype: Literal["float32", "float64"] = Field("float32", description="precision of training")


@dataclass(frozen=True, eq=False)
class Columns(Message):
    sources = Source.COUNTS | Source.STRUCTURE | Source.LABELS
    tells = "which nodes of the federation a party's training nodes reach"
    unit = "columns"
    columns: np.ndarray = array("i4", "reached", below="nodes")


@dataclass(frozen=True, eq=False)
class Reach(Message):
    """Which columns do your training rows of Ā touch?"""

    sources = Source.NOTHING
    tells = "that the reach is asked for"
    reply = Columns


@dataclass(frozen=True, eq=False)
class AllColumns(Message):
    sources = Source.COUNTS | Source.STRUCTURE
    tells = "which nodes of the federation a party's nodes reach"
    unit = "columns"
    columns: np.ndarray = array("i4", "reached", below="nodes")


@dataclass(frozen=True, eq=False)
class ReachAll(Message):
    """Which columns do all your rows of Ā touch?"""

    sources = Source.NOTHING
    tells = "that the reach of all nodes is asked for"
    reply = AllColumns


@dataclass(frozen=True, eq=False)
class Gradient(Message):
    sources = EVERYTHING
    tells = (
        "a party's gradient of the model and of the structure embedding, and its loss, summed over its training nodes"
    )
    unit = "structure"
    loss: float
    theta: np.ndarray = array("f", "parameters")
    structure: np.ndarray = array("f", "reach", "classes", by_row=True)


@dataclass(frozen=True, eq=False)
class Weights(Message):
    """The model and the rows of S that a party's training nodes reach: compute the gradient."""

    sources = EVERYTHING
    tells = "the model, and the structure embedding of the nodes that a party's training nodes reach"
    reply = Gradient
    unit = "structure"
    round: int
    theta: np.ndarray = array("f", "parameters")
    structure: np.ndarray = array("f", "reach", "classes", by_row=True)


@dataclass(frozen=True, eq=False)
class Evaluate(Message):
    """The final model and the rows of S that a party's nodes reach: count right and wrong."""

    sources = EVERYTHING
    tells = "the trained model, and the structure embedding of the nodes that a party's nodes reach"
    reply = Counts
    unit = "structure"
    theta: np.ndarray = array("f", "parameters")
    structure: np.ndarray = array("f", "reach", "classes", by_row=True)


class FedStruct(Method):
    """FedStruct with Hop2Vec embeddings, eq. 13: ŷ_v = softmax(Σ_u Ā_vu s_u + f_θ(v)).

    >>> FedStruct(layers_structure=10, rounds=40).options.prune
    30
    """

    name = "fedstruct"
    sends = EXCHANGE | {Reach, Columns, ReachAll, AllColumns, Weights, Gradient, Evaluate, Counts}
    options_type = FedStructOptions
    options: FedStructOptions

    def party(self, own: PartyGraph, parties: tuple[str, ...], seed: int) -> FedStructParty:
        return FedStructParty(own, parties, self.options, seed)

    def train(self, federation: Federation, seed: int, watch: Watch) -> Trained:
        o = self.options
        with watch.phase("structure"):
            parties = announced(federation)
            nodes = np.array([a.nodes for a in parties.values()])
            acquire(federation, o, nodes, watch)
            known = Limits(sizes={"nodes": int(nodes.sum())})
            reach: dict[str, Columns] = federation.ask(Reach(), known)  # type: ignore[assignment]
            touched: dict[str, AllColumns] = federation.ask(ReachAll(), known)  # type: ignore[assignment]

        with watch.phase("training"):
            first = next(iter(parties.values()))
            labelled = sum(a.labelled for a in parties.values())
            theta = Flat(_model(o, first.features, first.classes, seed)).vector
            # S is zero, and stays zero, at nodes that no training node reaches: only the others are held.
            anybody = np.zeros(int(nodes.sum()), bool)
            for r in reach.values():
                anybody[r.columns] = True
            position = np.cumsum(anybody) - 1
            place = {name: position[r.columns] for name, r in reach.items()}
            structure = torch.zeros(int(anybody.sum()), first.classes, dtype=theta.dtype)
            optimiser = Optimiser(o.optimizer, (theta, o.lr, o.weight_decay), (structure, o.lr_structure, 0.0))
            expected = Limits(sizes={"parameters": len(theta), "classes": first.classes})
            for t in range(o.rounds):
                question = Weights(t, theta.numpy(), structure.numpy())
                gradient: Gradient = federation.sum(question, place, expected)  # type: ignore[assignment]
                must_be_finite(gradient.loss, t)
                optimiser.step(
                    torch.from_numpy(gradient.theta) / labelled, torch.from_numpy(gradient.structure) / labelled
                )
                watch.advance(t + 1, o.rounds, loss=gradient.loss / labelled)

        must_be_finite(float(theta.abs().max()), o.rounds)
        with watch.phase("evaluation"):
            embedding = np.zeros((int(nodes.sum()), first.classes), structure.numpy().dtype)
            embedding[anybody] = structure.numpy()
            rows = {name: t.columns for name, t in touched.items()}
            counts: Counts = federation.sum(Evaluate(theta.numpy(), embedding), rows, expected)  # type: ignore[assignment]
        return Trained({"theta": theta.numpy(), "structure": embedding}, counts.confusion, counts.scores)


class FedStructParty(ExchangeParty):
    """One owner's side of FedStruct."""

    def __init__(self, own: PartyGraph, parties: tuple[str, ...], options: FedStructOptions, seed: int) -> None:
        super().__init__(own, parties, options)
        self.options = options
        self.seed = seed
        self._sums: FedStructSums | None = None

    def limits(self) -> Limits:
        known = super().limits()
        return Limits(sizes={**known.sizes, "classes": self.own.classes}, most=known.most)

    @answers(Reach)
    def reached(self, question: Reach) -> Columns:
        # From here on Ā is only multiplied with weights: in their precision it takes half the memory.
        self.reach = self.reach.astype(np.dtype(self.options.dtype))
        self.training_reach = self.reach[self.own.known(TRAIN)]
        return Columns(columns_of(self.training_reach).astype(np.int32))

    @answers(ReachAll)
    def all_reached(self, question: ReachAll) -> AllColumns:
        return AllColumns(columns_of(self.reach).astype(np.int32))

    @answers(Weights)
    def gradient(self, question: Weights) -> Gradient:
        if self._sums is None:
            self._sums = self.stack([self])
        return self._sums.gradient(question)

    @answers(Evaluate)
    def evaluate(self, question: Evaluate) -> Counts:
        return self.stack([self]).evaluate(question)

    @classmethod
    def stack(cls, parties: Sequence[Self]) -> FedStructSums:
        """The parties stepping as one; of one party, its own step."""
        return FedStructSums(parties)


class FedStructSums:
    """The sums over nodes side by side, of one party or of several: Algorithm 2's inner loop.

    The rows of S that a question brings are those that these nodes reach, in order.
    """

    def __init__(self, parties: Sequence[FedStructParty]) -> None:
        self.parties = parties
        self.options, self.seed = parties[0].options, parties[0].seed
        self.view = View.of([p.own for p in parties])
        self.dtype = getattr(torch, self.options.dtype)
        self.model = Flat(_model(self.options, self.view.features.shape[1], self.view.classes, self.seed))
        self._training: tuple[DecoupledGCN, SparseMatrix, Tensor] | None = None

    def total(self, question: Message) -> Message:
        return self.gradient(question) if isinstance(question, Weights) else self.evaluate(question)  # type: ignore[arg-type]

    def gradient(self, question: Weights) -> Gradient:
        """Propositions 2 and 3, summed over the training nodes."""
        if self._training is None:
            nodes = self.view.known(TRAIN)
            reach = stacked([p.training_reach for p in self.parties])
            z = SparseMatrix(onto_columns(reach, columns_of(reach)), self.dtype)
            self._training = self._feature_model(nodes), z, torch.from_numpy(self.view.labels[nodes])
        h, z, labels = self._training
        structure = self._tensor(question.structure).requires_grad_()
        self.model.load(self._tensor(question.theta))
        self.model.clear()
        when = (self.seed, question.round)
        logits = h.logits(self.model.module, self.options.dropout, when) + z @ structure  # type: ignore[arg-type]
        loss = torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
        must_be_finite(loss.item(), question.round)
        loss.backward()  # type: ignore[no-untyped-call]
        return Gradient(loss.item(), self.model.gradient.numpy().copy(), structure.grad.numpy())  # type: ignore[union-attr]

    @torch.no_grad()
    def evaluate(self, question: Evaluate) -> Counts:
        nodes = self.view.judged
        reach = stacked([p.reach for p in self.parties])
        if len(question.structure) < reach.shape[1]:
            reach = onto_columns(reach, columns_of(reach))
        z = SparseMatrix(reach if len(nodes) == reach.shape[0] else reach[nodes], self.dtype)
        self.model.load(self._tensor(question.theta))
        logits = self._feature_model(nodes).logits(self.model.module) + z @ self._tensor(question.structure)  # type: ignore[arg-type]
        return counted(logits, self.view.labels[nodes], self.view.split[nodes])

    def _feature_model(self, nodes: np.ndarray) -> DecoupledGCN:
        v = self.view
        return DecoupledGCN(v.adjacency, v.features, nodes, self.options.layers_feature, v.keys, self.dtype)

    def _tensor(self, values: Any) -> Tensor:
        return torch.from_numpy(np.array(values)).to(self.dtype)


def _model(options: FedStructOptions, features: int, classes: int, seed: int) -> MLP:
    """f's parameters at the start."""
    generator = torch.Generator().manual_seed(key("initialise", seed) >> 1)
    return MLP(features, options.feature_hidden, classes, generator, getattr(torch, options.dtype))
