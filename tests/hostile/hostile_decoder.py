"""A hostile decoder: one that is tried with hostile bytes, its samples, and how it may refuse."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from tenure.errors import TenureError

Decode: TypeAlias = Callable[[bytes], object]


class HostileDecoder(NamedTuple):
    """One decoder."""

    of: str
    """The module whose decoding this is, as it stands in `src/tenure/`."""
    decode: Decode
    samples: tuple[bytes, ...]
    refusals: tuple[type[Exception], ...] = (TenureError,)
