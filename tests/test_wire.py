"""wire=half: what travels is rounded, in a simulation as on a network; and nobody mixes it with the other form."""

import numpy as np
import pytest

import fedstruct as fs
from fedstruct.errors import FedstructError, RefusedMessage
from fedstruct.federation.federation import Coordinator
from fedstruct.federation.ledger import Ledger
from fedstruct.federation.local import LocalTransport
from fedstruct.federation.site import Site
from fedstruct.federation.transport import COORDINATOR
from fedstruct.federation.watch import Watch
from fedstruct.methods import METHODS
from strategies import Recorder, recorded

SENDING = [name for name in METHODS if not name.startswith(("local", "central"))]
SHORT = {"rounds": 3}
PARTS = fs.partition.random(fs.split(fs.generate.planted(nodes=120, classes=3, features=6), 0, train=0.3), 3)


def made(name, **options):
    few = {"layers_structure": 3} if name.startswith("fedstruct") else {}
    return METHODS[name](**SHORT, **few, **options)


def figures(result):
    parameters = {name: values.tobytes() for name, values in result.trained.parameters.items()}
    return parameters, result.trained.confusion.tolist(), result.history, result.bytes, result.by_party


@pytest.mark.parametrize("name", SENDING)
def test_a_simulation_rounds_as_the_wire_does(name):
    """Bit for bit, and row by row in the ledger, what parties on a network give."""
    method = made(name, wire="half")
    together, separate = fs.run(method, PARTS), fs.run(method, PARTS, separate=True)
    assert figures(together) == figures(separate)
    assert together.ledger.frame().equals(separate.ledger.frame())
    full = fs.run(made(name), PARTS)
    assert figures(together)[0] != figures(full)[0], "it is rounded"
    assert together.messages == full.messages
    assert sum(together.bytes.values()) < sum(full.bytes.values())


def test_the_ledger_counts_the_coded_bytes():
    method = made("fedstruct", wire="half")
    names = tuple(p.name for p in PARTS.parties)
    federation, recorder = recorded([method.party(p, names, 0) for p in PARTS.parties], method.sends, method.wire)
    assert isinstance(recorder, Recorder)
    method.train(federation, 0, Watch())
    sent = fs.run(method, PARTS).ledger.frame().filter(entry="sent")
    counted = sorted(zip(sent["step"], sent["sender"], sent["receiver"], sent["kind"], sent["bytes"], strict=True))
    assert counted == sorted((r.step, r.sender, r.receiver, r.kind, len(r.frame)) for r in recorder.records)


def test_a_site_of_the_other_form_is_told_so():
    method, other = made("fedsgd-mlp", wire="half"), made("fedsgd-mlp")
    names, transport = tuple(p.name for p in PARTS.parties), LocalTransport()
    for own, of in zip(PARTS.parties, (method, method, other), strict=True):
        party = of.party(own, names, 0)
        transport.sites[own.name] = Site(party, of.sends, transport, Ledger("test", own.name), wire=of.wire)
    federation = Coordinator(names, method.sends, transport, Ledger("test", COORDINATOR), method.wire)
    with pytest.raises(RefusedMessage, match=r"ModelWeights\.theta came in half form, and not in plain form"):
        method.train(federation, 0, Watch())


def test_a_full_and_a_half_exchange_are_two():
    memory = {}
    runs = [fs.run(made("fedstruct", wire=wire), PARTS, memory=memory) for wire in ("full", "half", "half")]
    assert [r.reused for r in runs] == [False, False, True]
    alone = fs.run(made("fedstruct", wire="half"), PARTS)
    assert figures(runs[2]) == figures(alone)
    assert runs[2].ledger.frame().equals(alone.ledger.frame())


def test_the_exchange_in_halves_is_near_the_exact_one():
    exact, rounded = (fs.run(made("fedstruct", wire=wire), PARTS) for wire in ("full", "half"))
    assert exact.exposure["inner_edges"] == rounded.exposure["inner_edges"]
    losses = [[h["loss"] for h in r.history] for r in (exact, rounded)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.01)


@pytest.mark.parametrize("name", ["local-mlp", "central-gnn"])
def test_who_sends_no_floating_values_over_a_wire_has_no_such_option(name):
    with pytest.raises(FedstructError, match="wire"):
        METHODS[name](wire="half")


def test_another_wire_is_refused_in_one_sentence():
    with pytest.raises(FedstructError, match="wire"):
        METHODS["fedstruct"](wire="quarter")
