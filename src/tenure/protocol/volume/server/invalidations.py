"""Invalidations, which readers acknowledge before an object is written, or a range goes (V5, V12).

Both take the object leases away and put an item in their place; both wait for those readers that
may still hit, and for none of them longer than was fixed when the item was made (V6). And since
leases that were taken away are no longer on record, the next write or drain of the same keys waits
together with the one before.

A write or drain that has nothing left to wait for goes on once the present event has been handled
completely: so nothing here needs to know how it goes on.
"""

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.volume.limits import MISSED_DEADLINES
from tenure.protocol.volume.messages import Invalidate, Item
from tenure.protocol.volume.noted import VolumeServerKind
from tenure.protocol.volume.server.context import VolumeContext
from tenure.protocol.volume.server.readers import ReaderRecord, label_of
from tenure.protocol.volume.server.writes import Acknowledgements


class Invalidations:
    """The invalidations of a server: it tells readers, waits for some, and forgets others."""

    def __init__(self, context: VolumeContext) -> None:
        self.context = context
        self._told: dict[int, list[Item]] = {}
        """The items of one write or drain for each reader, which are sent together."""

    # --- waiting for readers ---

    def invalidate(
        self,
        now: Instant,
        reader: ReaderRecord,
        keys: tuple[Key, ...],
        item: Item,
        wait: int,
        to_come: Acknowledgements,
    ) -> None:
        """Put an item in the place of object leases, and wait for the readers that may
        still hit.
        """
        readers, terms = self.context.readers, self.context.config.terms
        # One item stands for all these leases, so the last of them counts.
        lease_until = max(reader.leases[key].until for key in keys)
        for key in keys:
            readers.drop_lease(reader, key)
        # Nobody can hit what has ended: there is nothing to tell, or to wait for (V5).
        if now >= lease_until:
            return
        # Fixed here: renewals carry the item along, so they need not prolong the wait (V6).
        deadline = self.deadline(reader, lease_until)
        # With best effort the item travels all the same, and V4 bounds the age of hits (V18).
        is_waited_for = terms.is_strong and now < deadline
        readers.add_item(reader, item, [wait] if is_waited_for else [])
        if is_waited_for:
            to_come.wait_for(reader.number, item.item, deadline)
        # One that cannot hit is told with its next volume lease, and not before (V4, V17).
        if reader.is_active(now) or terms.invalidate == "at once":
            self._told.setdefault(reader.number, []).append(item)
        elif readers.is_overloaded(now, reader):
            self.forget(reader, VolumeServerKind.OVERLOADED)

    @staticmethod
    def deadline(reader: ReaderRecord, lease_until: Instant) -> Instant:
        """When the earlier of the reader's two leases ends: the reader may hit until then."""
        return min(reader.volume_until, lease_until)

    def wait_with(self, other: Acknowledgements, wait: int, to_come: Acknowledgements) -> None:
        """Wait for the same readers as another that took leases on the same keys."""
        for (number, item), deadline in other.missing.items():
            reader = self.context.readers.get(number)
            # Its lease is off the record, but until it acknowledges it may hit all the same (V5).
            if reader is not None and item in reader.items:
                reader.items[item].waits.append(wait)
                to_come.wait_for(number, item, deadline)

    def send(self) -> None:
        """Tell each reader of all its items at once."""
        told, self._told = self._told, {}
        for number, items in told.items():
            reader = self.context.readers.get(number)
            if reader is not None:
                message = Invalidate(epoch=self.context.epoch, reader=number, items=tuple(items))
                self.context.tell(reader.client, message)

    # --- ending the wait ---

    def acknowledged(self, reader: ReaderRecord, numbers: tuple[int, ...]) -> None:
        """Take note that a reader has applied these items."""
        self._came(reader, self.context.readers.acknowledged(reader, numbers))

    def forget(self, reader: ReaderRecord, why: VolumeServerKind) -> None:
        """Forget a reader: it no longer has any entry for which a write could wait."""
        self.context.note(why, label_of(reader.client))
        # It has suspects only, or cannot hit: that is as good as acknowledging (V8, V17).
        self._came(reader, self.context.readers.forget(reader))

    def _came(self, reader: ReaderRecord, waited: list[tuple[int, int]]) -> None:
        writes, drains = self.context.writes, self.context.drains
        for wait, item in waited:
            waits = writes.get(wait) or drains.get(wait)
            if waits is not None:
                waits.to_come.came(reader.number, item)
                self.context.look_at(wait)

    def make_room(self, now: Instant, asks: ReaderRecord) -> None:
        """Forget the reader that was inactive for longest, if there are too many object leases and
        this reader asks for another (V17).
        """
        readers = self.context.readers
        while not readers.has_room():
            reader = readers.longest_inactive(now, asks)
            if reader is None:
                # All others may still hit, and none that may is ever forgotten (V17).
                self.context.note(VolumeServerKind.NO_ROOM)
                return
            self.forget(reader, VolumeServerKind.DISPLACED)

    def count_missed(self, now: Instant, wait: int, to_come: Acknowledgements) -> None:
        """Count deadlines that have passed. Nobody waits for these readers any longer (V20)."""
        readers = self.context.readers
        for number, item in to_come.missing:
            reader = readers.get(number)
            pending = None if reader is None else reader.items.get(item)
            if reader is None or pending is None or wait not in pending.waits:
                continue
            pending.waits.remove(wait)
            if pending.waits:
                continue  # the wait that ends last counts it
            self.context.note(VolumeServerKind.NOT_ACKNOWLEDGED, label_of(reader.client))
            if readers.missed(now, reader, MISSED_DEADLINES):
                self.context.note(VolumeServerKind.MUTE, label_of(reader.client))
        # The server counts longer than they do, so none of them can hit any more (V3).
        to_come.missing.clear()
