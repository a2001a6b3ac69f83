"""What an owner holds at one time, as its readers read it.

Most checks are of keys that were checked before. Finding such a key anew costs twice what reading
the clock does: it is encoded and hashed, and its range searched. So a snapshot remembers the leases
that it gave out. They need no rule by which they end, because they say nothing that the snapshot
does not say: whatever changes what is held brings another snapshot, which remembers nothing, and
the one instant at which all ends is compared with the clock at each check.

What is remembered takes bounded memory, and bounded time: once it is full, nothing is added until
the next renewal empties it.
"""

from bisect import bisect_right

from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import LOWEST
from tenure.client.lease import Lease
from tenure.protocol.lease.messages import Held, Leased
from tenure.protocol.lease.owner.meter import Sampler

NOT_HELD = 0
"""The number of a key that is not held: below every lease number."""
CHECKED_AT_MOST = 4096
"""Keys remembered: about 1 MB, and half a millisecond to go through once a renewal."""
LONGEST_CHECKED = 256
"""Characters in a key that is remembered: names and paths are shorter."""


class CheckedKey:
    """A key that is held, and how often it was checked since it was first remembered."""

    __slots__ = ("checks", "counted", "index", "lease")

    def __init__(self, lease: Lease, index: int) -> None:
        self.lease = lease
        self.index = index
        """Where its range has its counts."""
        self.checks = 0
        self.counted = 0
        """How many of these the counts of its range have already."""


class Snapshot:
    """Everything that is held, and until when. Only its counts change, and what it remembers."""

    __slots__ = (
        "bounds",
        "checked",
        "counts",
        "expires_at",
        "firsts",
        "given",
        "journal",
        "leased",
        "leases",
        "numbers",
        "sinces",
    )

    def __init__(
        self,
        leases: tuple[Leased, ...],
        journal: int,
        expires_at: int,
        unbroken: tuple[Held, ...] = (),
    ) -> None:
        self.leases = leases
        renumbered = ((each.range, each.number) for each in unbroken)
        self.firsts = RangeMap.of(renumbered, NOT_HELD) if unbroken else None
        """The number since which a range was never interrupted, where it was renumbered while held.
        Readers are shown this one, so theirs changes only if something was interrupted.
        """
        self.journal = journal
        self.expires_at = expires_at
        # numbers[i] is that of the keys from bounds[i - 1] up to bounds[i]: what `bisect_right`
        # returns is the index, without one taken off.
        self.bounds: list[Key] = []
        self.numbers: list[int] = [NOT_HELD]
        self.sinces: list[int] = [NOT_HELD]
        """The lease number since which the state of these keys is unbroken."""
        for lease in leases:
            self._begin(lease.start, lease.number, lease.since)
            if lease.end is not None:
                self._begin(lease.end, NOT_HELD, NOT_HELD)
        self.counts = [0] * len(self.numbers)
        """The counts of checks."""
        self.given: list[float] = [0.0] * len(self.numbers)
        """The load that the application recorded."""
        self.checked: dict[str, CheckedKey] = {}
        """Keys that were checked and are held, in the form in which they were given. Only `str`
        itself: a dict takes True for 1, and a class of somebody's own may be equal to anything.
        """
        self.leased: dict[Key, Lease] = {}
        """Their leases, by which `holds` knows one that this snapshot has given out."""

    def _begin(self, start: Key, number: int, since: int) -> None:
        if start == LOWEST or (self.bounds and self.bounds[-1] == start):
            self.numbers[-1], self.sinces[-1] = number, since
        else:
            self.bounds.append(start)
            self.numbers.append(number)
            self.sinces.append(since)

    def remember(self, name: str, lease: Lease, index: int) -> None:
        """Find the lease by its key from here on, if there is room."""
        if len(self.checked) < CHECKED_AT_MOST and len(name) <= LONGEST_CHECKED:
            self.leased[lease.key] = lease
            self.checked[name] = CheckedKey(lease, index)

    def count_checked(self, sampler: Sampler) -> None:
        """Count what was checked of the keys that are remembered. For one thread at a time."""
        for each in list(self.checked.values()):  # in one step: readers add to them
            if new := each.checks - each.counted:
                each.counted += new
                self.counts[each.index] += new
                sampler.record(each.lease.key, new)

    def renewed(self, expires_at: int) -> "Snapshot":
        """The same snapshot, valid until `expires_at`; checks are counted in the same lists."""
        new = Snapshot.__new__(Snapshot)
        new.leases, new.journal, new.expires_at = self.leases, self.journal, expires_at
        new.bounds, new.numbers, new.sinces = self.bounds, self.numbers, self.sinces
        new.firsts = self.firsts
        new.counts, new.given = self.counts, self.given
        is_full = len(self.checked) >= CHECKED_AT_MOST
        new.checked = {} if is_full else self.checked
        new.leased = {} if is_full else self.leased
        return new

    def take_counts(self, before: "Snapshot") -> None:
        """Take over the counts of the ranges that have not changed."""
        there = {(lease.start, lease.number): before.index(lease.start) for lease in before.leases}
        for lease in self.leases:
            i = there.get((lease.start, lease.number))
            if i is not None:
                here = self.index(lease.start)
                self.counts[here], self.given[here] = before.counts[i], before.given[i]

    def loads(self) -> list[tuple[Leased, int]]:
        """The checks of each range."""
        counts = list(self.counts)
        for each in list(self.checked.values()):
            counts[each.index] += each.checks - each.counted
        return [(lease, counts[self.index(lease.start)]) for lease in self.leases]

    def number(self, key: Key) -> int:
        """The number of the lease for `key`, as readers see it."""
        number = self.numbers[bisect_right(self.bounds, key)]
        return number if self.firsts is None else self.firsts[key] or number

    def index(self, key: Key) -> int:
        """The index of the number and the counts of `key`."""
        return bisect_right(self.bounds, key)


NOTHING_HELD = Snapshot((), 0, 0)
