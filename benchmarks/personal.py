"""FedAvg judged by personal models: each party takes some more steps of its own before it counts right and wrong.

The averaged MLP sees no edges, so that no cut of the graph should help it; personal models learn their part.

    FEDSTRUCT_DATA=… python benchmarks/personal.py cora --partition louvain [--seeds 3]
"""

from __future__ import annotations

import argparse

from fedstruct.experiments.bench import Bench
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.process import prepare_process
from fedstruct.federation.party import answers
from fedstruct.graph.party_graph import PartyGraph
from fedstruct.methods.evaluation import Counts
from fedstruct.methods.fedavg import FedAvg, FedAvgParty, TrainModel
from fedstruct.methods.training import EvaluateModel
from fedstruct.seeds import key

STEPS = (0, 1, 5, 20)


class Personal(FedAvg):
    steps = 0

    def party(self, own: PartyGraph, parties: tuple[str, ...], seed: int) -> PersonalParty:
        party = PersonalParty(own, parties, self.options, key("dropout", seed))
        party.steps = self.steps
        return party


class PersonalParty(FedAvgParty):
    steps: int

    @answers(EvaluateModel)
    def evaluate(self, question: EvaluateModel) -> Counts:
        self.train(TrainModel(self.options.rounds, question.theta))  # loads the averaged model, and takes one step
        if self.steps == 0:
            return self.sums.evaluate(question)
        for step in range(1, self.steps):
            self.train(TrainModel(self.options.rounds + step, self.sums.model.vector.numpy()))
        return self.sums.evaluate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--partition", default="louvain")
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    prepare_process()
    experiment = Experiment(dataset=asked.dataset, method="fedavg-mlp", partition=asked.partition, preset="code")
    method, bench = Personal("mlp", **experiment.build_method().options.model_dump()), Bench()
    print("| own steps before judging | test accuracy |")
    print("| --- | --- |")
    for steps in STEPS:
        method.steps = steps
        found = [bench.one(experiment, method, seed).test_accuracy or 0 for seed in range(asked.seeds)]
        print(f"| {steps} | {100 * sum(found) / len(found):.2f} |", flush=True)


if __name__ == "__main__":
    main()
