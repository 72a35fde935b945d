"""Numbers in few bytes: whole ones come back as they were, floating ones within the stated error; damage is refused."""

import struct
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedstruct.errors import RefusedMessage
from fedstruct.federation.arrays import CODES
from fedstruct.federation.codec import MAGIC, Limits, decode, encode, size
from fedstruct.federation.halves import halved, restored
from fedstruct.federation.varints import packed, unpacked
from fedstruct.methods.exchange import Blocks
from fedstruct.methods.training import ModelGradient

LARGEST = 2**31 - 1
KNOWN = Limits(sizes={"nodes": LARGEST, "own": 9})


@st.composite
def rows(draw):
    """Rows of increasing numbers, near each other and far apart."""
    number = st.one_of(st.integers(0, 300), st.integers(0, LARGEST - 1))
    return [sorted(draw(st.sets(number, max_size=8))) for _ in range(draw(st.integers(0, 5)))]


def plainly(numbers):
    """Base 128, the lowest digit first, written out."""
    raw = bytearray()
    for number in numbers:
        while number >= 128:
            raw.append(number % 128 + 128)
            number //= 128
        raw.append(number)
    return bytes(raw)


def flat(lists):
    return np.array([number for each in lists for number in each], np.int32), np.array(
        [len(e) for e in lists], np.int32
    )


@given(rows(), st.binary(max_size=6))
def test_increasing_numbers_are_written_as_gaps_and_read_again(lists, more):
    values, lengths = flat(lists)
    raw = packed(values, lengths, False, "x").tobytes()
    gaps = [b - a - 1 for each in lists for a, b in zip([-1, *each], each, strict=False)]
    assert raw == plainly(gaps)
    read, took = unpacked(memoryview(raw + more), lengths, False, len(values), LARGEST, "x")
    assert took == len(raw)
    np.testing.assert_array_equal(read, values)


@given(st.lists(st.integers(0, LARGEST)), st.binary(max_size=6))
def test_numbers_that_stand_apart_are_written_as_they_are(numbers, more):
    values, whole = np.array(numbers, np.int32), np.array([len(numbers)], np.int32)
    raw = packed(values, whole, True, "x").tobytes()
    assert raw == plainly(numbers)
    read, took = unpacked(memoryview(raw + more), whole, True, len(values), LARGEST + 1, "x")
    assert took == len(raw)
    np.testing.assert_array_equal(read, values)


@pytest.mark.parametrize("wrong", [[3, 3], [3, 2], [-1], [0, -5]])
def test_what_does_not_increase_is_the_senders_error(wrong):
    values = np.array(wrong, np.int32)
    with pytest.raises(TypeError, match="x holds numbers that are negative, or do not increase"):
        packed(values, np.array([len(values)], np.int32), False, "x")


@pytest.mark.parametrize(
    ("raw", "count", "why"),
    [
        (b"", 1, "cut short"),
        (b"\x80", 1, "cut short"),
        (b"\xff\xff\xff\xff", 1, "cut short"),
        (b"\x80\x00", 1, "more bytes than it needs"),
        (b"\x81\x80\x00", 1, "more bytes than it needs"),
        (b"\x80\x80\x80\x80\x80\x01", 1, "more bytes than it needs"),
        (b"\xff" * 12, 1, "more bytes than it needs"),
        (b"\x64", 1, "outside 0 to 99"),
        (b"\x31\x32", 2, "outside 0 to 99"),
        (b"\xff\xff\xff\xff\x7f", 1, "outside 0 to 99"),
        (b"\x00" * 101, 101, "outside 0 to 99"),
    ],
)
def test_damaged_numbers_are_refused(raw, count, why):
    with pytest.raises(RefusedMessage, match=f"x .*{why}"):
        unpacked(memoryview(raw), np.array([count], np.int32), False, count, 100, "x")


@settings(max_examples=300)
@given(st.binary(max_size=40), st.integers(0, 12), st.integers(1, 2**31))
def test_bytes_are_one_list_of_numbers_or_none(raw, count, below):
    whole = np.array([count], np.int32)
    for apart in (False, True):
        try:
            read, took = unpacked(memoryview(raw), whole, apart, count, below, "x")
        except RefusedMessage:
            continue
        assert packed(read, whole, apart, "x").tobytes() == raw[:took]
        assert (read >= 0).all()
        assert (read < below).all()


def numbers(raw, count):
    return struct.pack("<BBQ", CODES["short", "<i4"], 1, count) + bytes(raw)


def forged(rows_of, lengths, columns, entries, values=(0.5, 0.25, 1.0)):
    """A frame of blocks with these bytes for its whole numbers."""
    floats = struct.pack("<BBQ", CODES["plain", "<f8"], 1, len(values)) + np.array(values).tobytes()
    arrays_of = numbers(rows_of, len(rows_of)), numbers(lengths, len(lengths)), numbers(columns, entries)
    return MAGIC + b"\x06Blocks" + b"".join(arrays_of) + floats


def test_blocks_are_gaps_in_their_frame():
    blocks = Blocks(
        np.array([1, 4], np.int32), np.array([2, 1], np.int32), np.array([0, 7, 3], np.int32), np.array([0.5, 0.25, 1])
    )
    assert encode(blocks) == forged([1, 2], [2, 1], [0, 6, 3], 3)
    assert size(blocks) == len(encode(blocks))
    with pytest.raises(TypeError, match=r"Blocks\.columns holds numbers that are negative, or do not increase"):
        encode(replace(blocks, columns=np.array([7, 0, 3], np.int32)))
    with pytest.raises(TypeError, match=r"Blocks\.columns has 3 numbers, but its rows have others"):
        encode(replace(blocks, lengths=np.array([2, 2], np.int32)))
    with pytest.raises(TypeError, match=r"Blocks\.lengths holds numbers that are negative"):
        encode(replace(blocks, lengths=np.array([4, -1], np.int32)))


@pytest.mark.parametrize("lengths", [[3, -3, 3], [4, -1], [2], [4]])
def test_rows_of_other_numbers_are_the_senders_error(lengths):
    with pytest.raises(TypeError, match="x has 3 numbers, but its rows have others"):
        packed(np.array([1, 2, LARGEST], np.int32), np.array(lengths, np.int32), False, "x")


@pytest.mark.parametrize("lengths", [[2, 2], [1, 1], [4, 0], [3], [255, 255, 255, 255, 7, 1]])
def test_rows_that_do_not_hold_all_entries_are_refused(lengths):
    with pytest.raises(
        RefusedMessage, match=r"Blocks\.\w+ .*(do not match|where 2 are expected|limit|too many|before)"
    ):
        decode(forged([1, 2], lengths, [0, 6, 3], 3), [Blocks], KNOWN)


@pytest.mark.parametrize("entries", [10**6, 2**31, 2**40, 2**63])
def test_a_small_frame_does_not_make_a_large_array(entries):
    frame = forged([1, 2], [2, 1], [0, 6, 3], entries)
    tracemalloc.start()
    try:
        with pytest.raises(RefusedMessage):
            decode(frame, [Blocks], KNOWN)
        assert tracemalloc.get_traced_memory()[1] < 1 << 18
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("entries", [10**6, 10**8])
def test_numbers_that_no_rows_bound_are_refused_before_they_take_memory(entries):
    """A number takes a byte at least, wherever the limit is."""
    frame = MAGIC + b"\x06Blocks" + numbers([1, 2], entries)
    tracemalloc.start()
    try:
        with pytest.raises(
            RefusedMessage, match=r"Blocks\.rows_of says it has \d+ entries, but the message ends before"
        ):
            decode(frame, [Blocks], Limits(sizes={"nodes": LARGEST}))
        assert tracemalloc.get_traced_memory()[1] < 1 << 18
    finally:
        tracemalloc.stop()


def test_what_would_take_more_than_the_limit_is_refused_before_it_is_read():
    gradient = ModelGradient(0.0, np.ones(1000))
    frame = encode(gradient, "half")
    assert len(frame) < 3000
    with pytest.raises(RefusedMessage, match="1000 entries, which exceed the limit of 3,000 bytes"):
        decode(frame, [ModelGradient], Limits(bytes=3000), "half")


# Halves.

KINDS = st.sampled_from(["<f4", "<f8"])


@st.composite
def values(draw):
    """Any finite values: huge, denormal and zero, of one size and of all."""
    dtype = np.dtype(draw(KINDS))
    any_value = st.floats(allow_nan=False, allow_infinity=False, width=8 * dtype.itemsize)
    return draw(arrays(dtype, draw(st.integers(0, 12)), elements=any_value))


@settings(max_examples=500)
@given(values())
def test_halves_are_within_the_stated_error(given_values):
    power, bits = halved(given_values, "x")
    read = restored(power, bits, given_values.dtype, "x")
    assert read.dtype == given_values.dtype
    wide = np.longdouble
    error, own = np.abs(read.astype(wide) - given_values.astype(wide)), np.abs(given_values.astype(wide))
    assert (error <= np.maximum(wide(2) ** -11 * own, wide(2) ** -37 * own.max(initial=0))).all()
    np.testing.assert_array_equal(read == 0, given_values == 0)
    np.testing.assert_array_equal(np.signbit(read), np.signbit(given_values))
    again = halved(read, "x")
    assert (again[0], again[1].tolist()) == (power, bits.tolist()), "what was rounded is not rounded further"


@given(arrays(np.float64, 20, elements=st.floats(1, 2)))
def test_halves_are_rounded_as_ieee_has_it(given_values):
    power, bits = halved(given_values, "x")
    np.testing.assert_array_equal(bits.view(np.float16), np.ldexp(given_values, power).astype(np.float16))


@settings(max_examples=300)
@given(KINDS, st.integers(-(2**15), 2**15 - 1), arrays(np.uint16, 3))
def test_any_halves_are_one_array_or_none(kind, power, bits):
    for power_in_range in (power, power // 32):
        try:
            read = restored(power_in_range, bits, np.dtype(kind), "x")
        except RefusedMessage:
            continue
        assert np.isfinite(read).all()
        again = halved(read, "x")
        assert (again[0], again[1].tolist()) == (power_in_range, bits.tolist())


@pytest.mark.parametrize("kind", ["<f4", "<f8"])
@pytest.mark.parametrize("power", [0, 7])
def test_halves_end_below_two_to_the_fifteenth(kind, power):
    """The sender would have taken the next lower power."""
    below, at = (np.array([1.0, value]).astype(np.float16).view(np.uint16) for value in (2**15 - 16, 2**15))
    assert restored(power, below, np.dtype(kind), "x")[1] == (2**15 - 16) / 2**power
    for bits in (at, at | np.uint16(0x8000)):
        with pytest.raises(RefusedMessage, match=f"x has the power {power}, which does not fit its values"):
            restored(power, bits, np.dtype(kind), "x")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_by_sender_and_receiver(bad):
    gradient = ModelGradient(0.0, np.array([1.0, bad, 2.0]))
    with pytest.raises(RefusedMessage, match=r"ModelGradient\.theta holds NaN or infinity"):
        encode(gradient, "half")
    frame = bytearray(encode(replace(gradient, theta=np.ones(3)), "half"))
    frame[-2:] = np.float16(bad).tobytes()
    with pytest.raises(RefusedMessage, match=r"ModelGradient\.theta holds NaN or infinity"):
        decode(bytes(frame), [ModelGradient], Limits(), "half")


@pytest.mark.parametrize(("sent", "agreed"), [("full", "half"), ("half", "full")])
def test_a_frame_in_the_other_form_is_refused(sent, agreed):
    frame = encode(ModelGradient(0.0, np.ones(3)), sent)
    with pytest.raises(RefusedMessage, match=r"ModelGradient\.theta came in \w+ form.*the same option wire"):
        decode(frame, [ModelGradient], Limits(), agreed)


def test_walks_of_any_weight_stay_positive():
    weights = np.array([1e100, 1.0, 1e-100, 5e-324])
    blocks = Blocks(np.array([0], np.int32), np.array([4], np.int32), np.arange(4, dtype=np.int32), weights)
    read = decode(encode(blocks, "half"), [Blocks], KNOWN, "half")
    assert (read.values > 0).all()
    np.testing.assert_array_equal(read.columns, blocks.columns)
