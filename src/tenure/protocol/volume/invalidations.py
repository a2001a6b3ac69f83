"""Invalidations: what must be acknowledged before an object is written, or a range goes (V5, V12).

Both take the object leases away and put an item in their place; both wait for those readers that
may still hit, and for nobody longer than was fixed when the item was made (V6). And since leases
that were taken away are on record no more, whoever comes next for the same keys waits with the one
before.
"""

from random import Random

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.volume.answers import Answering
from tenure.protocol.volume.drains import Draining, Serving
from tenure.protocol.volume.limits import MISSED_DEADLINES, WRITES
from tenure.protocol.volume.messages import (
    Item,
    Write,
)
from tenure.protocol.volume.noted import VolumeServerKind
from tenure.protocol.volume.readers import ReaderRecord
from tenure.protocol.volume.server_events import (
    BodyEnded,
    Drained,
    FailedWhy,
    FailWrite,
    RunBody,
    ServerConfig,
)
from tenure.protocol.volume.writes import Acknowledgements, Writer, Writing


class Invalidating(Answering):
    """How a server writes and withdraws."""

    def __init__(self, config: ServerConfig, random: Random) -> None:
        super().__init__(config, random)
        self._last_wait = 0

    # --- who need not be waited for any more ---

    def forget(self, now: Instant, reader: ReaderRecord, why: VolumeServerKind) -> None:
        """Know nothing of a reader: it has nothing any more that anybody could wait for."""
        self.note(why, str(reader.client))
        self.acknowledged(now, reader, self.readers.forget(reader))

    def acknowledged(
        self, now: Instant, reader: ReaderRecord, waited: list[tuple[int, int]]
    ) -> None:
        """Whoever waited for these waits no more."""
        drains: dict[int, Draining] = {}
        for wait, item in waited:
            writing, drain = self.writes.get(wait), self.drains.get(wait)
            if writing is not None:
                writing.to_come.came(reader.number, item)
                self.proceed(now, writing)
            elif drain is not None:
                drain.to_come.came(reader.number, item)
                drains[wait] = drain
        for drain in drains.values():  # after the writes: what may still be written is
            self.proceed_draining(now, drain)

    def make_room(self, now: Instant, asks: ReaderRecord) -> None:
        """Too many object leases: who was inactive for longest is forgotten (V17)."""
        while not self.readers.has_room(now):
            reader = self.readers.longest_inactive(now, asks)
            if reader is None:
                self.note(VolumeServerKind.NO_ROOM)
                return
            self.forget(now, reader, VolumeServerKind.DISPLACED)

    # --- writing ---

    def on_write_asked(self, now: Instant, ticket: int, keys: tuple[Key, ...]) -> None:
        if not keys:
            raise ValueError("a write has no keys; name at least one")
        if len(self.writes) >= WRITES:
            self._actions.append(FailWrite(ticket, "too many"))
        elif self.is_stopping or self.epoch == 0:
            self._actions.append(FailWrite(ticket, "closed"))
        else:
            self._add_write(now, ticket, tuple(dict.fromkeys(keys)), None)

    def on_write(self, now: Instant, reader: ReaderRecord, message: Write) -> None:
        if not self.is_new_write(reader, message):
            self.note(VolumeServerKind.OLD_REQUEST, "write")
            return
        reader.last_write = message.sequence
        if len(self.writes) >= WRITES:
            self.refuse(message, "too many")
        elif self.is_here(message):
            writer = Writer(
                message.client, reader.number, message.sequence, now, message.key, message.value
            )
            self._add_write(now, 0, (message.key,), writer)

    def is_new_write(self, reader: ReaderRecord, message: Write) -> bool:
        """Whether it was not taken before; what comes twice must not write twice (V2)."""
        return message.sequence > reader.last_write

    def on_given_up(self, now: Instant, ticket: int) -> None:
        """Those whose leases it took are waited for all the same: the next write needs it."""
        writing = self.writes.of_ticket(ticket)
        if writing is None or writing.stage == "running":
            return
        writing.given_up = True
        if writing.stage == "queued":
            self._end_write(now, writing)
        else:
            self.proceed(now, writing)

    def _add_write(
        self, now: Instant, ticket: int, keys: tuple[Key, ...], writer: Writer | None
    ) -> None:
        self._last_wait += 1
        writing = Writing(self._last_wait, ticket, keys, writer)
        self.writes.add(writing)
        if self.writes.is_its_turn(writing):
            self._begin_write(now, writing)

    def _begin_write(self, now: Instant, writing: Writing) -> None:
        """Its turn: from here on no object lease is given on its keys (V5)."""
        writing.stage = "waiting"
        writing.began_at = now
        told: dict[int, list[Item]] = {}
        for key in writing.keys:
            serving = self.served[key]
            if serving is None:
                continue
            for reader in self.readers.holders(key):
                if self.acknowledges_by_writing(reader, key, writing):
                    self.readers.drop_lease(reader, key)
                    continue
                item = Item(item=0, key=key, number=serving.number, count=self.versions.count + 1)
                self._invalidate(now, reader, (key,), item, writing.number, writing.to_come, told)
            for drain in self.drains.all():
                if key in drain.range:
                    self.wait_with(drain.to_come, writing.number, writing.to_come)
        self._tell(told)
        self.proceed(now, writing)

    def acknowledges_by_writing(self, reader: ReaderRecord, key: Key, writing: Writing) -> bool:
        """Whether it is this reader's own write, and its lease is older than that (V9)."""
        writer = writing.writer
        return (
            writer is not None
            and writer.reader == reader.number
            and reader.leases[key].highest < writer.sequence
        )

    def _invalidate(
        self,
        now: Instant,
        reader: ReaderRecord,
        keys: tuple[Key, ...],
        item: Item,
        wait: int,
        to_come: Acknowledgements,
        told: dict[int, list[Item]],
    ) -> None:
        """An item takes the place of object leases; whoever may still hit is waited for."""
        lease_until = max(reader.leases[key].until for key in keys)
        for key in keys:
            self.readers.drop_lease(reader, key)
        if now >= lease_until:
            return
        deadline = self.deadline(reader, lease_until)
        is_waited_for = self.config.terms.is_strong and now < deadline
        noted = self.readers.add_item(reader, item, [wait] if is_waited_for else [])
        if is_waited_for:
            to_come.wait_for(reader.number, noted.item, deadline)
        if reader.is_active(now) or self.config.terms.invalidate == "at once":
            told.setdefault(reader.number, []).append(noted)
        elif self.readers.is_overloaded(now, reader):
            self.forget(now, reader, VolumeServerKind.OVERLOADED)

    def wait_with(self, other: Acknowledgements, wait: int, to_come: Acknowledgements) -> None:
        """Wait for whom another waits that took leases on the same keys."""
        for (number, item), deadline in other.missing.items():
            reader = self.readers.get(number)
            if reader is not None and item in reader.items:
                reader.items[item].waits.append(wait)
                to_come.wait_for(number, item, deadline)

    @staticmethod
    def deadline(reader: ReaderRecord, lease_until: Instant) -> Instant:
        """Until when a reader may hit: the earlier end of its two leases."""
        return min(reader.volume_until, lease_until)

    def due_at(self, writing: Writing) -> Instant:
        return max(writing.to_come.due_at, self.quiet_until(writing.keys))

    def proceed(self, now: Instant, writing: Writing) -> None:
        """Run the body, if nothing is left to wait for."""
        if writing.stage != "waiting" or self.writes.get(writing.number) is not writing:
            return  # it has ended, by what another's end has brought about
        if any(self.served[key] is None for key in writing.keys):
            self.fail(writing, "moved")
            self._end_write(now, writing)
            return
        if writing.given_up and writing.to_come.are_over(now):
            self._count_missed(now, writing.number, writing.to_come)
            self._end_write(now, writing)
            return
        if not writing.to_come.are_over(now) or now < self.quiet_until(writing.keys):
            self.writes.next_at = min(self.writes.next_at, self.due_at(writing))
            return
        self._count_missed(now, writing.number, writing.to_come)
        writing.stage = "running"
        for key in writing.keys:
            self.loads.overtake(key)
        writer = writing.writer
        value = b"" if writer is None else writer.value
        waited_ns = now - writing.began_at
        self._actions.append(
            RunBody(
                writing.number,
                writing.ticket,
                writing.keys,
                self.fence_of(writing.keys),
                waited_ns,
                value,
            )
        )

    def _count_missed(self, now: Instant, wait: int, to_come: Acknowledgements) -> None:
        """Their deadlines have passed. Nobody waits for these any more."""
        for number, item in to_come.missing:
            reader = self.readers.get(number)
            pending = None if reader is None else reader.items.get(item)
            if reader is None or pending is None or wait not in pending.waits:
                continue
            pending.waits.remove(wait)
            if pending.waits:
                continue  # whoever waits longest counts it
            self.note(VolumeServerKind.NOT_ACKNOWLEDGED, str(reader.client))
            if self.readers.missed(now, reader, MISSED_DEADLINES):
                self.note(VolumeServerKind.MUTE, str(reader.client))
        to_come.missing.clear()

    def on_body_ended(self, now: Instant, event: BodyEnded) -> None:
        writing = self.writes.get(event.write)
        if writing is None or writing.stage != "running":
            self.note(VolumeServerKind.STRANGE_EVENT, f"body {event.write}")
            return
        if not event.ok:
            self.note(VolumeServerKind.BODY_RAISED, event.detail)
        self.versions.written(writing.keys, self.fence_of(writing.keys))
        self._end_write(now, writing, event)

    def _end_write(self, now: Instant, writing: Writing, ended: BodyEnded | None = None) -> None:
        following = self.writes.following(writing)
        for each in following:
            self._begin_write(now, each)
        if ended is not None and writing.writer is not None:
            self.answer_write(now, writing.writer, ended)
        for drain in self.drains.all():
            self.proceed_draining(now, drain)

    def fail(self, writing: Writing, why: FailedWhy) -> None:
        if writing.ticket:
            self._actions.append(FailWrite(writing.ticket, why))
        elif writing.writer is not None:
            self.answer_failed(writing.writer)

    # --- withdrawing ---

    def on_drain_asked(self, now: Instant, key_range: KeyRange, *, served: bool) -> None:
        if not any(serving for _, serving in self.served.within(key_range)):
            if not self.is_stopping:
                self._actions.append(Drained(key_range))
            return
        self._last_wait += 1
        drain = Draining(self._last_wait, key_range, served=served)
        self.drains.add(drain)
        told: dict[int, list[Item]] = {}
        self.versions.count += 1
        for piece, serving in list(self.served.within(key_range)):
            if serving is not None:
                self._withdraw(now, drain, piece, serving, told)
        others: list[Draining | Writing] = [*self.drains.all(), *self.writes.waiting()]
        for each in others:
            if each is not drain and self._concerns(each, key_range):
                self.wait_with(each.to_come, drain.number, drain.to_come)
        self._tell(told)
        if not served:
            self._end_belief(now, key_range)
        self.proceed_draining(now, drain)

    def _withdraw(
        self,
        now: Instant,
        drain: Draining,
        piece: KeyRange,
        serving: Serving,
        told: dict[int, list[Item]],
    ) -> None:
        held: dict[int, list[Key]] = {}
        for key in self.readers.held_in(piece):
            for reader in self.readers.holders(key):
                held.setdefault(reader.number, []).append(key)
        for number, keys in held.items():
            holder = self.readers.get(number)
            assert holder is not None
            item = Item(
                item=0,
                key=piece.start,
                number=serving.number,
                count=self.versions.count,
                withdrawn=True,
                end=piece.end,
            )
            self._invalidate(now, holder, tuple(keys), item, drain.number, drain.to_come, told)

    @staticmethod
    def _concerns(each: Draining | Writing, key_range: KeyRange) -> bool:
        if isinstance(each, Draining):
            return each.range.overlaps(key_range)
        return any(key in key_range for key in each.keys)

    def _end_belief(self, now: Instant, key_range: KeyRange) -> None:
        self.served.assign(key_range, None)
        for writing in self.writes.waiting():
            self.proceed(now, writing)

    def proceed_draining(self, now: Instant, drain: Draining) -> None:
        if self.drains.get(drain.number) is not drain:
            return
        if not self.is_drained(now, drain):
            self.drains.next_at = min(self.drains.next_at, drain.to_come.due_at)
            return
        is_written = any(self._concerns(each, drain.range) for each in self.writes.running())
        if drain.served and is_written and not drain.taken_back:
            return
        self._count_missed(now, drain.number, drain.to_come)
        self.drains.end(drain)
        if drain.taken_back:
            return
        known = self.versions.known(drain.range) if drain.served else None
        self.versions.end(drain.range)
        self._end_belief(now, drain.range)
        self.note(VolumeServerKind.DRAINED, str(drain.range))
        if self.is_stopping:
            self.stop(now)
        else:
            self._actions.append(Drained(drain.range, known))

    def is_drained(self, now: Instant, drain: Draining) -> bool:
        """Whether nobody can hit anything of it any more (V12)."""
        return drain.to_come.are_over(now)

    def _tell(self, told: dict[int, list[Item]]) -> None:
        for number, items in told.items():
            self.tell_items(number, items)

    def stop(self, now: Instant) -> None:
        """Everything is drained, and it is to close."""
        raise NotImplementedError
