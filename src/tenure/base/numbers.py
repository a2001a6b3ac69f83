"""Numbers and nonces, as they stand in messages and records."""

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
