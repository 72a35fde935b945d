"""What a party can work out of what it was told: by propagation, by least squares; by Algorithm 3, by reading.

Every party attacks every other. It uses its own part, the values of its own nodes, and the sums that it was told in all
rounds and hops. Sums over several nodes are first solved for single nodes, as far as the groups determine them. What
a node carries after a hop is a weighted mean of what it and its neighbours carried before: hops of all rounds are
equations for its neighbours among the nodes whose values are known. They are solved by least squares, and a node that
weighs more than half of what the node itself does is taken for its neighbour. Classes are read off the first slopes:
a sum that is zero is over nodes that do not train, which are struck out of the others; of a node whose slope is then
known, the one negative entry is its class.

    FEDSTRUCT_DATA=… python benchmarks/attack.py [--datasets cora] [--groups 1,2,3] [--accuracy-seeds 10] [--classes]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lstsq
from threadpoolctl import threadpool_limits

from fedstruct.experiments.bench import Bench
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.experiment import Runs
from fedstruct.experiments.process import prepare_process
from fedstruct.federation.local import LocalFederation
from fedstruct.federation.message import Message
from fedstruct.federation.watch import Watch
from fedstruct.graph.graph import TRAIN
from fedstruct.graph.party_graph import Border, PartyGraph
from fedstruct.methods.propagated import PropagatedParty
from fedstruct.methods.propagated_messages import SlopeSums, Sums
from fedstruct.structure.border import groups


class Listening(PropagatedParty):
    """A party that keeps what its own nodes carried, and what it was told."""

    def __init__(self, *given) -> None:
        super().__init__(*given)
        self.forward: list[tuple[int, np.ndarray, dict[str, np.ndarray]]] = []
        self.slopes: list[dict[str, np.ndarray]] = []

    def _came(self):
        if self.sums.leaving is Sums:
            self.forward.append((self.sums._hop, self.sums.values.numpy().astype(float), self._told_by(Sums)))
        elif told := self._told_by(SlopeSums):
            self.slopes.append((self.sums._hop, told))
        return super()._came()

    def _told_by(self, kind: type[Message]) -> dict[str, np.ndarray]:
        return {peer: np.array(message.values, float) for peer, message in self.inbox(kind)}


@dataclass
class Found:
    """What all attackers found, of everybody."""

    inner: int
    """Inner edges that there are."""
    known: int
    """Single nodes' values known to the average attacker."""
    claimed: int
    right: int
    read: set
    """Inner edges that some attacker claims, and rightly so."""
    classes: set
    training: int


def attack(parts, method, seed: int, edges: bool = True) -> Found:
    names = tuple(p.name for p in parts.parties)
    parties = [Listening(own, names, method.options, seed) for own in parts.parties]
    method.train(LocalFederation(parties, method.sends, "attack", separate=True), seed, Watch())
    inner = {(p.name, *edge) for p in parts.parties for edge in undirected(p.inner)}
    found = Found(len(inner), 0, 0, 0, set(), set(), sum(len(p.known(TRAIN)) for p in parts.parties))
    owner = {p.name: p for p in parts.parties}
    for party in parties:
        solved = [(peer, *resolved(party.shared.outgoing, party.shared, peer)) for peer in party.shared.peers]
        targets = [(peer, node) for peer, nodes, _ in solved for node in nodes.tolist()]
        found.known += len(targets)
        for edge in neighbours(party, solved, targets) if edges else ():
            found.claimed += 1
            found.right += edge in inner
            found.read |= {edge} & inner
        for peer, node, label in classes(party):
            assert owner[peer].labels[node] == label, "a negative slope is the class"
            found.classes.add((peer, node))
    found.known //= len(parties)
    return found


def undirected(inner) -> set:
    u, v = inner.tocoo().coords
    return set(zip(np.minimum(u, v).tolist(), np.maximum(u, v).tolist(), strict=True))


def resolved(border: Border, own: PartyGraph, peer: str):
    """The peer's nodes whose own values follow from sums over groups, and how: one row of factors for each."""
    at = border.peer == own.peers.index(peer)
    _, mine, row = groups(border.peer[at], border.own[at])
    _, theirs, column = groups(border.peer[at], border.node[at])
    sums = np.zeros((len(mine), len(theirs)))
    sums[row, column] = border.weight[at]
    inverse = np.linalg.pinv(sums)
    alone = np.flatnonzero(np.abs(np.diag(inverse @ sums) - 1) < 1e-9)
    return theirs[alone], inverse[alone]


def neighbours(party: Listening, solved, targets):
    """Inner edges that least squares finds: (owner, node, node)."""
    o = party.options
    last = o.layers_structure
    rows, wanted, before, start = [], [], None, None
    for hop, own, told in party.forward:
        known = [factors @ told[peer] for peer, nodes, factors in solved if len(nodes)]
        values = np.vstack([*known, own]).T  # a row for each class, a column for each node
        if hop == 0:
            start = values / o.beta(last) if o.beta(last) else 0 * values
        else:
            rows.append(before)
            wanted.append((values - o.beta(last - hop) * start)[:, : len(targets)])
        before = values
    if not rows or not targets:
        return
    weights = lstsq(np.vstack(rows), np.vstack(wanted), lapack_driver="gelsy")[0]
    itself = np.diag(weights)
    for j, (peer, node) in enumerate(targets):
        if itself[j] <= 0:
            continue
        for i in np.flatnonzero(weights[: len(targets), j] > itself[j] / 2).tolist():
            if i != j and targets[i][0] == peer:
                yield peer, min(node, targets[i][1]), max(node, targets[i][1])


def classes(party: Listening):
    """Training nodes whose class shows in the first slopes of the first round: (owner, node, class)."""
    told = next((told for hop, told in party.slopes if hop == 0), {})
    border, own = party.shared.incoming, party.shared
    for peer, sums in told.items():
        at = border.peer == own.peers.index(peer)
        _, mine, row = groups(border.peer[at], border.own[at])
        _, theirs, column = groups(border.peer[at], border.node[at])
        over = np.zeros((len(mine), len(theirs)))
        over[row, column] = 1
        silent = ~sums.any(axis=1)
        over[:, over[silent].any(axis=0)] = 0
        inverse = np.linalg.pinv(over)
        for j in np.flatnonzero(np.abs(np.diag(inverse @ over) - 1) < 1e-9).tolist():
            slope = inverse[j] @ sums
            if np.abs(slope).max() > 1e-6:
                yield peer, int(theirs[j]), int(slope.argmin())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", default="cora")
    parser.add_argument("--methods", default="fedstruct-propagated-features")
    parser.add_argument("--partitions", default="random,louvain")
    parser.add_argument("--groups", default="1,2,3")
    parser.add_argument("--accuracy-seeds", type=int, default=10)
    parser.add_argument("--classes", action="store_true", help="read classes only: one round, and no least squares")
    asked = parser.parse_args()
    prepare_process()
    threadpool_limits(1)  # least squares on a busy machine waits for its threads
    print(
        "| dataset, partition | method | test accuracy | sums over 1, 2, more | single values known to a party "
        "| inner edges claimed, right | inner edges read by some peer | training classes read by some peer |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for dataset in asked.datasets.split(","):
        for how in asked.partitions.split(","):
            if not asked.classes:
                told_of_exchange(dataset, how, asked.accuracy_seeds)
            for name in asked.methods.split(","):
                for least in map(int, asked.groups.split(",")):
                    told_of_propagation(dataset, how, name, least, asked.accuracy_seeds, asked.classes)


def told_of_exchange(dataset: str, how: str, seeds: int) -> None:
    runs = Runs(Experiment(dataset=dataset, partition=how, seeds=seeds))
    results = list(runs.all())
    share = results[0].exposure["inner_share"]
    print(
        f"| {dataset}, {how} | Algorithm 3, p = {runs.method.options.prune} | {percent(results)} | | "
        f"| all that are read | {100 * share:.1f} % | |",
        flush=True,
    )


def told_of_propagation(dataset: str, how: str, name: str, least: int, seeds: int, classes_only: bool) -> None:
    experiment = Experiment(dataset=dataset, method=name, partition=how, seeds=seeds, options={"min_group": least})
    runs = Runs(experiment)
    results = list(runs.all())
    sums = results[0].sums
    method = runs.method
    if classes_only:
        method.options = method.options.model_copy(update={"rounds": 1})
    found = attack(Bench().parts(experiment, 0), method, 0, edges=not classes_only)
    right = f"{found.claimed:,}, {100 * found.right / found.claimed:.1f} %" if found.claimed else "0"
    read = f"{100 * len(found.read) / found.inner:.1f} %"
    if classes_only:
        right = read = "–"
    print(
        f"| {dataset}, {how} | {name.removeprefix('fedstruct-')}, m = {least} | {percent(results)} "
        f"| {sums['one']:,}, {sums['two']:,}, {sums['more']:,} | {found.known:,} | {right} "
        f"| {read} | {100 * len(found.classes) / found.training:.1f} % |",
        flush=True,
    )


def percent(results) -> str:
    return f"{100 * sum(r.test_accuracy for r in results) / len(results):.2f}"


if __name__ == "__main__":
    main()
