"""Specifications of pools: one set of rules for the configuration file, the API and the command
line.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Annotated, Any, TypeAlias

import msgspec

from tenure.base.keys import KEY_BYTES, LONGEST_KEY_BYTES, Key, PoolKind
from tenure.base.names import shown, wrong_with_name
from tenure.errors import ConfigurationError
from tenure.protocol.lease.leader.events import CreatePool
from tenure.protocol.lease.limits import wrong_with_points

KINDS: tuple[PoolKind, ...] = ("hashed", "ordered")


def pool_spec(name: Any, kind: Any, split_points: Sequence[Key] = ()) -> CreatePool:  # noqa: ANN401 - what is checked may be anything
    """The command that makes such a pool; split points in any order.

    Raises ConfigurationError, naming what is wrong.
    """
    check_name(name)
    if kind not in KINDS:
        raise ConfigurationError(
            f"pool {name!r}: its kind is {kind!r}, and can only be hashed (load spreads by itself)"
            " or ordered (neighbours stay neighbours)"
        )
    if split_points and kind == "hashed":
        raise ConfigurationError(
            f"pool {name!r}: split points are for ordered pools, a hashed one is cut by its owners'"
            " hashes; leave them out, or make the pool ordered"
        )
    return CreatePool(name, kind, _checked(name, split_points))


def check_name(name: Any) -> None:  # noqa: ANN401
    """Raise ConfigurationError unless `name` can be a pool's."""
    if why := wrong_with_name(name):
        raise ConfigurationError(f"{shown(name)} cannot be a pool's name: {why}")


def _checked(name: str, split_points: Sequence[Key]) -> tuple[Key, ...]:
    points = tuple(sorted(split_points))
    if why := wrong_with_points(points):
        raise ConfigurationError(f"pool {name!r}: {why}")
    for point, following in zip_longest(points, points[1:]):
        if point == following:
            raise ConfigurationError(f"pool {name!r}: the split point {point!r} is there twice")
        if not point:
            raise ConfigurationError(
                f"pool {name!r}: a split point of 0 bytes; it has 1 to {KEY_BYTES}"
            )
    return points


WrittenKey: TypeAlias = Annotated[str, msgspec.Meta(max_length=2 * LONGEST_KEY_BYTES)]


class HexKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key that is not text: its bytes in hexadecimal digits."""

    hex: WrittenKey


def key_of(written: str | HexKey) -> Key:
    """The bytes of a key as people write it: text, or `{hex = "..."}`."""
    if isinstance(written, HexKey):
        return from_hex(written.hex)
    try:
        return written.encode()
    except UnicodeEncodeError:
        raise ConfigurationError(
            f"{written!r} is text that cannot be encoded; write such a key in hexadecimal"
        ) from None


def from_hex(digits: str) -> Key:
    """The bytes that hexadecimal `digits` stand for. Raises ConfigurationError for others."""
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise ConfigurationError(
            f"{digits!r} is not hexadecimal: two digits a byte, as in 6e00ff"
        ) from None
