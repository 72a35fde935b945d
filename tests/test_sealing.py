"""Sealed posts: only the peer that is meant reads them, and only as they were sent."""

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from fedstruct.errors import FedstructError, RefusedMessage
from fedstruct.federation.sealing import NONCE, Keyring, keyrings

RINGS = keyrings(("a", "b", "c"))
CONTEXT = b"run\x1f1\x1fa\x1fb"
TAG = 16


@settings(max_examples=50)
@given(st.binary(max_size=300), st.binary(max_size=40))
def test_the_peer_reads_what_was_sealed_for_it(frame, context):
    sealed = RINGS["a"].seal("b", frame, context)
    assert RINGS["b"].open("a", sealed, context) == frame
    assert len(sealed) == NONCE + len(frame) + TAG


def test_a_seal_hides_the_frame_and_never_repeats():
    frame = b"the neighbours of node 7 are 3 and 12"
    seals = {RINGS["a"].seal("b", frame, CONTEXT) for _ in range(50)}
    assert len(seals) == 50
    assert len({sealed[:NONCE] for sealed in seals}) == 50
    assert not any(frame[i : i + 6] in sealed for sealed in seals for i in range(len(frame) - 5))


def test_any_changed_byte_breaks_the_seal():
    sealed = RINGS["a"].seal("b", b"hello", CONTEXT)
    for at in range(len(sealed)):
        for change in (1, 0x80):
            other = sealed[:at] + bytes([sealed[at] ^ change]) + sealed[at + 1 :]
            with pytest.raises(RefusedMessage, match="seal of a message from a is broken"):
                RINGS["b"].open("a", other, CONTEXT)


def test_a_seal_cut_short_or_grown_is_refused():
    sealed = RINGS["a"].seal("b", b"hello", CONTEXT)
    for end in range(len(sealed)):
        with pytest.raises(RefusedMessage):
            RINGS["b"].open("a", sealed[:end], CONTEXT)
    with pytest.raises(RefusedMessage):
        RINGS["b"].open("a", sealed + b"\0", CONTEXT)


@pytest.mark.parametrize("context", [b"", CONTEXT[:-1], CONTEXT + b"x", CONTEXT.replace(b"1", b"2")])
def test_a_seal_opens_in_its_own_context_only(context):
    sealed = RINGS["a"].seal("b", b"hello", CONTEXT)
    with pytest.raises(RefusedMessage, match="broken"):
        RINGS["b"].open("a", sealed, context)


def test_a_seal_names_its_sender_and_its_receiver():
    sealed = RINGS["a"].seal("b", b"hello", CONTEXT)
    for reader, sender in (("b", "c"), ("c", "a"), ("c", "b"), ("a", "b")):
        with pytest.raises(RefusedMessage, match=f"from {sender} is broken"):
            RINGS[reader].open(sender, sealed, CONTEXT)


def test_the_two_directions_have_keys_of_their_own():
    sealed = RINGS["b"].seal("a", b"hello", CONTEXT)
    assert RINGS["a"].open("b", sealed, CONTEXT) == b"hello"
    with pytest.raises(RefusedMessage):
        RINGS["b"].open("a", sealed, CONTEXT)


def test_without_a_peers_key_nothing_is_sealed_or_opened():
    with pytest.raises(FedstructError, match="a has no key of stranger"):
        RINGS["a"].seal("stranger", b"hello", CONTEXT)
    with pytest.raises(FedstructError, match="a has no key of stranger"):
        RINGS["a"].open("stranger", bytes(64), CONTEXT)


def test_another_private_key_under_the_same_name_does_not_pass():
    names = ("a", "b")
    private = {name: X25519PrivateKey.generate() for name in names}
    public = {name: key.public_key() for name, key in private.items()}
    b = Keyring("b", private["b"], public)
    impostor = Keyring("a", X25519PrivateKey.generate(), public)
    assert b.open("a", Keyring("a", private["a"], public).seal("b", b"hello", CONTEXT), CONTEXT) == b"hello"
    with pytest.raises(RefusedMessage, match="broken"):
        b.open("a", impostor.seal("b", b"hello", CONTEXT), CONTEXT)


def test_each_federation_gets_fresh_keys():
    other = keyrings(("a", "b"))
    with pytest.raises(RefusedMessage, match="broken"):
        other["b"].open("a", RINGS["a"].seal("b", b"hello", CONTEXT), CONTEXT)
