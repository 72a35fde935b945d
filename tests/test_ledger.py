"""The ledger: its sums, its table, and the union of many books."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedstruct.federation.ledger import COLUMNS, Ledger, Traffic, union
from fedstruct.federation.message import Done, Message, Source
from fedstruct.federation.transport import COORDINATOR

SCHEMA = {
    "run": polars.String,
    "step": polars.Int64,
    "sender": polars.String,
    "receiver": polars.String,
    "kind": polars.String,
    "sources": polars.String,
    "tells": polars.String,
    "rows": polars.Int64,
    "bytes": polars.Int64,
    "entry": polars.String,
}


@dataclass(frozen=True, eq=False)
class Walks(Message):
    sources = Source.STRUCTURE | Source.COUNTS
    tells = "some walks"
    peer = True


@pytest.fixture
def book():
    """A question to a, its posts to b and c, one by one and as one entry, and its answer."""
    book = Ledger("run-7", owner="a")
    book.record(1, COORDINATOR, "a", Done, rows=0, size=8)
    book.record(1, "a", "b", Walks, rows=5, size=100)
    book.record(2, "a", ("b", "c"), Walks, rows=np.array([1, 2]), size=np.array([30, 40]), entry="sent")
    book.record(2, "a", COORDINATOR, Done, rows=0, size=9)
    return book


@pytest.fixture
def together():
    """A question to three parties and their answers, as the parties' common book holds them."""
    book = Ledger("run-7", owner="the parties together")
    book.record(3, COORDINATOR, ("a", "b", "c"), Done, rows=4, size=np.array([10, 20, 30]), entry="received")
    book.record(3, ("a", "b", "c"), COORDINATOR, Walks, rows=np.array([1, 2, 3]), size=7, entry="sent")
    return book


def test_what_was_sent_adds_up(book, together):
    assert book.sent() == Traffic(messages=4, bytes=179, rows=8)
    assert (book.messages, book.bytes) == (4, 179)
    assert together.sent() == Traffic(messages=3, bytes=21, rows=6)


def test_what_was_sent_in_some_steps_or_of_one_kind(book):
    assert book.sent(range(1, 2)) == Traffic(messages=1, bytes=100, rows=5)
    assert book.sent(range(2, 3)) == Traffic(messages=3, bytes=79, rows=3)
    assert book.sent(range(3, 9)) == Traffic(messages=0, bytes=0, rows=0)
    assert book.sent(kind=Walks) == Traffic(messages=3, bytes=170, rows=8)
    assert book.sent(range(2, 3), Walks) == Traffic(messages=2, bytes=70, rows=3)
    assert book.sent(kind=Message) == Traffic(messages=0, bytes=0, rows=0)


def test_the_owner_of_a_book_is_the_sender_of_what_it_sent(book):
    assert book.frame()["entry"].to_list() == ["received", "sent", "sent", "sent", "sent"]


def test_the_table_has_a_row_per_message(book, together):
    frame = book.frame()
    assert tuple(frame.columns) == COLUMNS
    assert frame.rows() == [
        ("run-7", 1, "coordinator", "a", "Done", "nothing", Done.tells, 0, 8, "received"),
        ("run-7", 1, "a", "b", "Walks", "counts, structure", "some walks", 5, 100, "sent"),
        ("run-7", 2, "a", "b", "Walks", "counts, structure", "some walks", 1, 30, "sent"),
        ("run-7", 2, "a", "c", "Walks", "counts, structure", "some walks", 2, 40, "sent"),
        ("run-7", 2, "a", "coordinator", "Done", "nothing", Done.tells, 0, 9, "sent"),
    ]
    columns = ("sender", "receiver", "kind", "rows", "bytes", "entry")
    assert together.frame().select(columns).rows() == [
        ("coordinator", "a", "Done", 4, 10, "received"),
        ("coordinator", "b", "Done", 4, 20, "received"),
        ("coordinator", "c", "Done", 4, 30, "received"),
        ("a", "coordinator", "Walks", 1, 7, "sent"),
        ("b", "coordinator", "Walks", 2, 7, "sent"),
        ("c", "coordinator", "Walks", 3, 7, "sent"),
    ]


def test_the_columns_have_their_types(book, together):
    for some in (book, together, union("run-7", [book, together]), Ledger("run-7", owner="a")):
        assert dict(some.frame().schema) == SCHEMA


def test_the_coded_table_says_the_same(book, together):
    for some in (book, together, union("run-7", [book, together]), Ledger("run-7", owner="a")):
        coded = some.coded()
        assert coded.with_columns(polars.col(polars.Categorical).cast(polars.String)).equals(some.frame())


def test_a_row_of_the_coded_table_takes_tens_of_bytes():
    """Posts of many rounds, as parties that step as one leave them."""
    book, names = Ledger("run-7", owner="the parties together"), [f"party-{i}" for i in range(50)]
    senders, receivers = ([pair[side] for pair in product(names, names)] for side in (0, 1))
    rows = np.arange(2500)
    for step in range(100):
        for entry in ("sent", "received"):
            book.record(step, senders, receivers, Walks, rows, 8 * rows, entry)
    coded = book.coded()
    assert len(coded) == 500_000
    assert coded.estimated_size() / len(coded) <= 60
    assert (coded["sender"][-2], coded["receiver"][-2]) == ("party-49", "party-48")
    assert book.sent() == Traffic(250_000, 800 * int(rows.sum()), 100 * int(rows.sum()))


def test_an_empty_book_is_an_empty_table():
    book = Ledger("run-7", owner="a")
    assert book.sent() == Traffic(messages=0, bytes=0, rows=0)
    assert (book.bytes, book.messages) == (0, 0)
    assert book.frame().shape == (0, len(COLUMNS))
    assert union("run-7", []).frame().shape == (0, len(COLUMNS))


def test_the_union_holds_every_entry_in_the_order_of_steps(book, together):
    early = Ledger("run-7", owner=COORDINATOR)
    early.record(1, COORDINATOR, "a", Done, rows=0, size=8)
    early.record(2, "a", COORDINATOR, Done, rows=0, size=9)
    whole = union("run-7", [together, book, early])
    frame = whole.frame()
    assert frame["step"].to_list() == [1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3]
    held = polars.concat([together.frame(), book.frame(), early.frame()])
    assert frame.sort(COLUMNS).equals(held.sort(COLUMNS))
    assert whole.sent() == Traffic(messages=4 + 3 + 1, bytes=179 + 21 + 8, rows=8 + 6)


def test_the_union_leaves_the_books_as_they_were(book, together):
    before = book.frame()
    whole = union("run-7", [book, together])
    whole.record(9, "a", "b", Walks, rows=1, size=1, entry="sent")
    assert book.frame().equals(before)


def test_a_table_survives_a_parquet_file(book, together, tmp_path):
    for some in (union("run-7", [book, together]), Ledger("run-7", owner="a")):
        frame = some.frame()
        frame.write_parquet(tmp_path / "ledger.parquet")
        read = polars.read_parquet(tmp_path / "ledger.parquet")
        assert read.schema == frame.schema
        assert read.equals(frame)


NAMES = st.sampled_from(["a", "b", "c", COORDINATOR])
COUNTS = st.integers(0, 2**40)


@given(st.lists(st.tuples(st.integers(1, 5), NAMES, NAMES, st.sampled_from([Done, Walks]), COUNTS, COUNTS)))
def test_the_sums_are_those_of_the_table(messages):
    book = Ledger("run", owner="a")
    for step, sender, receiver, kind, rows, size in messages:
        book.record(step, sender, receiver, kind, rows, size)
    sent = book.frame().filter(polars.col("entry") == "sent")
    assert book.sent() == Traffic(len(sent), int(sent["bytes"].sum()), int(sent["rows"].sum()))
    assert sent["sender"].unique().to_list() in ([], ["a"])
    for step in range(1, 6):
        at = sent.filter(polars.col("step") == step)
        assert book.sent(range(step, step + 1)) == Traffic(len(at), int(at["bytes"].sum()), int(at["rows"].sum()))
