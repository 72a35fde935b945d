"""FedStruct with Hop2Vec: local features and a learned structure embedding, Algorithm 2.

Reference: Aliakbari, Östman and Graell i Amat, "Decoupled Subgraph Federated Learning", ICLR 2025.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from fedstruct.federation.codec import Limits
from fedstruct.federation.federation import Federation
from fedstruct.federation.message import Message
from fedstruct.federation.party import answers
from fedstruct.federation.stack import Stack
from fedstruct.federation.watch import Watch
from fedstruct.graph.graph import TRAIN
from fedstruct.graph.party_graph import PartyGraph
from fedstruct.methods.divergence import must_be_finite
from fedstruct.methods.embedding import Embedding
from fedstruct.methods.evaluation import Counts, counted
from fedstruct.methods.exchange import EXCHANGE, Sizes, acquire
from fedstruct.methods.feature_model import Computation
from fedstruct.methods.fedstruct_messages import (
    AllColumns,
    Columns,
    Evaluate,
    Gradient,
    Reach,
    ReachAll,
    Weights,
)
from fedstruct.methods.fedstruct_options import FedStructOptions
from fedstruct.methods.method import Method, Trained
from fedstruct.methods.opening import BALANCING, announced, balance
from fedstruct.methods.optimiser import Optimiser
from fedstruct.methods.structure_features import STRUCTURE_FEATURES, StructureFeatureParty, known_rows, share
from fedstruct.methods.view import View
from fedstruct.models.dropout import row_keys
from fedstruct.models.flat import Flat
from fedstruct.models.mlp import StandardRows
from fedstruct.models.sparse import SparseMatrix
from fedstruct.seeds import key
from fedstruct.structure.kernels import columns_of, onto_columns, stacked


class FedStruct(Method):
    """FedStruct: ŷ_v = softmax(Σ_u Ā_vu g(s_u) + f_θ(v)), eq. 10; with Hop2Vec, eq. 13, g is left out and S is trained.

    >>> from fedstruct import generate, partition, run
    >>> parts = partition.random(generate.planted(nodes=200), parties=3)
    >>> result = run(FedStruct(layers_structure=3, rounds=2), parts)
    >>> result.trained.parameters["structure"].shape, result.exchange["entries"] <= result.exchange["at_most"]
    ((200, 4), True)
    """

    name = "fedstruct"
    options_type = FedStructOptions
    options: FedStructOptions

    def __new__(cls, **options: Any) -> FedStruct:
        # As pathlib.Path does: one name, and the class that fits.
        if cls is FedStruct and options.get("structure") == "propagated":
            from fedstruct.methods.propagated import PropagatedFedStruct

            return super().__new__(PropagatedFedStruct)
        return super().__new__(cls)

    @property
    def sends(self) -> frozenset[type[Message]]:
        kinds = EXCHANGE | {Reach, Columns, ReachAll, AllColumns, Weights, Gradient, Evaluate, Counts}
        if not self.options.learned:
            kinds |= STRUCTURE_FEATURES
        return kinds | (BALANCING if self.options.class_weight == "balanced" else frozenset())

    def party(self, own: PartyGraph, parties: tuple[str, ...], seed: int) -> FedStructParty:
        return FedStructParty(own, parties, self.options, key("dropout", seed))

    def train(self, federation: Federation, seed: int, watch: Watch) -> Trained:
        o = self.options
        with watch.phase("structure"):
            parties = announced(federation)
            nodes = np.array([a.nodes for a in parties.values()])
            acquire(federation, o, nodes, watch)
            if not o.learned:
                share(federation)
            known = Limits(sizes={"nodes": int(nodes.sum())})
            reach: dict[str, Columns] = federation.ask(Reach(), known)  # type: ignore[assignment]
            touched: dict[str, AllColumns] = federation.ask(ReachAll(), known)  # type: ignore[assignment]

        with watch.phase("training"):
            first = next(iter(parties.values()))
            labelled = sum(a.labelled for a in parties.values())
            if o.class_weight == "balanced":
                balance(federation, first.classes)
            theta = Flat(o.modules(first.features, first.classes, seed)).vector
            reached = np.zeros(int(nodes.sum()), bool)
            for r in reach.values():
                reached[r.columns] = True
            position = np.cumsum(reached) - 1
            place = {name: position[r.columns] for name, r in reach.items()}
            start = o.embedding(len(reached), first.classes, seed)
            decay = o.weight_decay if o.features == "hop2vec-mlp" else 0.0
            embedding = Embedding(start, reached, o.optimizer, o.lr_structure, decay)
            optimiser = Optimiser(o.optimizer, (theta, o.lr, o.weight_decay))
            expected = Limits(sizes={"parameters": len(theta), "classes": first.classes, "width": start.shape[1]})
            for t in range(o.rounds):
                question = Weights(t, theta.numpy(), embedding.rows)
                gradient: Gradient = federation.sum(question, place, expected)  # type: ignore[assignment]
                optimiser.step(torch.from_numpy(gradient.theta) / labelled)
                embedding.step(torch.from_numpy(gradient.structure) / labelled)
                watch.advance(t + 1, o.rounds, loss=gradient.loss / labelled)

        with watch.phase("evaluation"):
            rows = {name: t.columns for name, t in touched.items()}
            final = Evaluate(theta.numpy(), embedding.everywhere())
            counts: Counts = federation.sum(final, rows, expected)  # type: ignore[assignment]
        return Trained({"theta": theta.numpy(), "structure": final.structure}, counts.confusion, counts.scores)


class FedStructParty(StructureFeatureParty):
    """One owner's side of FedStruct."""

    def __init__(self, own: PartyGraph, parties: tuple[str, ...], options: FedStructOptions, draws: int) -> None:
        super().__init__(own, parties, options)
        self.options = options
        self.draws = draws
        self.return_steps = options.return_steps if options.features == "fedstar" else 0
        self._sums: FedStructSums | None = None
        self._shape: dict[str, int] | None = None
        """What a model, and the rows of S that this party reaches, must look like."""

    def limits(self) -> Limits:
        known = super().limits()
        if self._shape is None:
            return known
        return replace(known, sizes={**known.sizes, **self._shape})

    @answers(Reach, after=Sizes)
    def reached(self, question: Reach) -> Columns:
        # From here on Ā is only multiplied with weights: in their precision it takes half the memory.
        self.reach = self.reach.astype(np.dtype(self.options.dtype))
        self.training_reach = self.reach[self.own.known(TRAIN)]
        columns, touched = columns_of(self.training_reach), columns_of(self.reach)
        o, own = self.options, self.own
        self._shape = {
            "parameters": sum(p.numel() for p in o.modules(own.features.shape[1], own.classes).parameters()),
            "width": o.embedding(0, own.classes, 0).shape[1],
            "reach": len(columns),
            "touched": len(touched),
        }
        return Columns(columns.astype(np.int32))

    @answers(ReachAll, after=Reach)
    def all_reached(self, question: ReachAll) -> AllColumns:
        return AllColumns(columns_of(self.reach).astype(np.int32))

    @answers(Weights, after=Reach)
    def gradient(self, question: Weights) -> Gradient:
        if self._sums is None:
            self._sums = self.stack([self])
        return self._sums.gradient(question)

    @answers(Evaluate, after=Reach)
    def evaluate(self, question: Evaluate) -> Counts:
        return self.stack([self]).evaluate(question)

    @classmethod
    def stack(cls, parties: Sequence[Self]) -> FedStructSums:
        """The parties stepping as one; of one party, its own step."""
        return FedStructSums(parties)


class FedStructSums(Stack):
    """The sums over nodes side by side, of one party or of several: Algorithm 2's inner loop.

    The rows of S that a question brings are those that these nodes reach, in order.
    """

    steps = (Weights, Evaluate)

    def __init__(self, parties: Sequence[FedStructParty]) -> None:
        self.parties = parties
        self.options, self.draws = parties[0].options, parties[0].draws
        self.view = View.of([p.own for p in parties])
        self.dtype = self.options.precision
        self.model = Flat(self.options.modules(self.view.features.shape[1], self.view.classes))
        weights = parties[0].class_weights
        self.class_weights = None if weights is None else torch.from_numpy(weights).to(self.dtype)
        self._training: tuple[Computation, StructurePart, Tensor] | None = None

    def total(self, question: Message) -> Message:
        if isinstance(question, Weights):
            return self.gradient(question)
        assert isinstance(question, Evaluate)
        return self.evaluate(question)

    def gradient(self, question: Weights) -> Gradient:
        """Propositions 2 and 3, summed over the training nodes."""
        if self._training is None:
            nodes = self.view.known(TRAIN)
            reach = stacked([p.training_reach for p in self.parties])
            z = StructurePart([reach], columns_of(reach), self.parties)
            self._training = self.options.on(self.view, nodes), z, torch.from_numpy(self.view.labels[nodes])
        h, z, labels = self._training
        structure = self._tensor(question.structure).requires_grad_()
        self.model.load(self._tensor(question.theta))
        logits = self._logits(h, z, structure, self.options.dropout, (self.draws, question.round))
        loss = torch.nn.functional.cross_entropy(logits, labels, self.class_weights, reduction="sum")
        must_be_finite(loss.item(), "the loss", question.round)
        by_theta, by_structure = self.model.gradients(loss, structure)
        for gradient in (by_theta, by_structure):
            must_be_finite(gradient, "the gradient", question.round)
        return Gradient(loss.item(), by_theta.numpy(), by_structure.numpy())

    @torch.no_grad()
    def evaluate(self, question: Evaluate) -> Counts:
        nodes, blocks = self.view.judged, [p.reach for p in self.parties]
        everything = len(question.structure) == blocks[0].shape[1]
        columns = np.arange(blocks[0].shape[1]) if everything else columns_of(stacked(blocks))
        # Ā is multiplied party by party: put on top of each other, it would be copied for a single use.
        z = StructurePart(
            blocks if len(nodes) == len(self.view.labels) else [stacked(blocks)[nodes]], columns, self.parties
        )
        self.model.load(self._tensor(question.theta))
        structure = self._tensor(question.structure)
        logits = self._logits(self.options.on(self.view, nodes), z, structure, part=self.options.inference)
        return counted(logits, self.view.labels[nodes], self.view.split[nodes])

    def _logits(
        self,
        h: Computation,
        z: StructurePart,
        structure: Tensor,
        rate: float = 0.0,
        when: tuple[int | str, ...] = (),
        part: str = "both",
    ) -> Tensor:
        modules: list[nn.Module] = list(self.model.module.children())
        f, g = modules[0], modules[1:]
        if part == "features":
            return h.logits(f)
        if part == "structure":
            return z.logits(g, structure)
        return h.logits(f, rate, when) + z.logits(g, structure, rate, (*when, "structure"))

    def _tensor(self, values: Any) -> Tensor:
        return torch.from_numpy(np.array(values)).to(self.dtype)


class StructurePart:
    """z = Ā g(S) for some rows of Ā, in blocks, eq. 8."""

    def __init__(self, blocks: Sequence[csr_array], columns: np.ndarray, parties: Sequence[FedStructParty]) -> None:
        options = parties[0].options
        self._blocks = [SparseMatrix(onto_columns(block, columns), options.precision) for block in blocks]
        self._keys: np.ndarray | None = None
        self._features: StandardRows | None = None
        if options.features != "hop2vec":
            self._keys = row_keys(parties[0].parties, np.diff(parties[0].starts).tolist())[columns]
        if not options.learned:
            self._features = StandardRows(known_rows(parties, options.structure_dim)[columns], options.precision)

    def logits(
        self, g: Sequence[nn.Module], structure: Tensor, rate: float = 0.0, when: tuple[int | str, ...] = ()
    ) -> Tensor:
        """`structure` holds the rows of S at the columns of these rows of Ā."""
        values = structure
        if g:
            values = g[0](structure if self._features is None else self._features, self._keys, rate, when)
        return torch.cat([block @ values for block in self._blocks])
