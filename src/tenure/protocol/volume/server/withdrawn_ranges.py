"""Ranges that are withdrawn before they go (V12).

A range that goes with its state is served until the belief in it ends: with leases until it is
withdrawn, without them from then on. The knowledge of its writes is handed on when both are over.
"""

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.volume.messages import Item
from tenure.protocol.volume.noted import VolumeServerKind
from tenure.protocol.volume.server.context import VolumeContext
from tenure.protocol.volume.server.drains import Draining
from tenure.protocol.volume.server.events import Drained
from tenure.protocol.volume.server.invalidations import Invalidations
from tenure.protocol.volume.server.served_ranges import Serving
from tenure.protocol.volume.server.writes import Writing


class Withdrawals:
    """The part of a server that lets ranges go."""

    def __init__(self, context: VolumeContext, invalidations: Invalidations) -> None:
        self.context = context
        self.invalidations = invalidations

    def on_drain_asked(self, now: Instant, key_range: KeyRange, *, served: bool) -> None:
        pieces = self.context.served.within(key_range)
        if not pieces:
            if not self.context.is_stopping:
                self.context.act(Drained(key_range))
            return
        is_lost = any(now < serving.reads_from for _, serving in pieces)
        drain = Draining(self.context.next_wait(), key_range, served=served, is_lost=is_lost)
        self.context.drains.add(drain)
        # Answers from before are below the mark of its items, and not kept (V7).
        self.context.versions.count += 1
        for piece, serving in pieces:
            self._withdraw(now, drain, piece, serving)
        others: list[Draining | Writing] = [
            *self.context.drains.all(),
            *self.context.writes.waiting(),
        ]
        for each in others:
            if each is not drain and self._concerns(each, key_range):
                self.invalidations.wait_with(each.to_come, drain.number, drain.to_come)
        self.invalidations.send()
        if not served:
            self._count_running(key_range)
            self._end_belief(key_range)
        self.context.look_at(drain.number)

    def _count_running(self, key_range: KeyRange) -> None:
        """Count running bodies as ended: the next owner may be told of the writes before their
        values are stored.
        """
        for writing in self.context.writes.running():
            if self._concerns(writing, key_range):
                self.context.versions.written(self.context.served.numbers_of(writing.keys))

    def _withdraw(self, now: Instant, drain: Draining, piece: KeyRange, serving: Serving) -> None:
        held: dict[int, list[Key]] = {}
        for key in self.context.readers.held_in(piece):
            for reader in self.context.readers.holders(key):
                held.setdefault(reader.number, []).append(key)
        if not held:
            return
        item = Item(
            item=self.context.next_item(),
            key=piece.start,
            number=serving.number,
            count=self.context.versions.count,
            withdrawn=True,
            end=piece.end,
        )
        for number, keys in held.items():
            holder = self.context.readers.get(number)
            assert holder is not None
            self.invalidations.invalidate(
                now, holder, tuple(keys), item, drain.number, drain.to_come
            )

    @staticmethod
    def _concerns(each: Draining | Writing, key_range: KeyRange) -> bool:
        if isinstance(each, Draining):
            return each.range.overlaps(key_range)
        return any(key in key_range for key in each.keys)

    def _end_belief(self, key_range: KeyRange) -> None:
        self.context.served.end(key_range)
        self.context.loads.move(key_range)
        for writing in self.context.writes.waiting():
            self.context.look_at(writing.number)

    def look_at_due(self, now: Instant) -> None:
        """Look at the drains that may have waited long enough."""
        drains = self.context.drains
        if now >= drains.next_at:
            drains.next_at = FAR_FUTURE
            for drain in drains.all():
                self.context.look_at(drain.number)

    def proceed(self, now: Instant, drain: Draining) -> None:
        """Let the range go, if nothing is left to wait for."""
        if not drain.to_come.are_over(now):  # somebody may still hit something of it (V12)
            self.context.drains.next_at = min(self.context.drains.next_at, drain.to_come.due_at)
            return
        if drain.is_over:
            return
        self.invalidations.count_missed(now, drain.number, drain.to_come)
        # Granted anew under its number: nothing moves, and its writes stay known.
        if drain.taken_back:
            self.context.drains.end(drain)
            return
        drain.is_over = True
        # Told nothing, the next owner takes the loss for a write, and lets reads wait (V13).
        known = None if drain.is_lost else self.context.versions.known(drain.range)
        if not drain.served:
            self.context.drains.end(drain)
            self._go(drain.range)
        self.context.note(VolumeServerKind.DRAINED, str(drain.range))
        if not self.context.is_stopping:
            self.context.act(Drained(drain.range, known, drain.served))

    def _go(self, key_range: KeyRange) -> None:
        """Drop everything of a range for whose departure nothing waits any longer."""
        self.context.versions.end(key_range)
        self._end_belief(key_range)
        for drain in self.context.drains.all():
            if drain.is_over and not self.context.served.within(drain.range):
                self.context.drains.end(drain)
