"""The lower bound: each party trains alone, on its own part.

Reference: Aliakbari, Östman and Graell i Amat, "Decoupled Subgraph Federated Learning", ICLR 2025, rows "Local".
"""

from __future__ import annotations

from dataclasses import dataclass

from fedstruct.federation.codec import Limits
from fedstruct.federation.federation import Federation
from fedstruct.federation.message import Done, Message, Source
from fedstruct.federation.party import answers
from fedstruct.federation.watch import Watch
from fedstruct.graph.graph import TRAIN
from fedstruct.graph.party_graph import PartyGraph
from fedstruct.methods.evaluation import Counts
from fedstruct.methods.feature_model import start_of
from fedstruct.methods.method import Trained
from fedstruct.methods.opening import OPENING, announced, rarity
from fedstruct.methods.optimiser import Optimiser
from fedstruct.methods.training import ModelParty
from fedstruct.methods.variants import ModelMethod
from fedstruct.seeds import key


@dataclass(frozen=True, eq=False)
class TrainAlone(Message):
    """Train your own model, for all rounds."""

    sources = Source.NOTHING
    tells = "that training begins"
    reply = Done


@dataclass(frozen=True, eq=False)
class EvaluateAlone(Message):
    """Count right and wrong with your own model."""

    sources = Source.NOTHING
    tells = "that counts are asked for"
    reply = Counts


class Local(ModelMethod):
    """No learning together; only counts of right and wrong leave a party.

    >>> from fedstruct import generate, partition, run
    >>> parts = partition.random(generate.planted(nodes=200), parties=3)
    >>> sorted(set(run(Local("mlp", rounds=2), parts).ledger.frame()["kind"]))
    ['Announcement', 'Counts', 'Done', 'EvaluateAlone', 'Start', 'TrainAlone']
    """

    family = "local"
    kinds = OPENING | {TrainAlone, EvaluateAlone, Counts, Done}

    def party(self, own: PartyGraph, parties: tuple[str, ...], seed: int) -> LocalParty:
        return LocalParty(own, parties, self.options, key("dropout", seed), start_of(seed))

    def train(self, federation: Federation, seed: int, watch: Watch) -> Trained:
        with watch.phase("training"):
            first = next(iter(announced(federation).values()))
            federation.ask(TrainAlone())
        with watch.phase("evaluation"):
            counts: Counts = federation.sum(EvaluateAlone(), limits=Limits(sizes={"classes": first.classes}))  # type: ignore[assignment]
        return Trained({}, counts.confusion, counts.scores)


class LocalParty(ModelParty):
    """One owner, alone. Without a labelled node its model stays as it began."""

    @answers(TrainAlone)
    def train(self, question: TrainAlone) -> Done:
        o, labels = self.options, self.own.labels[self.own.known(TRAIN)]
        if o.class_weight == "balanced":
            self.class_weights = rarity(self.count_classes(None).counts)  # type: ignore[arg-type]
        model = self.sums.model
        optimiser = Optimiser(o.optimizer, (model.vector, o.lr, o.weight_decay))
        for t in range(o.rounds if len(labels) else 0):
            _, gradient = self.sums.slope(t)
            optimiser.step(gradient.div_(len(labels)))
        return Done()

    @answers(EvaluateAlone)
    def evaluate_alone(self, question: EvaluateAlone) -> Counts:
        return self.sums.evaluate()
