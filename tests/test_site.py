"""Sites and the coordinator: what they let in, when it leaves, and in which order it is summed."""

from dataclasses import dataclass, replace

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import fedstruct as fs
from fedstruct.errors import FedstructError, RefusedMessage
from fedstruct.federation.codec import Limits, decode, encode
from fedstruct.federation.federation import Coordinator
from fedstruct.federation.ledger import Ledger
from fedstruct.federation.local import LocalFederation
from fedstruct.federation.message import Done, Message, Source, array
from fedstruct.federation.party import Party, answers
from fedstruct.federation.sealing import keyrings
from fedstruct.federation.site import Site, opened, sealed_with
from fedstruct.federation.transport import COORDINATOR
from fedstruct.graph.party_graph import Border

PARTIES = ("c", "a", "d", "b")
"""Not in the order of the alphabet: the federation has an order of its own."""


@dataclass(frozen=True, eq=False)
class Heard(Message):
    sources = Source.NOTHING
    tells = "what came, and how many posts had left by then"
    notes: str
    left: int


@dataclass(frozen=True, eq=False)
class Tell(Message):
    """Post a text to these parties."""

    sources = Source.NOTHING
    tells = "whom to write to"
    reply = Heard
    to: str
    text: str


@dataclass(frozen=True, eq=False)
class Break(Message):
    """Post to these parties, then fail."""

    sources = Source.NOTHING
    tells = "whom to write to"
    reply = Done
    to: str


@dataclass(frozen=True, eq=False)
class Riddle(Message):
    """Nobody has an answer to this."""

    sources = Source.NOTHING
    tells = "a riddle"
    reply = Done


@dataclass(frozen=True, eq=False)
class Note(Message):
    sources = Source.NOTHING
    tells = "a text"
    peer = True
    text: str


@dataclass(frozen=True, eq=False)
class Count(Message):
    sources = Source.NOTHING
    tells = "a number"
    peer = True
    number: int


@dataclass(frozen=True, eq=False)
class Share(Message):
    sources = Source.NOTHING
    tells = "a share"
    unit = "table"
    table: np.ndarray = array("f8", "rows", "width", by_row=True)
    marks: np.ndarray = array("i8", "rows", by_row=True)
    whole: np.ndarray = array("f8", "length")
    number: int
    amount: float


@dataclass(frozen=True, eq=False)
class Ask(Message):
    """Multiply all of this by what you are worth."""

    sources = Source.NOTHING
    tells = "a table"
    reply = Share
    unit = "table"
    table: np.ndarray = array("f8", "rows", "width", by_row=True)
    marks: np.ndarray = array("i8", "rows", by_row=True)
    whole: np.ndarray = array("f8", "length")


KINDS = frozenset({Tell, Heard, Break, Riddle, Note, Count, Ask, Share, Done})
ONE_PEER_KIND = KINDS - {Count}


class Wire:
    """A transport that stores what is posted until a test hands it over."""

    def __init__(self):
        self.posts = []

    def deliver(self, sender, to, envelope):
        self.posts.append((sender, to, envelope))

    def call(self, envelopes):
        raise AssertionError("a site calls nobody")


class Writer(Party):
    wire = None
    worth = 1

    def limits(self):
        return Limits(bytes=1000)

    @answers(Tell)
    def tell(self, question):
        for to in question.to:
            self.post(to, Note(f"{self.own.name}{question.text}"))
        heard = [f"{sender}:{note.text}" for sender, note in self.inbox(Note)]
        heard += [f"{sender}:{count.number}" for sender, count in self.inbox(Count)]
        return Heard(" ".join(heard), len(self.wire.posts))

    @answers(Break)
    def fail(self, question):
        for to in question.to:
            self.post(to, Note("never"))
        raise FedstructError("the disk is full")

    @answers(Ask)
    def multiply(self, question):
        w = self.worth
        return Share(
            question.table * w, question.marks * int(w), question.whole * w, int(w) if abs(w) < 1e9 else 0, float(w)
        )


def own_graph(name, peers):
    nobody = np.zeros(0, np.int64)
    return fs.PartyGraph(
        name=name,
        peers=peers,
        features=np.zeros((1, 1), np.float32),
        labels=np.zeros(1, np.int64),
        classes=1,
        inner=csr_array((1, 1)),
        outgoing=Border(nobody, nobody, nobody, np.zeros(0)),
        incoming=Border(nobody, nobody, nobody, np.zeros(0)),
    )


def writer(name, parties=PARTIES, wire=None, worth=1):
    party = Writer(own_graph(name, tuple(p for p in parties if p != name)), parties)
    party.wire, party.worth = wire or Wire(), worth
    return party


def a_site(name="a", kinds=ONE_PEER_KIND, keyring=None, run="run"):
    wire = Wire()
    return Site(writer(name, wire=wire), kinds, wire, Ledger(run, name), keyring)


def ask(site, step, question):
    """What the site answers."""
    return decode(site.on_call(sealed_with(step, encode(question))), [type(question).reply], Limits())


def heard(site, step):
    return ask(site, step, Tell("", "")).notes


def post(site, sender, step, message):
    site.on_deliver(sender, sealed_with(step, encode(message)))


# Steps and posts that a site refuses.


def test_a_step_is_answered_once_and_never_out_of_order():
    site = a_site()
    assert heard(site, 3) == ""
    for step in (3, 2, 1, 0):
        with pytest.raises(RefusedMessage, match=f"answered step 3 already; step {step} came too late"):
            heard(site, step)
    assert heard(site, 4) == ""


def test_posts_of_the_past_are_refused():
    site = a_site()
    heard(site, 5)
    for step in (0, 3, 4):
        with pytest.raises(RefusedMessage, match=f"a is at step 5; a post of step {step} does not belong"):
            post(site, "b", step, Note("late"))
    post(site, "b", 5, Note("in time"))
    assert heard(site, 6) == "b:in time"


def test_posts_of_a_second_future_step_are_refused():
    site = a_site()
    heard(site, 5)
    post(site, "b", 6, Note("early"))
    for step in (7, 8, 2**64 - 1):
        with pytest.raises(RefusedMessage, match="does not belong here"):
            post(site, "c", step, Note("too early"))
    post(site, "c", 6, Note("early too"))
    post(site, "c", 5, Note("in time"))
    assert heard(site, 6) == "c:in time"
    assert heard(site, 7) == "c:early too b:early"


@pytest.mark.parametrize("stranger", ["a", "e", "", COORDINATOR])
def test_only_peers_may_post(stranger):
    site = a_site()
    with pytest.raises(RefusedMessage, match=f"'{stranger}' is not a peer of a"):
        post(site, stranger, 1, Note("let me in"))
    heard(site, 1)
    assert heard(site, 2) == ""


@pytest.mark.parametrize("kinds", [ONE_PEER_KIND, KINDS], ids=["one kind of post", "two kinds of posts"])
@pytest.mark.parametrize("sealed", [False, True], ids=["open", "sealed"])
def test_a_peer_posts_each_kind_once_a_step(kinds, sealed):
    rings = keyrings(PARTIES)
    site = a_site(kinds=kinds, keyring=rings["a"] if sealed else None)
    heard(site, 1)

    def twice():
        for text in ("once", "twice"):
            frame = encode(Note(text))
            if sealed:
                frame = rings["b"].seal("a", frame, b"run\x1f1\x1fb\x1fa")
            site.on_deliver("b", sealed_with(1, frame))
        heard(site, 2)

    with pytest.raises(RefusedMessage, match="b has posted"):
        twice()


def test_a_peer_may_post_one_of_each_kind():
    site = a_site(kinds=KINDS)
    heard(site, 1)
    post(site, "b", 1, Count(7))
    post(site, "b", 1, Note("hello"))
    with pytest.raises(RefusedMessage, match="b has posted to a already in step 1"):
        post(site, "b", 1, Note("again"))
    post(site, "c", 1, Count(3))
    assert heard(site, 2) == "b:hello c:3 b:7"


def test_an_oversized_post_is_refused_when_it_comes():
    site = a_site()
    with pytest.raises(RefusedMessage, match="exceeds a's limit"):
        post(site, "b", 1, Note("x" * 1000))


@pytest.mark.parametrize("raw", [b"", b"\0" * 7, b"\1\0\0"])
def test_an_envelope_cut_short_is_refused(raw):
    site = a_site()
    with pytest.raises(RefusedMessage, match="envelope is cut short"):
        site.on_call(raw)
    with pytest.raises(RefusedMessage, match="envelope is cut short"):
        site.on_deliver("b", raw)


def test_a_post_of_an_unexpected_kind_is_refused_when_it_is_read():
    for message in (Count(3), Tell("b", "x"), Heard("x", 0), Done()):
        site = a_site()
        heard(site, 1)
        post(site, "b", 1, message)
        with pytest.raises(RefusedMessage, match=f"kind '{type(message).__name__}' is not expected"):
            heard(site, 2)


def test_a_question_that_nobody_answers_is_refused():
    with pytest.raises(RefusedMessage, match="a has no answer to 'Riddle'"):
        ask(a_site(), 1, Riddle())


def test_a_message_between_parties_is_no_question():
    for message in (Note("x"), Count(3)):
        with pytest.raises(RefusedMessage, match="not expected"):
            a_site(kinds=KINDS).on_call(sealed_with(1, encode(message)))


# Seals.


def seal(rings, sender, to, step, message, run="run"):
    return sealed_with(step, rings[sender].seal(to, encode(message), f"{run}\x1f{step}\x1f{sender}\x1f{to}".encode()))


def sealed_site():
    rings = keyrings(PARTIES)
    site = a_site(keyring=rings["a"])
    heard(site, 1)
    heard(site, 2)
    return site, rings


def test_sealed_posts_are_read():
    site, rings = sealed_site()
    site.on_deliver("b", seal(rings, "b", "a", 2, Note("hello")))
    site.on_deliver("c", seal(rings, "c", "a", 2, Note("world")))
    assert heard(site, 3) == "c:world b:hello"


def test_a_changed_byte_breaks_the_seal():
    envelope = seal(keyrings(PARTIES), "b", "a", 2, Note("hello"))
    for at in range(8, len(envelope)):
        site, rings = sealed_site()
        changed = bytearray(seal(rings, "b", "a", 2, Note("hello")))
        changed[at] ^= 0x10
        site.on_deliver("b", bytes(changed))
        with pytest.raises(RefusedMessage, match="seal of a message from b is broken"):
            heard(site, 3)


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda rings: ("c", seal(rings, "b", "a", 2, Note("x"))), id="another sender"),
        pytest.param(lambda rings: ("b", seal(rings, "b", "c", 2, Note("x"))), id="another receiver"),
        pytest.param(lambda rings: ("b", seal(rings, "b", "a", 2, Note("x"), run="run-2")), id="another run"),
        pytest.param(
            lambda rings: ("b", sealed_with(2, opened(seal(rings, "b", "a", 1, Note("x")))[1])), id="another step"
        ),
        pytest.param(lambda rings: ("b", sealed_with(2, encode(Note("x")))), id="not sealed"),
        pytest.param(lambda rings: ("b", sealed_with(2, b"short")), id="cut short"),
        pytest.param(lambda rings: ("b", seal(keyrings(PARTIES), "b", "a", 2, Note("x"))), id="other keys"),
    ],
)
def test_a_seal_holds_in_its_own_place_only(forge):
    site, rings = sealed_site()
    site.on_deliver(*forge(rings))
    with pytest.raises(RefusedMessage):
        heard(site, 3)


def test_a_step_that_was_refused_is_over():
    """Asked again, a site must not go on without the posts that it could not read."""
    site, rings = sealed_site()
    site.on_deliver("c", seal(rings, "c", "a", 2, Note("world")))
    site.on_deliver("b", sealed_with(2, bytes(64)))
    for _ in range(2):
        with pytest.raises(RefusedMessage):
            heard(site, 3)
    assert heard(site, 4) == ""


def test_what_a_site_posts_is_sealed():
    rings = keyrings(PARTIES)
    site = a_site(keyring=rings["a"])
    ask(site, 1, Tell("b", " tells a secret"))
    ((sender, to, envelope),) = site._transport.posts
    step, sealed = opened(envelope)
    assert (sender, to, step) == ("a", "b", 1)
    assert b"secret" not in envelope
    assert rings["b"].open("a", sealed, b"run\x1f1\x1fa\x1fb") == encode(Note("a tells a secret"))


# When posts leave, and how they are found.


def test_a_party_that_fails_leaves_nothing_in_the_outbox():
    site = a_site()
    with pytest.raises(FedstructError, match="the disk is full"):
        ask(site, 1, Break("abcd"))
    assert site._transport.posts == []
    assert site.party.take_posts() == []
    assert site.ledger.messages == 0
    assert ask(site, 2, Tell("b", "!")) is not None
    assert [(s, to) for s, to, _ in site._transport.posts] == [("a", "b")]
    assert heard(site, 3) == ""


def test_posts_leave_only_when_the_step_ends():
    site = a_site()
    assert ask(site, 1, Tell("bcd", "!")).left == 0
    assert [(s, to, opened(e)[0]) for s, to, e in site._transport.posts] == [
        ("a", "b", 1),
        ("a", "c", 1),
        ("a", "d", 1),
    ]


def test_posts_to_oneself_are_kept_and_neither_sent_nor_counted():
    site = a_site()
    ask(site, 1, Tell("aba", "!"))
    assert [to for _, to, _ in site._transport.posts] == ["b"]
    frame = site.ledger.frame()
    assert frame.filter(polars.col("kind") == "Note").select("sender", "receiver").rows() == [("a", "b")]
    assert site.ledger.sent(kind=Note).messages == 1
    assert heard(site, 2) == "a:a! a:a!"
    assert heard(site, 3) == ""
    assert site.ledger.frame().filter(polars.col("kind") == "Note").height == 1


def test_posts_are_read_in_the_step_after_and_in_no_other():
    site = a_site()
    ask(site, 1, Tell("a", "!"))
    post(site, "b", 1, Note("hello"))
    assert heard(site, 2) == "a:a! b:hello"
    assert heard(site, 3) == ""

    site = a_site()
    ask(site, 1, Tell("a", "!"))
    post(site, "b", 1, Note("hello"))
    assert heard(site, 4) == ""
    assert not site._kept, "what nobody can read any more is forgotten"
    assert heard(site, 5) == ""


@given(st.permutations(["b", "c", "d"]))
def test_posts_are_found_in_federation_order_whatever_the_order_of_delivery(order):
    site = a_site()
    ask(site, 1, Tell("a", "!"))
    for sender in order:
        post(site, sender, 1, Note("hello"))
    assert heard(site, 2) == "c:hello a:a! d:hello b:hello"


def test_received_posts_stand_in_the_ledger_as_they_were_sent():
    parties = [writer(name) for name in PARTIES]
    federation = LocalFederation(parties, ONE_PEER_KIND, run="run", separate=True)
    federation.ask(Tell("abcd", "!"))
    answers = federation.ask(Tell("", ""))
    assert {name: answer.notes for name, answer in answers.items()} == dict.fromkeys(PARTIES, "c:c! a:a! d:d! b:b!")
    notes = federation.books.frame().filter(polars.col("kind") == "Note")
    sent, received = (notes.filter(polars.col("entry") == entry).drop("entry") for entry in ("sent", "received"))
    assert sent.height == len(PARTIES) * (len(PARTIES) - 1)
    assert (sent["sender"] != sent["receiver"]).all()
    assert sent.sort(sent.columns).equals(received.sort(received.columns))
    assert set(sent["bytes"]) == {len(encode(Note("a!")))}


def test_no_party_is_called_as_the_coordinator_is():
    """Its messages could not be told from the coordinator's in any ledger."""
    names = ("a", COORDINATOR)
    with pytest.raises(FedstructError, match=COORDINATOR):
        LocalFederation([writer(name, names) for name in names], KINDS, run="run")


# The coordinator.


class Office:
    """A transport that calls sites in memory, hands the answers back in any order, and may change them."""

    def __init__(self, parties, kinds=KINDS, change=lambda name, answer: answer):
        self.sites = {p.own.name: Site(p, kinds, self, Ledger("run", p.own.name)) for p in parties}
        self.change = change

    def call(self, envelopes):
        names = sorted(envelopes, reverse=True)
        return {name: self.change(name, self.sites[name].on_call(envelopes[name])) for name in names}

    def deliver(self, sender, to, envelope):
        self.sites[to].on_deliver(sender, envelope)


def coordinator(worths, change=lambda name, answer: answer):
    """Parties that multiply by what they are worth, in this order."""
    parties = [writer(name, tuple(worths), worth=worth) for name, worth in worths.items()]
    return Coordinator(tuple(worths), KINDS, Office(parties, change=change), Ledger("run", COORDINATOR))


def question(rows, width=2):
    return Ask(np.arange(1.0, rows * width + 1).reshape(rows, width), np.arange(rows), np.array([1.0, 10.0]))


def test_answers_come_in_federation_order():
    federation = coordinator({"c": 1, "a": 2, "d": 3, "b": 4})
    answers = federation.ask(question(2))
    assert [(name, answer.number) for name, answer in answers.items()] == [("c", 1), ("a", 2), ("d", 3), ("b", 4)]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda answer: answer[:-1], id="cut short"),
        pytest.param(lambda answer: answer + b"\0", id="too long"),
        pytest.param(lambda answer: b"", id="nothing"),
        pytest.param(lambda answer: encode(Done()), id="another kind"),
        pytest.param(lambda answer: answer[:-8] + np.float64("nan").tobytes(), id="NaN"),
    ],
)
def test_an_answer_that_cannot_be_read_names_its_party(damage):
    federation = coordinator(
        {"c": 1, "a": 2, "b": 3}, change=lambda name, answer: damage(answer) if name == "a" else answer
    )
    for ask_or_sum in (federation.ask, federation.sum):
        with pytest.raises(RefusedMessage, match=r"^a answered step \d with what cannot be read"):
            ask_or_sum(question(2))


def test_an_answer_that_breaks_the_limits_names_its_party():
    with pytest.raises(RefusedMessage, match=r"^c answered step 1 .* 2 width where 3 are expected"):
        coordinator({"c": 1, "a": 2}).ask(question(4), Limits(sizes={"width": 3}))


def test_an_answer_with_other_rows_than_the_party_was_asked_for_is_refused():
    more = encode(Share(np.ones((3, 2)), np.ones(3, np.int64), np.ones(2), 1, 1.0))
    federation = coordinator({"c": 1, "a": 2}, change=lambda name, answer: more if name == "a" else answer)
    with pytest.raises(RefusedMessage, match=r"^a answered .* 3 rows where 2 are expected"):
        federation.sum(question(4), {"c": np.array([0]), "a": np.array([1, 2])})


@pytest.mark.parametrize("message", [Note("x"), Done(), Heard("x", 1)])
def test_only_questions_are_asked(message):
    with pytest.raises(FedstructError, match="is not a question of this method"):
        coordinator({"c": 1, "a": 2}).ask(message)


def test_a_question_of_another_method_is_not_asked():
    @dataclass(frozen=True, eq=False)
    class Foreign(Message):
        sources = Source.NOTHING
        tells = "nothing"
        reply = Done

    with pytest.raises(FedstructError, match="'Foreign' is not a question of this method"):
        coordinator({"c": 1}).ask(Foreign())


WORTHS = st.lists(st.integers(-9, 9), min_size=1, max_size=4)


@settings(max_examples=60)
@given(WORTHS, st.integers(0, 6), st.integers(0, 3), st.data())
def test_sums_by_row_equal_the_dense_sum(worths, rows, width, data):
    names = PARTIES[: len(worths)]
    federation = coordinator(dict(zip(names, worths, strict=True)))
    of = {n: np.array(sorted(data.draw(st.sets(st.integers(0, rows - 1)) if rows else st.just(set())))) for n in names}
    of = {n: at.astype(np.int64) for n, at in of.items()}
    asked = question(rows, width)
    total = federation.sum(asked, of)

    table, marks = np.zeros((rows, width)), np.zeros(rows, np.int64)
    for name, worth in zip(names, worths, strict=True):
        here = np.isin(np.arange(rows), of[name])
        table += worth * np.where(here[:, None], asked.table, 0)
        marks += worth * np.where(here, asked.marks, 0)
    assert type(total) is Share
    assert np.array_equal(total.table, table)
    assert np.array_equal(total.marks, marks)
    assert np.array_equal(total.whole, sum(worths) * asked.whole)
    assert (total.number, total.amount) == (sum(worths), sum(worths))


def test_each_party_sees_its_own_rows_and_the_ledger_their_size():
    seen = {}

    class Watcher(Writer):
        @answers(Ask)
        def multiply(self, asked):
            seen[self.own.name] = asked.table.tolist()
            return super().multiply(asked)

    parties = [Watcher(own_graph(name, tuple({"c", "a"} - {name})), ("c", "a")) for name in ("c", "a")]
    federation = Coordinator(("c", "a"), KINDS, Office(parties), Ledger("run", COORDINATOR))
    asked, rows = question(4), {"c": np.array([2]), "a": np.array([0, 3])}
    federation.sum(asked, rows)
    assert seen == {"c": [[5, 6]], "a": [[1, 2], [7, 8]]}
    sent = federation.ledger.frame().filter(polars.col("entry") == "sent")
    parts = [replace(asked, table=asked.table[at], marks=asked.marks[at]) for at in rows.values()]
    assert sent.select("receiver", "rows", "bytes").rows() == [
        (name, len(rows[name]), len(encode(part))) for name, part in zip(rows, parts, strict=True)
    ]


def test_sums_run_in_federation_order():
    """Floating-point sums depend on their order: 1e16 + 1 loses the one."""
    one, whole = Ask(np.ones((2, 1)), np.zeros(2, np.int64), np.ones(1)), {"rows": np.arange(2)}
    for worths, expected in (
        ({"c": 1e16, "a": 1.0, "b": -1e16}, 0.0),
        ({"b": 1e16, "c": -1e16, "a": 1.0}, 1.0),
        ({"a": 1.0, "b": 1e16, "c": -1e16}, 0.0),
    ):
        federation = coordinator(worths)
        for total in (federation.sum(one), federation.sum(one, dict.fromkeys(worths, whole["rows"]))):
            assert total.table.tolist() == [[expected]] * 2
            assert total.whole.tolist() == [expected]
            assert total.amount == expected
