"""What a message is derived from is proved: replace that data at one party, and no message that denies it may change.

The same seed, one party's features, labels, split, inner edges or number of nodes replaced, every frame recorded:
messages of a kind that does not declare the source are byte-identical, run for run. Those that declare it do change.
"""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import fedstruct as fs
from fedstruct.federation.message import EVERYTHING, Source
from fedstruct.federation.watch import Watch
from fedstruct.graph.graph import TRAIN
from strategies import recorded

SHORT = {"rounds": 3, "dropout": 0.4, "lr": 0.05}
WIDE = {**SHORT, "layers_structure": 3, "prune": 6, "feature_hidden": 8}
METHODS = {
    "fedstruct": fs.methods.FedStruct(**WIDE, lr_structure=0.3),
    "fedstar, balanced": fs.methods.FedStruct(
        **{**WIDE, "prune": 3},
        features="fedstar",
        return_steps=4,
        structure_dim=12,
        structure_hidden=(8,),
        class_weight="balanced",
    ),
    "propagated": fs.methods.FedStruct(
        **SHORT, structure="propagated", layers_structure=3, feature_hidden=8, lr_structure=0.3
    ),
    "propagated features": fs.methods.FedStruct(
        **SHORT,
        structure="propagated",
        carry="features",
        teleport=0.2,
        min_group=2,
        layers_structure=2,
        feature_hidden=8,
        class_weight="balanced",
    ),
    "fedsgd": fs.methods.FedSGD("gnn", **SHORT, sage_hidden=(6,)),
    "fedstruct, half": fs.methods.FedStruct(**WIDE, lr_structure=0.3, wire="half"),
    "fedavg": fs.methods.FedAvg("dgcn", **SHORT, feature_hidden=8, local_epochs=2, class_weight="balanced"),
    "local": fs.methods.Local("dgcn", **SHORT, feature_hidden=8),
}
"""Every kind of message is in one of these conversations."""

PARTIES = 3


def new_features(own, rng):
    return replace(own, features=rng.normal(size=own.features.shape).astype(np.float32) * 3)


def permuted_labels(own, rng):
    """The labelled nodes stay labelled, and the party has as many of each class."""
    known = np.flatnonzero(own.labels >= 0)
    labels = own.labels.copy()
    labels[known] = labels[rng.permutation(known)]
    return replace(own, labels=labels)


def permuted_split(own, rng):
    """As many nodes in each split, and as many of them labelled."""
    known = np.flatnonzero(own.labels >= 0)
    split = own.split.copy()
    split[known] = split[rng.permutation(known)]
    return replace(own, split=split)


def a_training_label_less(own, rng):
    """As many nodes as before, but the class of one of them is forgotten."""
    labels = own.labels.copy()
    labels[rng.choice(own.known(TRAIN))] = -1
    return replace(own, labels=labels)


def new_inner_edges(own, rng):
    """As many inner edges, elsewhere."""
    u, v = np.triu_indices(own.nodes, 1)
    drawn = rng.choice(len(u), own.inner.nnz // 2, replace=False)
    inner = np.zeros((own.nodes, own.nodes))
    inner[u[drawn], v[drawn]] = inner[v[drawn], u[drawn]] = 1
    return replace(own, inner=csr_array(inner))


def nodes_more(own, count, label, split):
    inner = np.zeros((own.nodes + count, own.nodes + count))
    inner[:-count, :-count] = own.inner.toarray()
    return replace(
        own,
        features=np.vstack([own.features, np.ones((count, own.features.shape[1]), np.float32)]),
        labels=np.append(own.labels, [label] * count),
        split=np.append(own.split, [split] * count).astype(own.split.dtype),
        inner=csr_array(inner),
    )


def idle_nodes_more(own, rng):
    """Without edges, label or use: nothing of them is told but that they are there. Blocks may then hold more."""
    return nodes_more(own, 40, label=-1, split=0)


def a_training_node_more(own, rng):
    return nodes_more(own, 1, label=0, split=TRAIN)


@dataclass(frozen=True)
class Replacement:
    make: object
    touches: Source
    """Messages that declare none of these must not change."""


REPLACEMENTS = [
    Replacement(new_features, Source.FEATURES),
    Replacement(permuted_labels, Source.LABELS),
    Replacement(permuted_split, Source.LABELS),
    Replacement(a_training_label_less, Source.LABELS),
    Replacement(new_inner_edges, Source.STRUCTURE),
    Replacement(idle_nodes_more, Source.COUNTS),
    Replacement(a_training_node_more, Source.COUNTS | Source.LABELS | Source.FEATURES),
]


def parties():
    """Three parties; some labels are unknown, one node has no edge at all."""
    graph = fs.generate.planted(nodes=90, classes=3, degree=5, features=8, seed=6)
    labels = graph.labels.copy()
    labels[::11] = -1
    adjacency = graph.adjacency.toarray()
    adjacency[40] = adjacency[:, 40] = 0
    graph = replace(graph, labels=labels, adjacency=csr_array(adjacency))
    return fs.partition.random(fs.split(graph, seed=0, train=0.3, validation=0.2), PARTIES, seed=1).parties


def conversation(method, own):
    """All frames of a run in separate steps, by kind."""
    names = tuple(p.name for p in own)
    federation, recorder = recorded([method.party(p, names, 0) for p in own], method.sends, method.wire)
    method.train(federation, 0, Watch())
    by_kind = defaultdict(list)
    for record in recorder.records:
        by_kind[record.kind].append(record)
    return dict(by_kind)


def replaced(method, replacement, who):
    own = list(parties())
    own[who] = replacement.make(own[who], np.random.default_rng(who))
    return conversation(method, own)


@pytest.fixture(scope="module", params=METHODS)
def method(request):
    return METHODS[request.param]


@pytest.fixture(scope="module")
def kinds(method):
    return {kind.__name__: kind for kind in method.sends}


@pytest.fixture(scope="module")
def original(method):
    return conversation(method, parties())


def test_these_conversations_have_every_kind_of_message():
    every = {kind for make in fs.methods.METHODS.values() for kind in make(class_weight="balanced").sends}
    assert every == {kind for method in METHODS.values() for kind in method.sends}


def test_the_run_is_the_same_when_nothing_is_replaced(method, original):
    assert conversation(method, parties()) == original


def test_every_kind_of_message_is_seen(kinds, original):
    assert set(original) == set(kinds), "what is not seen is not proved"
    for kind, records in original.items():
        senders = {r.sender for r in records}
        assert len(senders) == (1 if senders == {"coordinator"} else PARTIES), kind


@pytest.mark.parametrize("who", range(PARTIES))
@pytest.mark.parametrize("replacement", REPLACEMENTS, ids=lambda r: r.make.__name__)
def test_no_message_changes_with_a_source_that_it_does_not_declare(method, kinds, original, replacement, who):
    after = replaced(method, replacement, who)
    assert set(after) == set(original)
    silent = {name for name, kind in kinds.items() if not kind.sources & replacement.touches}
    assert "Start" in silent
    changed = {name for name in silent if after[name] != original[name]}
    assert changed == set()


@pytest.mark.parametrize("source", [s for s in Source if s in EVERYTHING], ids=lambda s: s.name)
def test_every_message_that_declares_a_source_does_change_with_it(method, kinds, original, source):
    """So no source is claimed for show, and the test above is able to fail.

    Nothing but this source is replaced, except that a node more may bring its label: what is counted is labelled nodes.
    """
    declaring = {name for name, kind in kinds.items() if source in kind.sources}
    changing = set()
    for replacement in REPLACEMENTS:
        if replacement.touches == source or (source == Source.COUNTS and source in replacement.touches):
            for who in range(PARTIES):
                after = replaced(method, replacement, who)
                changing |= {name for name in kinds if after[name] != original[name]}
    assert declaring
    assert declaring <= changing


@pytest.mark.parametrize("replacement", REPLACEMENTS, ids=lambda r: r.make.__name__)
def test_the_replacements_keep_what_they_must(replacement):
    """Counts stay as they are, but for the nodes more; and something else does change."""
    for own in parties():
        other = replacement.make(own, np.random.default_rng(0))
        more = {a_training_node_more: 1, idle_nodes_more: 40}.get(replacement.make, 0)
        labelled = {a_training_node_more: 1, a_training_label_less: -1}.get(replacement.make, 0)
        assert other.nodes == own.nodes + more
        assert other.inner.nnz == own.inner.nnz
        assert (other.labels >= 0).sum() == (own.labels >= 0).sum() + labelled
        assert len(other.known(TRAIN)) == len(own.known(TRAIN)) + labelled
        same = [np.array_equal(getattr(own, f), getattr(other, f)) for f in ("features", "labels", "split")] + [
            own.inner.shape == other.inner.shape and (own.inner != other.inner).nnz == 0
        ]
        assert not all(same)
        if not more:
            assert same.count(False) == 1, "one source at a time"
