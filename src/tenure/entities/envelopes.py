"""The envelopes of the entities that this process owns: they move with their ranges.

If a store keeps them, only the fair time moves along: the range moves unbroken, because the next
owner finds in the store everything that this one has acknowledged.
"""

from collections.abc import Iterable, Iterator
from threading import RLock

from tenure.base.keys import Key, UserKey
from tenure.base.ranges import KeyRange
from tenure.client.guard import Guards
from tenure.client.hand_off.fair_time import FairTime
from tenure.client.hand_off.keyed_state import KeyedState, Leaf
from tenure.client.lease import Lease
from tenure.entities.live_entity import NOTHING_KEPT
from tenure.errors import ClosedError
from tenure.protocol.entity.envelope import Envelope
from tenure.runtime.clock import Clock, boot_clock


class Envelopes(KeyedState[Envelope]):
    """The envelopes by key."""

    def __init__(self, settle_seconds: float, clock: Clock = boot_clock) -> None:
        super().__init__(value_type=Envelope)
        self._fair = FairTime(clock)
        self.settle_seconds = settle_seconds
        """How long turns may go on in a range that is to move."""
        self._guards: Guards | None = None

    @property
    def lock(self) -> RLock:
        """The lock to hold while a range is put in, or dropped."""
        return self._lock

    @property
    def guards(self) -> Guards:
        """The guards of the owner."""
        if self._guards is None:
            raise ClosedError("these Entities are not entered")
        return self._guards

    def guard_with(self, guards: Guards) -> None:
        self._guards = guards

    def _check(self, user_key: UserKey, value: Envelope) -> None:
        """Check nothing, because the parts of an envelope were checked one by one."""

    def _part(self, leaf: KeyRange | None, keys: list[UserKey]) -> Leaf[Envelope]:
        """One key alone must fit in a chunk, or its whole range would move without state."""
        part = super()._part(leaf, keys)
        part.values = [each.light() for each in part.values]
        return part

    def counting(self, key: UserKey, lease: Lease) -> Envelope:
        """The envelope that was kept of the key, if it is unbroken up to `lease`."""
        found = self.get(key)
        if found is None:
            return NOTHING_KEPT
        if not self.is_unbroken(found, lease):
            self.pop(key, None)
            return NOTHING_KEPT
        if found.items:  # they have come in one dict
            found = self[key] = found.in_tables()
        return found

    def is_unbroken(self, envelope: Envelope, lease: Lease) -> bool:
        """Whether the key always had an owner from when this was kept up to `lease`."""
        since = self.guards.board.since(lease)
        return since is not None and envelope.counts(lease.number, since, lease.journal)

    def in_order(self, key_range: KeyRange) -> Iterator[tuple[Key, str | int]]:
        """The keys of which something is kept, by their places, each with its place. Only the part
        that is walked is looked at.
        """
        place_of = self._placed().key
        for _, keys in self._leaves(key_range):
            placed = ((place_of(each), each) for each in keys if not isinstance(each, bytes))
            for place, key in sorted(placed, key=lambda each: (each[0], repr(each[1]))):
                envelope = self.get(key)
                if envelope is not None and not envelope.is_empty:
                    yield place, key

    def alarms_within(self, ranges: Iterable[KeyRange]) -> list[tuple[str | int, float]]:
        """The keys that have alarms, and when the first of each rings."""
        found = []
        for key_range in ranges:
            for key in self.within(key_range):
                envelope = self.get(key)
                at = None if envelope is None else envelope.next_alarm()
                if at is not None and not isinstance(key, bytes):
                    found.append((key, at))
        return found
