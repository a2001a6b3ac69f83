"""Numbers, nonces and short proofs, as they stand in messages and records."""

from typing import Annotated, TypeAlias

import msgspec

Nonce: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
"""Drawn at random; 63 bits, so that every msgpack reader takes it as a signed integer."""
Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
"""A lease number, incarnation, leadership, sequence number or LSN; 0 is before all of them."""
Signed: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""A time of a store in microseconds, or a difference of two."""
JournalId: TypeAlias = Nonce
"""The history to which numbers and LSNs belong; drawn when a journal is created (rule P22)."""
ReceiptBytes: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=64)]
"""How far the journal went, sealed by a leader: a client keeps the latest receipt, and shows it
(P22).
"""
Fingerprint: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=64)]
"""The fingerprint of all that an owner holds, by range and number: see `fingerprints`."""
BootId: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
"""The boot id, which the kernel draws at each start of a machine; a UUID in text."""
