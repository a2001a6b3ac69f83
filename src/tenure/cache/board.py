"""Everything that a cache has, for its readers: entries by name, with decoded values, within
limits.

The protocol decides what entries are, and when they may be hit
(`protocol/volume/client/entries.py`). This file has the names, the values, and the choice of
entries that make room. An entry that was read since the last look stays for another round; so
entries in use stay, at the cost of one store for each hit.
"""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, cast

from msgspec.structs import replace

from tenure.base.instants import Instant
from tenure.base.keys import Key, UserKey
from tenure.cache.object_keys import ObjectKeys
from tenure.client.unusable import forked, not_entered
from tenure.errors import TenureError
from tenure.protocol.volume.client.entries import CachedObject, Entries, ReadersLease
from tenure.protocol.volume.client.events import Believe, DoubtEntries, DropEntries, KeepEntry
from tenure.protocol.volume.messages import AsOf
from tenure.runtime.clock import Clock

WHAT = "Cache"
SPARE_ENDS = 1024
"""How many names there may be beyond two for each entry, before names without an entry are
forgotten.
"""
AUDITS_AT_ONCE = 100
"""Hits sampled between two looks: each has its server load an object."""
OVERHEAD_BYTES = 600
"""The bytes that an entry needs in Python, beside its key and its encoded value."""


class CountedLease(ReadersLease):
    """A volume lease, and how many hits it has allowed."""

    __slots__ = ("hits", "hits_told")

    def __init__(self) -> None:
        super().__init__()
        self.hits = self.hits_told = 0


class CachedValue(CachedObject):
    """An entry with its value as the application gets it."""

    __slots__ = ("size", "was_read")
    lease: CountedLease
    value: Any

    def __init__(
        self,
        lease: ReadersLease,
        until: Instant,
        as_of: AsOf,
        value: Any,  # noqa: ANN401  # whatever value_type says
        size: int,
    ) -> None:
        super().__init__(lease, until, as_of, value)
        self.size = size
        self.was_read = False


class HitSampler:
    """Chooses which hits are judged: a share of them, and no more between two looks than a
    limit.
    """

    def __init__(self, share: float, random: Random) -> None:
        self.share = share
        self._random = random.random
        self._names: deque[UserKey] = deque(maxlen=AUDITS_AT_ONCE)

    def note(self, name: UserKey) -> None:
        """A hit, in any thread."""
        if self._random() < self.share:
            self._names.append(name)

    def take(self) -> list[UserKey]:
        """The keys that were hit since the last call, each once."""
        return list(dict.fromkeys(self._names.popleft() for _ in range(len(self._names))))


class SampledValue(CachedValue):
    """An entry some of whose hits are judged: each hit notes that it was read."""

    __slots__ = ("name", "sampler", "was_hit")
    name: UserKey
    sampler: HitSampler
    was_hit: bool

    @property
    def was_read(self) -> bool:
        return self.was_hit

    @was_read.setter
    def was_read(self, was_read: bool) -> None:
        self.was_hit = was_read
        if was_read:
            self.sampler.note(self.name)


class CacheBoard(Entries):
    """The entries that any thread reads; only the library's thread changes them."""

    is_forked = False

    def __init__(
        self,
        keys: ObjectKeys,
        decode: Callable[[bytes], Any],
        clock: Clock,
        limit: int,
        limit_bytes: int,
        sampler: HitSampler,
    ) -> None:
        super().__init__(self)
        self.keys = keys
        self.clock = clock
        self._decode = decode
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._sampler = sampler
        self.there: dict[Any, CachedValue] = {}
        self.objects = self.there  # type: ignore[assignment]  # by name, which the protocol has not
        self._ends: dict[str, deque[tuple[Any, CachedObject]]] = {}
        """The entries of each server, in the order in which their object leases end."""
        self._next: deque[tuple[Any, CachedObject]] = deque()
        """All entries, and some that are gone, in the order in which they make room. An
        `OrderedDict` would find entries more slowly.
        """
        self._keeping: KeepEntry | None = None
        self._past_hits = 0
        self.size = 0
        self._unusable: Callable[[], TenureError] | None = lambda: not_entered(WHAT)

    # --- beginning and ending ---

    def open(self) -> None:
        """Let readers read."""
        self._unusable = None

    def close(self, make: Callable[[], TenureError]) -> None:
        """Let nothing be hit any more, and `check` raise the error that `make` makes."""
        self._unusable = make
        self.there.clear()

    def check(self, name: UserKey) -> None:
        """Raise if a read that found nothing was wrong about the name, or the cache cannot be
        used.
        """
        if self._unusable is not None:
            raise self._unusable()
        self.keys.key(name)

    def on_fork(self) -> None:
        """This is a forked child: nobody renews anything here."""
        self.is_forked = True
        self.close(lambda: forked(WHAT))

    # --- making entries ---

    def lease(self) -> ReadersLease:
        return CountedLease()

    def entry(
        self, lease: ReadersLease, until: Instant, as_of: AsOf, value: object
    ) -> CachedObject:
        """See `MakesEntries`. A value that stays the same is already decoded."""
        keeping = self._keeping
        assert keeping is not None
        size = OVERHEAD_BYTES
        if keeping.kind == "value":
            size += len(keeping.value)
            value = self._decode(keeping.value)
        elif keeping.kind == "unchanged":
            size = self.there[keeping.key].size
        if not self._sampler.share:
            return CachedValue(lease, until, as_of, value, size)
        sampled = SampledValue(lease, until, as_of, value, size)
        # The name that the board was given in place of the key: see `perform`.
        sampled.name, sampled.sampler = keeping.key, self._sampler
        return sampled

    # --- what the library's thread does ---

    def perform(self, action: Believe | KeepEntry | DropEntries | DoubtEntries) -> None:
        """Carry out what the machine asks. Raises ValueError for a value that is not of the cache's
        `value_type`; nothing of the object is kept then.
        """
        match action:
            case Believe():
                super().perform(action)
            case KeepEntry(key=key):
                self._keep(replace(action, key=self.keys.name(key)))
            case DropEntries(keys=keys):
                names = self._names(keys)
                self.size -= sum(self.there[name].size for name in names if name in self.there)
                super().perform(DropEntries(names))
            case DoubtEntries(keys=keys):
                names = self._names(keys)
                now = self.clock()
                for name in names:
                    found = self.there.get(name)
                    if found is not None:  # for this long it was known to be current
                        found.until = min(found.until, found.lease.until, now)
                super().perform(DoubtEntries(names))

    def _names(self, keys: tuple[Key, ...]) -> tuple[Any, ...]:
        return tuple(map(self.keys.name, keys))

    def _keep(self, action: KeepEntry) -> None:
        name: Any = action.key
        before = self.there.get(name)
        self._keeping = action
        try:
            self.keep(action)
        except Exception:
            if before is not None:
                self._drop(name)
            raise
        finally:
            self._keeping = None
        found = self.there.get(name)
        if found is None:
            return
        self.size += found.size - (0 if before is None else before.size)
        named = name, found
        self._next = self._added(self._next, named)
        self._ends[action.server] = self._added(self._ends.get(action.server, deque()), named)

    def _added(
        self, entries: deque[tuple[Any, CachedObject]], named: tuple[Any, CachedObject]
    ) -> deque[tuple[Any, CachedObject]]:
        """The entries and one more, without those that are gone if these are many."""
        entries.append(named)
        if len(entries) <= 2 * len(self.there) + SPARE_ENDS:
            return entries
        return deque((name, each) for name, each in entries if self.there.get(name) is each)

    def _drop(self, name: Any) -> None:  # noqa: ANN401  # whatever key_type says
        gone = self.there.pop(name)
        gone.is_live = False
        self.size -= gone.size

    def make_room(self) -> tuple[Key, ...]:
        """Drop the entries that were not read for longest, while there are too many; return their
        keys.
        """
        gone: list[Key] = []
        there, rounds = self.there, len(self.there)
        while len(there) > 1 and (len(there) > self._limit or self.size > self._limit_bytes):
            name, _ = named = self._next.popleft()
            found = there.get(name)
            if found is not named[1]:
                continue  # it is gone, or another has its place
            if found.was_read and rounds:  # readers may still read all of them
                rounds -= 1
                found.was_read = False
                self._next.append(named)
                continue
            self._drop(name)
            gone.append(self.keys.key(name))
        return tuple(gone)

    def believe(self, server: str, reader: int, until: Instant) -> None:
        """Move the end of a reader's volume lease; hits by earlier ones stay counted."""
        if (server, reader) not in self.leases:
            past = (each for (of, _), each in self.leases.items() if of == server)
            self._past_hits += sum(cast("CountedLease", each).hits for each in past)
        super().believe(server, reader, until)

    # --- what is asked of it ---

    def server_of(self, lease: ReadersLease) -> str:
        """The server that gave the lease; empty if another lease has taken its place."""
        of = (server for (server, _), each in self.leases.copy().items() if each is lease)
        return next(of, "")

    @property
    def hits(self) -> int:
        """The number of hits, approximately: several threads may count at the same time."""
        present = (cast("CountedLease", each).hits for each in list(self.leases.values()))
        return self._past_hits + sum(present)

    @property
    def live(self) -> int:
        """How many entries are not suspect. In any thread, while the library's thread adds
        others.
        """
        return sum(each.is_live for each in list(self.there.values()))

    def was_used(self, server: str) -> bool:
        """Whether there were hits by a server's leases since the last call."""
        used = False
        for (of, _), each in self.leases.items():
            lease = cast("CountedLease", each)
            if of == server and lease.hits != lease.hits_told:
                lease.hits_told = lease.hits
                used = True
        return used

    def sampled(self) -> tuple[Key, ...]:
        """The entries of which hits must be judged, since the last call."""
        return tuple(map(self.keys.key, self._sampler.take()))

    def ending_soon(self, server: str, before: Instant, most: int) -> tuple[Key, ...]:
        """Entries of a server that were read, and whose object leases end before then, each only
        once.
        """
        ends = self._ends.get(server, deque())
        found: list[Key] = []
        while ends and len(found) < most:
            name, entry = ends[0]
            if self.there.get(name) is entry and entry.is_live:
                if entry.until >= before:
                    break
                if entry.was_read:
                    found.append(self.keys.key(name))
            ends.popleft()
        return tuple(found)
