"""The ring: where rows and nodes stand on it (Cassandra 5.1).

A row of an ordered table stands at its key; a row of a hashed table stands at the hash of its key,
followed by the key. Tables of both kinds share one ring, because a node carries their sum, and
moves of tokens even out that sum.

A node's token is the end of its own range, which begins, included, at the token before. All
positions at or above the highest token, and all below the lowest, are the own range of the node
with the lowest token: that makes it a ring.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from random import Random

from xxhash import xxh3_64_digest

from tenure.base.ranges import LOWEST, KeyRange
from tenure.protocol.topology.records import Position, Token
from tenure.protocol.topology.tables import RowKind

HASH_BYTES = 8
RANDOM_TOKEN_BYTES = 8


def position(key: bytes, kind: RowKind) -> Position:
    """The position of the row of `key` in a table of `kind`."""
    return key if kind == "ordered" else xxh3_64_digest(key) + key


def random_token(random: Random) -> Token:
    """A random token, for a node that has no load to choose by."""
    return random.randbytes(RANDOM_TOKEN_BYTES - 1) + bytes([random.randrange(1, 256)])


def owner_index(tokens: Sequence[Token], position: Position) -> int:
    """The index of the token in the sorted `tokens` whose node has `position` in its own range."""
    above = (index for index, token in enumerate(tokens) if position < token)
    return next(above, 0)


def pieces(points: Iterable[bytes]) -> list[KeyRange]:
    """The whole space, cut at `points`."""
    starts = sorted({LOWEST, *points})
    return [*(KeyRange(*ends) for ends in pairwise(starts)), KeyRange(starts[-1], None)]
