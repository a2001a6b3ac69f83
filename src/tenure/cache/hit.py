"""Hits: what readers do, from any thread, without a lock, without waiting and without asking
anybody.

The order of the steps of a hit is rule V1: the entry, the end of its reader's volume lease, whether
the entry is live, the clock. It is `Entries.hit` of the protocol, inlined, because each extra call
would cost a tenth of the whole. What is called is read into a local name first, since Python finds
a method at once, but not an attribute that is called as if it were one.
"""

from enum import Enum
from typing import Final, Generic, NamedTuple, TypeVar

from tenure.base.instants import in_seconds
from tenure.base.keys import UserKey
from tenure.cache.board import CacheBoard, CachedValue
from tenure.protocol.volume.messages import AsOf

V = TypeVar("V")


class Missing(Enum):
    """The value that `peek` returns for an object that must be asked for."""

    MISSING = "missing"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING


class Proof(NamedTuple):
    """The proof that an entry may be read now."""

    as_of: AsOf
    """Up to which write it is known to be current: pass it to `saw`, in another process too."""
    valid_for: float
    """How many seconds it may be read from here on, if nobody writes the object."""
    server: str
    """The server whose leases allow the read."""


class LastKnown(NamedTuple, Generic[V]):
    """The last known value of an object that may have changed since."""

    value: V | None
    age: float
    """Seconds since it was last known to be current; 0 if it still is."""


class Hits(Generic[V]):
    """The readers' half of a cache."""

    def __init__(self, board: CacheBoard) -> None:
        self._board = board
        self._there = board.there
        self._clock = board.clock

    def peek(self, key: UserKey) -> V | Missing | None:
        """The object, if this cache may answer at once; None where there is no such object, and
        MISSING where its server must be asked.

        From any thread, without a lock, and without waiting. It begins no fetch.
        """
        try:
            found = self._there[key]
        except (KeyError, TypeError):  # such as a list: `check` says what a key is
            self._board.check(key)
            return MISSING
        lease = found.lease
        until = lease.until
        if found.is_live:
            clock = self._clock
            if until > clock() < found.until:
                lease.hits += 1
                found.was_read = True
                return found.value  # type: ignore[no-any-return]  # a local for it costs as well
        return MISSING

    def _found(self, key: UserKey) -> CachedValue | None:
        try:
            found = self._there.get(key)
        except TypeError:
            found = None
        if found is None:
            self._board.check(key)
        return found

    def proof(self, key: UserKey) -> Proof | None:
        """The proof that the object may be read at this moment; None if its server must
        be asked.
        """
        found = self._found(key)
        if found is None:
            return None
        lease = found.lease
        until = min(lease.until, found.until)
        left = until - self._clock()
        if not found.is_live or left <= 0:
            return None
        return Proof(found.as_of, in_seconds(left), self._board.server_of(lease))

    def last_known(self, key: UserKey) -> LastKnown[V] | None:
        """The last known value of the object, however old, and its age, for when no server answers.

        None if nothing is known. When this cache hears of a write of the object, it forgets the
        object. A value that `get` returned while the object was being written is known, too.
        """
        found = self._found(key)
        if found is None:
            return None
        until = min(found.lease.until, found.until)
        return LastKnown(found.value, in_seconds(max(0, self._clock() - until)))
