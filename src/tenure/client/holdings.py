"""The holdings of an owner, readable from any thread: one snapshot, published by one store.

`check` and `holds` read the snapshot and the clock; they take no lock and wait for nothing. The
thread that renews publishes a new snapshot at each change. A reader that still has the old one
answers as of when it took it. Nobody can promise more, because a check and what follows it are not
one step.

One thing is hard, promise S3: what was once false must never be true again. The machine decides at
12.0 s that a renewal moves the end of the term, which was 12.1 s. Before the new snapshot is
published, at 12.2 s, a reader sees the old one, ended, and says no. If the new snapshot were then
published, the same lease would be held again, although somebody was told that it was not. So a
reader that sees the end *ends it*: under a lock, if the snapshot that it read is still the current
one, it replaces it by the empty one and tells the machine. Nothing else is published until the
machine has noticed, and dropped everything; later grants have new numbers. If the reader comes
second, the end was moved in time, and the reader reads again. Only a reader that saw an end, and
the thread that publishes, ever take the lock.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import inf
from numbers import Real
from random import Random
from threading import RLock

from xxhash import xxh3_64_digest

from tenure.base.keys import Key, PoolKind, UserKey, key_function, no_utf8
from tenure.base.names import shown
from tenure.base.ranges import KeyRange
from tenure.client.lease import Lease
from tenure.client.levels import Levels
from tenure.client.snapshot import NOT_HELD, NOTHING_HELD, Snapshot
from tenure.client.unusable import forked, not_entered, raising_list
from tenure.errors import TenureError, UsageError
from tenure.protocol.lease.limits import HOT_NAME_CHARACTERS, REQUESTS
from tenure.protocol.lease.load_report import LevelLoad
from tenure.protocol.lease.messages import Leased
from tenure.protocol.lease.owner.events import Holdings
from tenure.protocol.lease.owner.lapse import Lapse
from tenure.protocol.lease.owner.meter import RangeTally, Sampler
from tenure.runtime.clock import Clock

WHAT = "Owner"
MOST_LOAD = 1e12
"""The most load in one call: far more than any request costs in any unit, and sums of it are exact
enough.
"""


def digest_of(kind: PoolKind) -> Callable[[bytes], Key]:
    """The function from a user's bytes to the key, for a pool of `kind`; it must not be written in
    Python.
    """
    if kind == "hashed":
        return xxh3_64_digest
    return bytes  # which returns the very object


def no_sampler() -> Sampler:
    """A sampler that is never called."""
    sampler = Sampler(Random(0))  # noqa: S311  # and so never draws
    sampler.left = inf
    return sampler


def unusable(make: Callable[[], TenureError]) -> Snapshot:
    """A stand-in that raises whenever it is read."""
    snapshot = Snapshot((), 0, 0)
    snapshot.numbers = raising_list(make, int)
    return snapshot


class Board:
    """The present snapshot, for readers in any thread, and the one thread that publishes.

    `on_lapsed` is called by a reader that ended the snapshot, in the reader's thread.
    """

    __slots__ = (
        "__weakref__",
        "_clock",
        "_digest",
        "_is_over",
        "_lapse",
        "_levels",
        "_lock",
        "_pool",
        "_sampler_of_checks",
        "_to_key",
        "current",
        "has_levels",
        "is_forked",
        "is_load_given",
        "on_lapsed",
        "sampler",
    )

    def __init__(
        self, kind: PoolKind, clock: Clock, pool: str = "", metrics: Sequence[str] = ()
    ) -> None:
        self._pool = pool
        self._levels = Levels(metrics, is_ordered=kind == "ordered")
        self.has_levels = bool(metrics)
        """Whether it counts other metrics than requests, too."""
        self.current = unusable(lambda: not_entered(WHAT))
        self.on_lapsed: Callable[[], None] = _nobody
        self._clock = clock
        self._digest = digest_of(kind)
        self._to_key = key_function(kind)
        self._lock = RLock()  # a signal handler may check while its thread is inside
        self._lapse = Lapse()
        self._is_over = False
        self.is_forked = False
        self.sampler = self._sampler_of_checks = no_sampler()
        """The first is called for each load: each check, until the application records its own
        load.
        """
        self.is_load_given = False

    # --- reading: any thread ---

    def check(self, key: UserKey) -> Lease | None:
        """The lease for `key`, if it is held at this moment."""
        if type(key) is str:
            held = self.current
            checked = held.checked.get(key)
            if checked is not None and self._clock() < held.expires_at:
                checked.checks += 1  # without a lock: threads may lose one now and then
                return checked.lease
        return self._find(key)

    def _find(self, name: UserKey) -> Lease | None:
        """The lease of a key that is not remembered, or whose term has run out."""
        key: UserKey = name
        if type(key) is str:
            try:
                key = key.encode()
            except UnicodeEncodeError:
                raise no_utf8(name) from None
        key = self._digest(key) if type(key) is bytes else self._to_key(key)
        while True:
            held = self.current
            i = bisect_right(held.bounds, key)
            number = held.numbers[i]
            if number == NOT_HELD:
                return None
            if self._clock() < held.expires_at:
                held.counts[i] += 1
                sampler = self._sampler_of_checks
                sampler.left -= 1
                if sampler.left < 0:
                    sampler.meet(key)
                if held.firsts is not None:
                    number = held.firsts[key] or number
                lease = Lease(key, number, held.journal, self._pool)
                if type(name) is str:
                    held.remember(name, lease, i)
                return lease
            self._end(held)

    def record_load(self, key: UserKey, amount: float, metric: str = REQUESTS) -> None:
        """Count `amount` for `key` if it is held; from the first call on, checks are not load. Of
        any other metric it takes up that amount from now on.
        """
        is_number = type(amount) is float or isinstance(amount, Real)
        if not (is_number and 0 <= amount <= MOST_LOAD):  # which nan is not
            raise UsageError(f"a load of {amount!r}; it must be a number from 0 to {MOST_LOAD:g}")
        if metric != REQUESTS:
            self._record_level(self._to_key(key), float(amount), metric)
            return
        if not self.is_load_given:
            self.is_load_given = True
            self._sampler_of_checks = no_sampler()
        place = self._to_key(key)
        held = self.current
        i = bisect_right(held.bounds, place)
        if held.numbers[i] != NOT_HELD:
            held.given[i] += amount
            self.sampler.record(place, amount)

    def _record_level(self, place: Key, amount: float, metric: str) -> None:
        if metric not in self._levels.metrics:
            known = ", ".join(map(repr, (REQUESTS, *self._levels.metrics)))
            raise UsageError(
                f"no metric is called {shown(metric)} here, but {known}; name it in capacity=, "
                "with this owner's capacity for it"
            )
        if (number := self.current.number(place)) != NOT_HELD:
            self._levels.record(metric, place, number, amount)

    def told_levels(self) -> tuple[LevelLoad, ...]:
        """What a report says of other metrics than requests."""
        return self._levels.told(self.current)

    def sample(self, sampler: Sampler) -> None:
        """Call `sampler` for load from here on."""
        self.sampler = sampler
        if not self.is_load_given:
            self._sampler_of_checks = sampler

    def holds(self, lease: Lease) -> bool:
        """Whether the right in `lease` was never interrupted up to this moment."""
        held = self.current
        try:
            if held.leased.get(lease.key) is lease and self._clock() < held.expires_at:
                return True
            return self._is_held(lease)
        except AttributeError:
            raise _no_lease(lease) from None

    def _is_held(self, lease: Lease) -> bool:
        """The same of a lease that is not remembered, or whose term has run out."""
        while True:
            held = self.current
            if held.number(lease.key) != lease.number or held.journal != lease.journal:
                return False
            if self._clock() < held.expires_at:
                return True
            self._end(held)

    def since(self, lease: Lease) -> int | None:
        """The lease number since which the state of the key of `lease` is unbroken; None if the key
        is no longer held under that lease.
        """
        held = self.current
        i = held.index(lease.key)
        is_same = held.number(lease.key) == lease.number and held.journal == lease.journal
        return held.sinces[i] if is_same else None

    def key(self, key: UserKey) -> Key:
        """The key of the pool's key space for `key`."""
        return self._to_key(key)

    def _end(self, seen: Snapshot) -> None:
        """A reader saw that the term has run out: unless somebody has moved its end, that is
        final.
        """
        with self._lock:
            if self.current is not seen:
                return
            self.current = NOTHING_HELD
            self._lapse.is_seen = True
        self.on_lapsed()

    def lapse(self) -> None:
        """End what is held: a reader that looks at the clock by itself saw the term run out, before
        it could be told that the term goes on.
        """
        held = self.current
        if held.leases:
            self._end(held)

    def leases(self) -> tuple[Leased, ...]:
        """All that is held at this moment. Raises what `check` would raise."""
        while True:
            held = self.current
            _ = held.numbers[0]
            if not held.leases or self._clock() < held.expires_at:
                return held.leases
            self._end(held)

    def ranges(self) -> tuple[KeyRange, ...]:
        """The ranges held at this moment."""
        return tuple(lease.range for lease in self.leases())

    def loads(self) -> tuple[tuple[KeyRange, int], ...]:
        """How often keys of each held range were checked since it was granted."""
        self.leases()
        return tuple((lease.range, count) for lease, count in self.current.loads())

    def tallies(self) -> list[RangeTally]:
        """The checks and loads counted so far for everything that is held."""
        held = self.current
        held.count_checked(self._sampler_of_checks)
        counts: list[int] | list[float] = held.given if self.is_load_given else held.counts
        return [
            RangeTally(
                each.start, each.end, each.number, counts[bisect_right(held.bounds, each.start)]
            )
            for each in held.leases
        ]

    def names(self, keys: Sequence[Key]) -> tuple[str, ...]:
        """What the application calls these keys, as far as it checked them lately as text."""
        names = dict.fromkeys(keys, "")
        # In one step, since readers add to them: a list of pairs takes many, and garbage may be
        # collected between two of these.
        for name, each in self.current.checked.copy().items():
            if each.lease.key in names and len(name) <= HOT_NAME_CHARACTERS:
                names[each.lease.key] = name
        return tuple(names.values())

    # --- publishing: the thread that renews ---

    def open(self) -> None:
        """The owner is entered: from here on nothing is held, and reading no longer raises."""
        with self._lock:
            if not self._is_over:
                self.current = NOTHING_HELD

    def publish(self, holdings: Holdings) -> bool:
        """Publish what is believed from here on; False if a reader saw the last snapshot end."""
        with self._lock:
            if self._is_over or (self._lapse.is_seen and not self._lapse.admits(holdings)):
                return False
            before = self.current
            before.count_checked(self._sampler_of_checks)
            same = holdings.leases == before.leases and holdings.journal == before.journal
            if same:
                self.current = before.renewed(holdings.expires_at) if before.leases else before
                return True
            new = Snapshot(
                holdings.leases, holdings.journal, holdings.expires_at, holdings.unbroken
            )
            if holdings.journal == before.journal:
                new.take_counts(before)
            self.current = new
            return True

    def close(self) -> None:
        """Nothing is held, or ever will be; checks still answer None.

        A program that checks while the application shuts down gets the truth: the key is not held
        here.
        """
        with self._lock:
            if not self._is_over:
                self._is_over = True
                self.current = NOTHING_HELD

    def on_fork(self) -> None:
        """Let every reading raise, in a forked child."""
        self._lock = RLock()  # another thread of the parent may have had it
        self.is_forked = True
        self._is_over = True
        self.current = unusable(lambda: forked(WHAT))


def _nobody() -> None:
    """Tell nobody."""


def _no_lease(given: object) -> UsageError:
    return UsageError(
        f"holds() takes the Lease that check() returned, not {shown(given)}; "
        "if check() returned None, the key was not held at all"
    )
