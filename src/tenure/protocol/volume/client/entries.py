"""The entries that readers look at, from any thread, without a lock and without asking anybody
(V1).

A reader may be stopped between any two of its steps, for as long as it likes, and the library's
thread goes on meanwhile. So the order of the steps is the rule: first the entry, then the end of
its reader's volume lease, then whether the entry is live, then the clock. A reader that sees the
entry live after it has read that end, and then a clock before that end, has seen a value that was
current when it looked: an invalidation makes entries dead first, moves the end next, and is
acknowledged last.

A dead entry never becomes live again: a new entry replaces it. Otherwise a reader that was stopped
could take one life of an entry for another.
"""

from collections.abc import Callable
from typing import Protocol

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.volume.client.events import Believe, DoubtEntries, DropEntries, KeepEntry
from tenure.protocol.volume.messages import AsOf, Value


class ReadersLease:
    """The volume lease of one reader."""

    __slots__ = ("until", "used")

    def __init__(self) -> None:
        self.until = Instant(0)
        self.used = False


class CachedObject:
    """One life of one entry."""

    __slots__ = ("as_of", "is_live", "lease", "until", "value")

    def __init__(
        self, lease: ReadersLease, until: Instant, as_of: AsOf, value: Value | None
    ) -> None:
        self.lease = lease
        self.until = until
        """When the object lease of the entry ends."""
        self.as_of = as_of
        self.value = value
        """The value; None if there is no such object."""
        self.is_live = True


class MakesEntries(Protocol):
    """Makes leases and entries; tests replace it to watch readers."""

    def lease(self) -> ReadersLease:
        """A volume lease."""
        ...

    def entry(
        self, lease: ReadersLease, until: Instant, as_of: AsOf, value: Value | None
    ) -> CachedObject: ...


class Plain:
    """Entries as they are."""

    def lease(self) -> ReadersLease:
        """A volume lease."""
        return ReadersLease()

    def entry(
        self, lease: ReadersLease, until: Instant, as_of: AsOf, value: Value | None
    ) -> CachedObject:
        return CachedObject(lease, until, as_of, value)


class Entries:
    """All entries of a cache, live or not."""

    def __init__(self, makes: MakesEntries | None = None) -> None:
        self.makes = Plain() if makes is None else makes
        self.objects: dict[Key, CachedObject] = {}
        self.leases: dict[tuple[str, int], ReadersLease] = {}

    # --- what readers do ---

    def hit(self, key: Key, clock: Callable[[], Instant]) -> CachedObject | None:
        """The entry, if it may be taken now."""
        found = self.objects.get(key)
        if found is None:
            return None
        lease = found.lease
        until = lease.until
        if not found.is_live:
            return None
        now = clock()
        if now >= until or now >= found.until:
            return None
        lease.used = True
        return found

    # --- what the library's thread does ---

    def perform(self, action: Believe | KeepEntry | DropEntries | DoubtEntries) -> None:
        """Carry out an action of the machine."""
        match action:
            case Believe(server=server, reader=reader, until=until):
                self.believe(server, reader, until)
            case KeepEntry():
                self.keep(action)
            case DropEntries(keys=keys):
                for key in keys:
                    gone = self.objects.pop(key, None)
                    if gone is not None:
                        gone.is_live = False
            case DoubtEntries(keys=keys):
                for key in keys:
                    doubted = self.objects.get(key)
                    if doubted is not None:
                        doubted.is_live = False

    def believe(self, server: str, reader: int, until: Instant) -> None:
        """Move the end of a reader's volume lease."""
        lease = self.leases.get((server, reader))
        if lease is None:
            for other in [other for other in self.leases if other[0] == server]:
                del self.leases[other]
            lease = self.leases[server, reader] = self.makes.lease()
        lease.until = until

    def keep(self, action: KeepEntry) -> None:
        """Replace the present entry of a key by another."""
        before = self.objects.get(action.key)
        value: Value | None = None
        if action.kind == "value":
            value = action.value
        elif action.kind == "unchanged":
            if before is None:
                return  # it had to make room meanwhile
            value = before.value
        lease = self.leases[action.server, action.reader]
        entry = self.makes.entry(lease, action.until, action.as_of, value)
        self.objects[action.key] = entry
        if before is not None:
            before.is_live = False

    def was_used(self, server: str) -> bool:
        """Whether there were hits under a server's leases since the last question."""
        used = False
        for (of, _), lease in self.leases.items():
            if of == server and lease.used:
                lease.used = False
                used = True
        return used

    def ending_soon(self, server: str, before: Instant, most: int) -> tuple[Key, ...]:
        """The live entries of a server whose object leases end before then."""
        found: list[Key] = []
        for key, entry in self.objects.items():
            if len(found) == most:
                break
            lease = entry.lease
            if entry.is_live and entry.until < before and self._is_of(server, lease):
                found.append(key)
        return tuple(found)

    def _is_of(self, server: str, lease: ReadersLease) -> bool:
        return any(of == server and each is lease for (of, _), each in self.leases.items())
