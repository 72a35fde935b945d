"""Sealing: what one party posts to another, nobody between them can read or change.

X25519 keys that the parties pinned among themselves, HKDF-SHA256 for a key per direction, AES-256-GCM for the frames.
The run, step, sender and receiver are bound into each seal, so that a frame cannot be replayed elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fedstruct.errors import FedstructError, RefusedMessage

NONCE = 12


class Keyring:
    """A party's private key and the public keys of its peers.

    >>> keys = {name: X25519PrivateKey.generate() for name in ("a", "b")}
    >>> a, b = (Keyring(name, keys[name], {k: v.public_key() for k, v in keys.items()}) for name in keys)
    >>> b.open("a", a.seal("b", b"hello", b"step 1"), b"step 1")
    b'hello'
    """

    def __init__(self, name: str, private: X25519PrivateKey, public: Mapping[str, X25519PublicKey]) -> None:
        self.name = name
        self._private = private
        self._public = dict(public)
        self._ciphers: dict[tuple[str, str], AESGCM] = {}

    def seal(self, to: str, frame: bytes, context: bytes) -> bytes:
        nonce = os.urandom(NONCE)
        return nonce + self._cipher(self.name, to).encrypt(nonce, frame, context)

    def open(self, sender: str, sealed: bytes, context: bytes) -> bytes:
        if len(sealed) < NONCE:
            raise RefusedMessage(f"a sealed message from {sender} is cut short")
        try:
            return self._cipher(sender, self.name).decrypt(sealed[:NONCE], sealed[NONCE:], context)
        except InvalidTag:
            raise RefusedMessage(f"the seal of a message from {sender} is broken; it was not read") from None

    def _cipher(self, sender: str, receiver: str) -> AESGCM:
        cipher = self._ciphers.get((sender, receiver))
        if cipher is None:
            peer = receiver if sender == self.name else sender
            if peer not in self._public:
                raise FedstructError(f"{self.name} has no key of {peer}; exchange public keys first")
            shared = self._private.exchange(self._public[peer])
            info = b"\x1f".join([b"fedstruct", sender.encode(), receiver.encode()])
            cipher = AESGCM(HKDF(SHA256(), 32, salt=None, info=info).derive(shared))
            self._ciphers[sender, receiver] = cipher
        return cipher


def keyrings(names: tuple[str, ...]) -> dict[str, Keyring]:
    """Fresh keys for parties that are simulated in one place."""
    private = {name: X25519PrivateKey.generate() for name in names}
    public = {name: key.public_key() for name, key in private.items()}
    return {name: Keyring(name, private[name], public) for name in names}
