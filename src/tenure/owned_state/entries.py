"""The stored values by key: a KeyedState of entries, which are encoded values with what decides
whether they count.

**A value is kept as bytes.** A body that changes its value in place and then raises has changed
only its own copy, and the size of a value is known. The value is decoded when it is asked for.

**An entry has the number of the lease under which it was stored.** It counts while that number is
not below the one since which the state of its range is unbroken. So a value left over from an
earlier time reads as absent, whether it was dropped or not, and a value that was handed over still
counts.

**An entry ends at an instant of this machine's clock.** Clocks of two machines are never compared,
so a chunk says what time it was at its source when it was made, and the taker sets the instants in
it to its own clock. So an entry lives longer by the time for which its chunk was under way.
"""

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from itertools import count
from threading import RLock

import msgspec

from tenure.base.keys import HASHED_KEY_BYTES, Key, PoolKind, UserKey
from tenure.base.ranges import WHOLE, KeyRange
from tenure.client.guard import Guards
from tenure.client.hand_off.handler import Exported
from tenure.client.hand_off.keyed_state import Home, KeyedState, Leaf
from tenure.client.lease import Lease
from tenure.errors import Full

MARK = b"\xc1"
"""Begins a chunk. No msgpack begins in this way, so that neither kind of state takes the other's
chunks.
"""
CLOCK_BYTES = 8
NEVER = 0
SPARE_ENDS = 1024
"""How many ends there may be beside one for each entry, before outdated ones are forgotten."""


class Stored(msgspec.Struct, array_like=True, gc=False):
    """One value."""

    number: int
    journal: int
    ends_at: int
    """When it ends, on this machine's clock; NEVER if it does not end."""
    data: bytes

    def counts(self, lease: Lease, since: int, now: int) -> bool:
        """Whether it is unbroken up to `lease`, and has not ended."""
        is_unbroken = self.journal == lease.journal and self.number >= since
        return is_unbroken and (self.ends_at == NEVER or now < self.ends_at)


class StoredEntries(KeyedState[Stored]):
    """Entries by key, within limits, with their total size."""

    def __init__(self, limit: int | None, limit_bytes: int | None) -> None:
        super().__init__(value_type=Stored)
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._clock: Callable[[], int] = lambda: NEVER
        self._bytes = 0
        self._ends: list[tuple[int, int, UserKey]] = []
        """A heap of the times at which entries were to end when they were first stored, to be
        looked at then. The time in the entry itself is the one that counts."""
        self._order = count()

    def belong_to(self, owner: str, kind: PoolKind, has_ended: Callable[[], bool]) -> None:
        """See `OwnersState`. Entries that are here belong to an earlier owner, and do not count."""
        with self._lock:
            super().belong_to(owner, kind, has_ended)
            self.discard_range(WHOLE)
            self._ends.clear()

    def guard_with(self, guards: Guards) -> None:
        self._clock = guards.clock

    # --- for turns ---

    @property
    def lock(self) -> RLock:
        """The lock to hold while a range is put in, or dropped."""
        return self._lock

    def on_fork(self) -> None:
        """Take a new lock in a forked child: a thread of the parent may have had the old one."""
        self._lock = RLock()

    def put(self, user_key: UserKey, entry: Stored, now: int) -> None:
        """Store `entry`. Raises Full if there is no room for it; then nothing is stored."""
        with self._lock:
            if self._ends and self._ends[0][0] <= now:
                self._drop_ended(now)
            old = self._values.get(user_key)
            if old is None and self._limit is not None and len(self._values) >= self._limit:
                raise Full(
                    f"there are {len(self)} entries, as many as limit= allows: {user_key!r:.100} "
                    "was not stored. Remove entries, or give them an end with ttl="
                )
            more = _size(user_key, entry) if old is None else len(entry.data) - len(old.data)
            most = self._limit_bytes
            if most is not None and more > 0 and self._bytes + more > most:
                raise Full(
                    f"the entries take {self._bytes} bytes, and {user_key!r:.100} would take "
                    f"{more} more, where limit_bytes= allows {most}: it was not stored. Remove "
                    "entries, or give them an end with ttl="
                )
            if old is None:
                super().__setitem__(user_key, entry)
            else:  # the index already has the key
                self._values[user_key] = entry
                if self._marks:
                    self._note(user_key)
            self._bytes += more
            if old is None or not NEVER < old.ends_at <= entry.ends_at:
                self._note_end(user_key, entry)

    def found(self, user_key: UserKey) -> Stored | None:
        """The stored entry, whether it counts or not."""
        return self._values.get(user_key)

    def drop(self, user_key: UserKey, entry: Stored) -> None:
        """Remove `entry`, if it is still what is stored."""
        with self._lock:
            if self._values.get(user_key) is entry:
                del self[user_key]

    def drop_ended(self) -> None:
        """Remove every entry that has ended."""
        if self._ends:
            with self._lock:
                self._drop_ended(self._clock())

    def _drop_ended(self, now: int) -> None:
        ends = self._ends
        while ends and ends[0][0] <= now:
            user_key = heappop(ends)[2]
            entry = self._values.get(user_key)
            if entry is None or entry.ends_at == NEVER:
                continue
            if entry.ends_at <= now:
                del self[user_key]
            else:  # it was stored again, to end later
                self._note_end(user_key, entry)

    def size(self) -> int:
        """The size of keys and values, in bytes."""
        self.drop_ended()
        return self._bytes

    # --- the mapping, which counts sizes ---

    def __delitem__(self, user_key: UserKey) -> None:
        with self._lock:
            old = self._values.get(user_key)
            super().__delitem__(user_key)
            self._count(((user_key, old),), -1)

    def _check(self, user_key: UserKey, value: Stored) -> None:
        """Check nothing, because the turn has checked the value."""

    def _count(self, entries: Iterable[tuple[UserKey, Stored | None]], sign: int) -> None:
        self._bytes += sign * sum(_size(key, entry) for key, entry in entries if entry is not None)

    def _note_end(self, user_key: UserKey, entry: Stored) -> None:
        if entry.ends_at == NEVER:
            return
        heappush(self._ends, (entry.ends_at, next(self._order), user_key))
        if len(self._ends) > 2 * len(self._values) + SPARE_ENDS:
            there = ((key, each) for key, each in self._values.items() if each.ends_at != NEVER)
            self._ends[:] = [(each.ends_at, next(self._order), key) for key, each in there]
            heapify(self._ends)

    # --- the handler ---

    def export_range(self, key_range: KeyRange, since: object) -> Exported:
        mark, chunks = super().export_range(key_range, since)  # type: ignore[arg-type]
        return mark, map(self._stamped, chunks)  # type: ignore[arg-type]

    def _stamped(self, chunk: bytes) -> bytes:
        return MARK + self._clock().to_bytes(CLOCK_BYTES, "big") + chunk

    def _decoded(self, chunk: bytes) -> "list[Leaf[Stored]]":
        if chunk[:1] != MARK:
            raise ValueError(
                "this is not a chunk of an OwnedState: both owners must keep their state in one"
            )
        start = len(MARK) + CLOCK_BYTES
        later = self._clock() - int.from_bytes(chunk[len(MARK) : start], "big")
        parts = super()._decoded(memoryview(chunk)[start:])  # type: ignore[arg-type]
        for part in parts:
            for entry in part.values:
                if entry.ends_at != NEVER:
                    entry.ends_at = max(entry.ends_at + later, NEVER + 1)
        return parts

    def _import(self, place: Home, part: "Leaf[Stored]", keys: list[Key]) -> None:
        there = self._values
        self._count(((key, there.get(key)) for key in part.keys), -1)
        self._count(((key, there.get(key)) for key in part.removed), -1)
        super()._import(place, part, keys)
        pairs = list(zip(part.keys, part.values, strict=True))
        self._count(pairs, 1)
        for user_key, entry in pairs:
            self._note_end(user_key, entry)

    def _pop(self, user_keys: Iterable[UserKey]) -> None:
        dropped = [(each, self._values.pop(each, None)) for each in user_keys]
        self._count(dropped, -1)


def _size(user_key: UserKey, entry: Stored) -> int:
    if isinstance(user_key, int):
        return len(entry.data) + HASHED_KEY_BYTES
    if isinstance(user_key, str) and not user_key.isascii():
        user_key = user_key.encode()
    return len(entry.data) + len(user_key)
