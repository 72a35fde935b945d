"""Messages as bytes: what goes in comes out; what does not fit is refused, one way, before memory is spent on it."""

import struct
import tracemalloc
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedstruct.errors import RefusedMessage
from fedstruct.federation.arrays import CODES
from fedstruct.federation.codec import MAGIC, Limits, decode, encode, size
from fedstruct.federation.message import Message, Source, array
from fedstruct.methods import FedStruct
from fedstruct.methods.evaluation import Counts
from fedstruct.methods.exchange import Blocks, Sizes
from fedstruct.methods.fedstruct import Columns, Evaluate, Gradient, Weights
from fedstruct.methods.opening import Announcement

NODES, OWN = 50, 9
KNOWN = Limits(sizes={"nodes": NODES, "own": OWN})
MEGABYTE = 1 << 20


@dataclass(frozen=True, eq=False)
class Letter(Message):
    sources = Source.NOTHING
    tells = "something of every type"
    number: int
    share: float
    text: str
    again: str
    table: np.ndarray = array("f", "rows", "width", by_row=True)
    places: np.ndarray = array("i4", "rows", below="nodes", by_row=True)
    counts: np.ndarray = array("i8", "width")


@dataclass(frozen=True, eq=False)
class Empty(Message):
    sources = Source.NOTHING
    tells = "nothing"


@dataclass(frozen=True, eq=False)
class Numbers(Message):
    sources = Source.NOTHING
    tells = "two arrays of one length"
    some: np.ndarray = array("f8", "length")
    others: np.ndarray = array("f8", "length")


@dataclass(frozen=True, eq=False)
class Cube(Message):
    sources = Source.NOTHING
    tells = "an array of rank three"
    cube: np.ndarray = array("i8", "length", "width", "depth")


TOYS = frozenset({Letter, Empty, Numbers, Cube})
KINDS = sorted(FedStruct().sends | TOYS, key=lambda kind: kind.__name__)

PLAIN = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "str": st.text(max_size=12),
}


def type_name(f):
    """A field's type, declared as itself or, with postponed annotations, as its name."""
    return getattr(f.type, "__name__", f.type)


def contents(dtype, bound):
    if dtype.kind == "f":
        return st.floats(allow_nan=False, allow_infinity=False, width=8 * dtype.itemsize)
    if bound is not None:
        return st.integers(0, bound - 1)
    return st.integers(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


COUNT = st.integers(0, 2**31 - 1)


@st.composite
def blocks(draw):
    rows = sorted(draw(st.sets(st.integers(0, OWN - 1), max_size=5)))
    lengths = [draw(st.integers(1, 4)) for _ in rows]
    values = st.floats(min_value=0, exclude_min=True, allow_infinity=False, allow_nan=False)
    return Blocks(
        rows_of=np.array(rows, np.int32),
        lengths=np.array(lengths, np.int32),
        columns=np.array(
            [c for n in lengths for c in sorted(draw(st.sets(st.integers(0, NODES - 1), min_size=n, max_size=n)))],
            np.int32,
        ),
        values=draw(arrays(np.float64, sum(lengths), elements=values)),
    )


@st.composite
def any_message(draw, kinds=tuple(KINDS)):
    """A message of any of these kinds that may be decoded."""
    kind = draw(st.sampled_from(kinds))
    if kind is Blocks:
        return draw(blocks())
    if kind is Announcement:
        nodes = draw(COUNT)
        return Announcement(nodes, draw(st.integers(0, nodes)), draw(COUNT), draw(COUNT))
    if kind is Sizes:
        return Sizes(np.array(draw(st.lists(st.integers(0, 10**6), max_size=4)), np.int64))
    specs, dims, values = kind.specs(), {}, {}
    for f in fields(kind):
        if f.name in specs:
            spec = specs[f.name]
            dtype = draw(st.sampled_from(spec.dtypes))
            shape = tuple(dims.setdefault(d, draw(st.integers(0, 4))) for d in spec.dims)
            bound = KNOWN.sizes[spec.below] if spec.below else None
            values[f.name] = draw(arrays(dtype, shape, elements=contents(dtype, bound)))
        else:
            values[f.name] = draw(PLAIN[type_name(f)])
    return kind(**values)


def assert_same(left, right):
    assert type(left) is type(right)
    for f in fields(left):
        a, b = getattr(left, f.name), getattr(right, f.name)
        if isinstance(a, np.ndarray):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert a.tobytes() == b.tobytes()
        else:
            assert type(a) is type(b)
            assert a == b


def example(kind):
    """One valid message of a kind, with something in every array."""
    specs, values = kind.specs(), {}
    for f in fields(kind):
        if f.name in specs:
            spec = specs[f.name]
            values[f.name] = np.ones((2,) * len(spec.dims), spec.dtypes[-1])
        else:
            values[f.name] = {"int": 7, "float": 0.5, "str": "grün"}[type_name(f)]
    if kind is Blocks:
        values["rows_of"] = np.array([1, 2], np.int32)
    return kind(**values)


EXAMPLES = [pytest.param(example(kind), id=kind.__name__) for kind in KINDS]


def refused(frame, kinds=KINDS, limits=KNOWN, match=None):
    with pytest.raises(RefusedMessage, match=match):
        decode(frame, kinds, limits)


def header(kind, *rest):
    return b"".join([MAGIC, struct.pack("<B", len(kind)), kind.encode(), *rest])


def array_header(dtype, *shape):
    return struct.pack(f"<BB{len(shape)}Q", CODES["plain", dtype], len(shape), *shape)


# What goes in comes out.


@settings(max_examples=300)
@given(any_message())
def test_a_message_survives_its_frame(message):
    frame = encode(message)
    read = decode(frame, KINDS, KNOWN)
    assert_same(read, message)
    assert encode(read) == frame


@settings(max_examples=200)
@given(any_message())
def test_size_is_the_length_of_the_frame(message):
    assert size(message) == len(encode(message))


@settings(max_examples=200)
@given(any_message(kinds=(Letter, Weights, Gradient, Evaluate)), st.data())
def test_size_by_rows_is_the_length_of_each_part(message, data):
    names = message.by_row()
    held = len(getattr(message, names[0]))
    index = st.lists(st.integers(0, held - 1), max_size=6) if held else st.just([])
    parts = data.draw(st.lists(index, min_size=1, max_size=4))
    lengths = [
        len(encode(replace(message, **{n: getattr(message, n)[np.array(part, np.int64)] for n in names})))
        for part in parts
    ]
    assert size(message, np.array([len(part) for part in parts])).tolist() == lengths


def test_arrays_in_any_memory_order_arrive_the_same():
    table = np.arange(12.0).reshape(3, 4)
    for given_table in (np.asfortranarray(table), table.astype(">f8"), np.repeat(table, 2, axis=1)[:, ::2]):
        frame = encode(Letter(1, 2.0, "", "", given_table, np.zeros(3, np.int32), np.zeros(4, np.int64)))
        read = decode(frame, [Letter], KNOWN)
        assert np.array_equal(read.table, table)
        assert read.table.dtype == np.dtype("<f8")


def test_what_is_decoded_cannot_be_written_to():
    read = decode(encode(example(Numbers)), [Numbers], KNOWN)
    with pytest.raises(ValueError, match="read-only"):
        read.some[0] = 3.0


def test_encoding_an_array_of_the_wrong_type_is_the_programmers_error():
    for wrong in (np.zeros(2, np.float32), np.zeros((2, 1)), np.zeros(2, bool)):
        with pytest.raises(TypeError, match=r"Numbers\.some"):
            encode(Numbers(wrong, np.zeros(2)))


# What does not fit is refused, and never with another exception.


@pytest.mark.parametrize("message", EXAMPLES)
def test_a_message_cut_short_anywhere_is_refused(message):
    frame = encode(message)
    assert_same(decode(frame, KINDS, KNOWN), message)
    for end in range(len(frame)):
        refused(frame[:end])


@settings(max_examples=150)
@given(any_message(), st.data())
def test_any_message_cut_short_is_refused(message, data):
    frame = encode(message)
    refused(frame[: data.draw(st.integers(0, len(frame) - 1))])


@pytest.mark.parametrize("message", EXAMPLES)
def test_bytes_too_many_are_refused(message):
    for more in (b"\0", b"FS1", encode(message)):
        refused(encode(message) + more, match="too many")


def reads_or_refuses(frame, limits, wire="full"):
    try:
        read = decode(frame, KINDS, limits, wire)
    except RefusedMessage:
        return
    assert encode(read, wire) == frame
    assert read.complaint() is None
    for f in fields(read):
        value = getattr(read, f.name)
        if isinstance(value, np.ndarray):
            assert np.isfinite(value).all()
            if bound := read.specs()[f.name].below:
                assert value.size == 0 or (value.min() >= 0 and value.max() < limits.sizes[bound])
        elif isinstance(value, float):
            assert np.isfinite(value)


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(raw):
    reads_or_refuses(raw, KNOWN)


@settings(max_examples=500)
@given(st.sampled_from(KINDS), st.binary(max_size=120))
def test_random_bytes_behind_a_good_name_are_refused(kind, raw):
    reads_or_refuses(header(kind.__name__, raw), Limits())
    reads_or_refuses(header(kind.__name__, raw), KNOWN)


@settings(max_examples=800)
@given(any_message(), st.sampled_from(["full", "half"]), st.data())
def test_a_changed_byte_gives_another_valid_message_or_none(message, wire, data):
    frame = bytearray(encode(message, wire))
    frame[data.draw(st.integers(0, len(frame) - 1))] ^= data.draw(st.integers(1, 255))
    reads_or_refuses(bytes(frame), data.draw(st.sampled_from([KNOWN, Limits()])), wire)


@pytest.mark.parametrize("wire", ["full", "half"])
@pytest.mark.parametrize("message", EXAMPLES)
def test_every_change_of_a_single_byte_is_read_or_refused(message, wire):
    frame = encode(message, wire)
    for at in range(len(frame)):
        for change in (0x01, 0x80, 0xFF):
            reads_or_refuses(frame[:at] + bytes([frame[at] ^ change]) + frame[at + 1 :], KNOWN, wire)


def test_a_message_of_another_kind_is_refused():
    refused(encode(example(Empty)), [Numbers], match="kind 'Empty' is not expected")
    refused(encode(example(Empty)), [], match="not expected")
    refused(header("Nothing"), match="kind 'Nothing' is not expected")
    refused(b"FS2" + encode(example(Empty))[3:], match="does not start")


def test_an_oversized_message_is_refused():
    frame = encode(example(Numbers))
    assert_same(decode(frame, [Numbers], Limits(bytes=len(frame))), example(Numbers))
    refused(frame, limits=Limits(bytes=len(frame) - 1), match="exceeds the limit")


def test_more_of_a_dimension_than_allowed_is_refused():
    frame = encode(example(Numbers))
    assert_same(decode(frame, [Numbers], Limits(most={"length": 2})), example(Numbers))
    refused(frame, limits=Limits(most={"length": 1}), match="at most 1")


def test_dimensions_that_the_receiver_knows_must_be_so():
    frame = encode(example(Numbers))
    assert_same(decode(frame, [Numbers], Limits(sizes={"length": 2})), example(Numbers))
    for known in (0, 1, 3):
        refused(frame, limits=Limits(sizes={"length": known}), match=f"2 length where {known} are expected")


def test_dimensions_of_one_name_must_agree_within_a_message():
    refused(encode(Numbers(np.zeros(2), np.zeros(3))), match=r"Numbers\.others has 3 length where 2")
    square = Counts(np.zeros((4, 2, 3), np.int64), np.zeros((4, 2, 5), np.int64))
    refused(encode(square), match="3 classes where 2")


@pytest.mark.parametrize("shape", [(2**60,), (2**63,), (2**64 - 1,), (2**32,), (3,)])
def test_a_header_that_claims_more_than_there_is_is_refused(shape):
    refused(header("Numbers", array_header("<f8", *shape), bytes(16)), match="ends before")


@pytest.mark.parametrize(
    "shape",
    [(2**60, 2**60, 2**60), (2**32, 2**32, 1), (2**60, 0, 1), (2**63, 0, 2), (0, 2**64 - 1, 2**64 - 1), (2**32,) * 3],
)
def test_a_header_whose_dimensions_overflow_is_refused(shape):
    refused(header("Cube", array_header("<i8", *shape), bytes(16)))
    reads_or_refuses(header("Cube", array_header("<i8", *shape)), Limits())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1, 4])
def test_nan_and_infinity_are_refused(bad, place):
    for dtype in (np.float32, np.float64):
        table = np.zeros((5, 1), dtype)
        table[place] = bad
        letter = Letter(1, 1.0, "", "", table, np.zeros(5, np.int32), np.zeros(1, np.int64))
        refused(encode(letter), match=r"Letter\.table holds NaN or infinity")
    refused(encode(replace(example(Letter), share=bad)), match=r"Letter\.share is not a finite number")
    refused(encode(replace(example(Gradient), loss=bad)), match=r"Gradient\.loss is not a finite number")


@pytest.mark.parametrize("bad", [-1, -(2**31), NODES, 2**31 - 1])
def test_indices_out_of_range_are_refused(bad):
    for at in range(3):
        columns = np.full(3, NODES - 1, np.int32)
        assert_same(decode(encode(Columns(columns)), [Columns], KNOWN), Columns(columns))
        columns[at] = bad
        refused(encode(Columns(columns)), match=f"names nodes outside 0 to {NODES - 1}")


def test_no_index_is_in_range_where_there_are_no_nodes():
    refused(encode(Columns(np.zeros(1, np.int32))), limits=Limits(sizes={"nodes": 0}))
    nobody = Columns(np.zeros(0, np.int32))
    assert_same(decode(encode(nobody), [Columns], Limits(sizes={"nodes": 0})), nobody)


def test_an_index_before_its_bound_is_known_is_refused():
    refused(encode(Columns(np.zeros(1, np.int32))), limits=Limits(), match="before the number of nodes was known")


def test_another_rank_is_refused():
    for shape in ((), (1, 2), (2, 1, 1)):
        refused(header("Numbers", array_header("<f8", *shape), bytes(32)), match="not of rank 1")
    refused(header("Numbers", struct.pack("<BB", CODES["plain", "<f8"], 255), bytes(32)), match="not of rank 1")


def test_another_type_of_entries_is_refused():
    for dtype in ("<f4", "<i4", "<i8"):
        refused(header("Numbers", array_header(dtype, 2), bytes(16)), match=r"Numbers\.some is not of type f8")
    for code in (0, 5, 255):
        refused(header("Numbers", struct.pack("<BBQ", code, 1, 2), bytes(16)), match="not of type")


def test_text_that_is_not_utf8_is_refused():
    frame = encode(replace(example(Letter), text="ab"))
    for bad in (b"\xff\xfe", b"\xc3\x28", b"\xed\xa0"):
        refused(frame.replace(b"ab", bad), match=r"Letter\.text is not text")


def test_text_that_claims_more_than_there_is_is_refused():
    frame = encode(replace(example(Letter), text="", again="ab"))
    refused(frame.replace(b"\2\0\0\0ab", b"\xff\xff\xff\xffab"), match="cut short")


# What only the fields together can tell.


def some_blocks(**changed):
    return replace(
        Blocks(
            rows_of=np.array([1, 4], np.int32),
            lengths=np.array([2, 1], np.int32),
            columns=np.array([0, 7, 3], np.int32),
            values=np.array([0.5, 0.25, 1.0]),
        ),
        **changed,
    )


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"lengths": np.array([3, 0], np.int32), "columns": np.array([0, 3, 7], np.int32)}, "row has no entry"),
        ({"values": np.array([0.5, 0.0, 1.0])}, "not positive"),
        ({"values": np.array([0.5, 1.0, -1e-300])}, "not positive"),
    ],
)
def test_blocks_that_do_not_fit_together_are_refused(changed, complaint):
    refused(encode(some_blocks(**changed)), match=complaint)


def test_blocks_with_more_entries_than_a_party_may_send_are_refused():
    known = Limits(sizes=KNOWN.sizes, most={"rows": 2, "entries": 3})
    assert_same(decode(encode(some_blocks()), [Blocks], known), some_blocks())
    refused(encode(some_blocks()), limits=replace(known, most={"rows": 1}), match="2 rows; at most 1")
    refused(encode(some_blocks()), limits=replace(known, most={"entries": 2}), match="3 entries; at most 2")


@pytest.mark.parametrize("field", ["nodes", "labelled", "features", "classes"])
@pytest.mark.parametrize("count", [-1, -(2**63), 2**62])
def test_counts_that_nobody_can_have_are_refused(field, count):
    """Arrays are made of these lengths: below nothing, or beyond what a column's number can name, there is none."""
    known = Announcement(nodes=10, labelled=3, features=7, classes=2)
    assert_same(decode(encode(known), [Announcement], KNOWN), known)
    refused(encode(replace(known, **{field: count})), match="Announcement")


@pytest.mark.parametrize("sizes", [[3, -1], [2**62, 2**62], [2**62, 1]])
def test_sizes_that_no_federation_can_have_are_refused(sizes):
    assert_same(decode(encode(Sizes(np.array([3, 1]))), [Sizes], KNOWN), Sizes(np.array([3, 1])))
    refused(encode(Sizes(np.array(sizes))), match="Sizes")


# Nothing is allocated for what is refused, and nothing is copied of what is not.


def peak(frame, kinds, limits, match):
    """The most memory that refusing a frame takes, beyond the frame itself."""
    tracemalloc.start()
    try:
        refused(frame, kinds, limits, match)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


LARGE = 5_000_000


def test_a_large_array_with_nan_at_its_end_is_refused_without_a_copy():
    for bad in (np.nan, np.inf):
        values = np.ones(LARGE)
        values[-1] = bad
        frame = encode(Numbers(values, np.ones(1)))
        assert len(frame) > 38 * MEGABYTE
        assert peak(frame, [Numbers], Limits(), "NaN or infinity") < MEGABYTE


def test_a_large_array_with_an_index_out_of_range_is_refused_without_a_copy():
    for bad in (-1, NODES):
        columns = np.zeros(2 * LARGE, np.int32)
        columns[-1] = bad
        assert peak(encode(Columns(columns)), [Columns], KNOWN, "outside 0 to") < MEGABYTE


@pytest.mark.parametrize("entries", [2**40, 2**60, 2**63])
def test_a_claim_alone_takes_no_memory(entries):
    frame = header("Numbers", array_header("<f8", entries), bytes(64))
    assert peak(frame, [Numbers], Limits(), "ends before") < MEGABYTE
    columns = header("Columns", array_header("<i4", entries), bytes(64))
    assert peak(columns, [Columns], KNOWN, "ends before") < MEGABYTE


def test_a_large_message_of_the_wrong_kind_size_type_or_length_takes_no_memory():
    frame = encode(Numbers(np.ones(LARGE), np.ones(LARGE)))
    assert peak(frame, [Columns], Limits(), "not expected") < MEGABYTE
    assert peak(frame, [Numbers], Limits(bytes=MEGABYTE), "exceeds the limit") < MEGABYTE
    assert peak(frame, [Numbers], Limits(sizes={"length": 3}), "are expected") < MEGABYTE
    assert peak(frame, [Numbers], Limits(most={"length": 3}), "at most 3") < MEGABYTE
    assert peak(frame[:-1], [Numbers], Limits(), "ends before") < MEGABYTE
    assert peak(frame + b"\0", [Numbers], Limits(), "too many") < MEGABYTE
    floats = header("Columns", array_header("<f8", LARGE), frame[-8 * LARGE :])
    assert peak(floats, [Columns], KNOWN, "not of type") < MEGABYTE


def test_a_valid_message_is_a_view_of_its_frame():
    frame = encode(Numbers(np.ones(LARGE), np.ones(LARGE)))
    tracemalloc.start()
    try:
        read = decode(frame, [Numbers], Limits())
        assert tracemalloc.get_traced_memory()[1] < MEGABYTE
    finally:
        tracemalloc.stop()
    held = np.frombuffer(frame, np.uint8)
    for values in (read.some, read.others):
        assert np.shares_memory(values, held)
        assert not values.flags.owndata


@pytest.mark.parametrize("kind", [Blocks, Sizes, Gradient, Counts, Letter])
def test_every_plain_array_of_a_message_is_a_view_of_its_frame(kind):
    frame = encode(example(kind))
    read = decode(frame, KINDS, KNOWN)
    held = np.frombuffer(frame, np.uint8)
    plain = [name for name, spec in kind.specs().items() if spec.form("full") == "plain"]
    assert plain
    assert all(np.shares_memory(getattr(read, name), held) for name in plain)


def test_an_announcement_is_as_long_as_its_numbers():
    assert size(Announcement(1, 2, 3, 4)) == len(MAGIC) + 1 + len("Announcement") + 4 * 8
