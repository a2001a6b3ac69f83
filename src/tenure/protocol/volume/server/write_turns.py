"""Writes, each in its turn: the readers that are told, the wait for them, and the body (V5, V9)."""

from collections.abc import Sequence

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.protocol.volume.limits import WRITES
from tenure.protocol.volume.messages import Item, Write
from tenure.protocol.volume.noted import VolumeServerKind
from tenure.protocol.volume.server.answers import Answers
from tenure.protocol.volume.server.context import VolumeContext
from tenure.protocol.volume.server.events import BodyEnded, FailedWhy, FailWrite, RunBody
from tenure.protocol.volume.server.invalidations import Invalidations
from tenure.protocol.volume.server.readers import ReaderRecord
from tenure.protocol.volume.server.writes import Writer, Writing


class WriteTurns:
    """The part of a server that writes."""

    def __init__(
        self, context: VolumeContext, invalidations: Invalidations, answers: Answers
    ) -> None:
        self.context = context
        self.invalidations = invalidations
        self.answers = answers

    def on_write_asked(self, now: Instant, ticket: int, keys: tuple[Key, ...]) -> None:
        if not keys:
            raise ValueError("a write has no keys; name at least one")
        if len(self.context.writes) >= WRITES:
            self.context.act(FailWrite(ticket, "too many"))
        elif self.context.is_closed:
            self.context.act(FailWrite(ticket, "closed"))
        else:
            self._add_write(now, ticket, tuple(dict.fromkeys(keys)), None)

    def on_write(self, now: Instant, reader: ReaderRecord, message: Write) -> None:
        if message.sequence <= reader.last_write:  # a message that comes twice writes once (V2)
            self.context.note(VolumeServerKind.OLD_REQUEST, "write")
            return
        reader.last_write = message.sequence
        if len(self.context.writes) >= WRITES:
            self.context.refuse(message, "too many")
        elif self.answers.is_here(message):
            writer = Writer(
                message.client, reader.number, message.sequence, now, message.key, message.value
            )
            self._add_write(now, 0, (message.key,), writer)

    def on_given_up(self, now: Instant, ticket: int) -> None:
        """Take note that a write was given up. Readers whose leases it took are still waited for:
        the next write needs that.
        """
        writing = self.context.writes.of_ticket(ticket)
        if writing is None or writing.stage == "running":
            return
        writing.given_up = True
        if writing.stage == "queued":
            self._end_write(now, writing)
        else:
            self.context.look_at(writing.number)

    def _add_write(
        self, now: Instant, ticket: int, keys: tuple[Key, ...], writer: Writer | None
    ) -> None:
        writing = Writing(self.context.next_wait(), ticket, keys, writer)
        self.context.writes.add(writing)
        if self.context.writes.is_its_turn(writing):
            self._begin_write(now, writing)

    def _begin_write(self, now: Instant, writing: Writing) -> None:
        """Begin a write's turn: from here on no object lease on its keys is given (V5)."""
        writing.stage = "waiting"
        writing.began_at = now
        for key in writing.keys:
            serving = self.context.served[key]
            if serving is None:
                continue
            holders = self.context.readers.holders(key)
            if holders:
                self._invalidate(now, writing, key, serving.number, holders)
            # A drain took leases off the record whose holders may still hit this key (V5).
            for drain in self.context.drains.all():
                if key in drain.range:
                    self.invalidations.wait_with(drain.to_come, writing.number, writing.to_come)
        self.invalidations.send()
        self.context.look_at(writing.number)

    def _invalidate(
        self,
        now: Instant,
        writing: Writing,
        key: Key,
        number: int,
        holders: Sequence[ReaderRecord],
    ) -> None:
        item = Item(
            item=self.context.next_item(),
            key=key,
            number=number,
            # As the write will count: answers from before it are below the mark (V7).
            count=self.context.versions.count + 1,
        )
        for reader in holders:
            # It made its own entry dead before it sent the write (V9).
            if self.acknowledges_by_writing(reader, key, writing):
                self.context.readers.drop_lease(reader, key)
                continue
            self.invalidations.invalidate(
                now, reader, (key,), item, writing.number, writing.to_come
            )

    def acknowledges_by_writing(self, reader: ReaderRecord, key: Key, writing: Writing) -> bool:
        """Whether the write is this reader's own, and newer than its lease (V9)."""
        writer = writing.writer
        return (
            writer is not None
            and writer.reader == reader.number
            # What was asked for after the write, the write did not kill.
            and reader.leases[key].highest < writer.sequence
        )

    def look_at_due(self, now: Instant) -> None:
        """Look at the writes that may have waited long enough."""
        writes = self.context.writes
        if now >= writes.next_at:
            writes.next_at = FAR_FUTURE
            for writing in writes.waiting():
                self.context.look_at(writing.number)

    def due_at(self, writing: Writing) -> Instant:
        return max(writing.to_come.due_at, self.context.served.quiet_until(writing.keys))

    def proceed(self, now: Instant, writing: Writing) -> None:
        """Run the body, if nothing is left to wait for."""
        if writing.stage != "waiting" or self.context.writes.get(writing.number) is not writing:
            return  # it has ended meanwhile
        if not writing.given_up and self.has_moved(writing):
            # Its items have replaced object leases on keys that are still here. The next write of
            # those keys waits behind it until their holders can no longer hit.
            self.fail(writing, "moved")
            writing.given_up = True
        if writing.given_up and writing.to_come.are_over(now):
            self.invalidations.count_missed(now, writing.number, writing.to_come)
            self._end_write(now, writing)
            return
        # Readers of an earlier server are on no record here: the quiet stands for them (V13).
        if not writing.to_come.are_over(now) or now < self.context.served.quiet_until(writing.keys):
            self.context.writes.next_at = min(self.context.writes.next_at, self.due_at(writing))
            return
        self.invalidations.count_missed(now, writing.number, writing.to_come)
        writing.stage = "running"
        for key in writing.keys:
            # What is being read may be older than what the body writes: nobody keeps it (V10).
            self.context.loads.overtake(key)
        writer = writing.writer
        value = b"" if writer is None else writer.value
        waited_ns = now - writing.began_at
        self.context.act(
            RunBody(
                writing.number,
                writing.ticket,
                writing.keys,
                self.context.served.number_of(writing.keys),
                waited_ns,
                value,
                self.context.served.numbers_of(writing.keys),
            )
        )

    def has_moved(self, writing: Writing) -> bool:
        """Whether some of its keys are no longer served here: then its body will not run."""
        return any(self.context.served[key] is None for key in writing.keys)

    def on_body_ended(self, now: Instant, event: BodyEnded) -> None:
        writing = self.context.writes.get(event.write)
        if writing is None or writing.stage != "running":
            self.context.note(VolumeServerKind.STRANGE_EVENT, f"body {event.write}")
            return
        if not event.ok:
            self.context.note(VolumeServerKind.BODY_RAISED, event.detail)
        # Also if it raised: nobody knows what it had stored by then (V5).
        self.context.versions.written(self.context.served.numbers_of(writing.keys))
        self._end_write(now, writing, event)

    def _end_write(self, now: Instant, writing: Writing, ended: BodyEnded | None = None) -> None:
        following = self.context.writes.following(writing)
        for each in following:
            self._begin_write(now, each)
        # After the next writes have begun: it must give no lease on what they write (V5).
        if ended is not None and writing.writer is not None:
            self.answers.answer_write(now, writing.writer, ended)

    def fail(self, writing: Writing, why: FailedWhy) -> None:
        if writing.ticket:
            self.context.act(FailWrite(writing.ticket, why))
        elif writing.writer is not None:
            self.answers.answer_failed(writing.writer)
