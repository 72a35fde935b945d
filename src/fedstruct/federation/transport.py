"""Transports carry bytes; everything that has a meaning sits above them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

COORDINATOR = "coordinator"
"""The name under which the coordinator stands in every ledger."""


class Transport(Protocol):
    """How bytes get from one site to another."""

    def call(self, envelopes: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Coordinator to parties, all of them at once where the transport can; gives back their answers."""
        ...

    def deliver(self, sender: str, to: str, envelope: bytes) -> None:
        """Party to party: stores, never computes."""
        ...
