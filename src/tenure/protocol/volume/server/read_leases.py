"""Read leases: a server gives them to readers, each for a bounded time.

Every object lease is given here, if no write and no drain forbids it (V5, V12); and every volume
lease, within the owner's term (V11).
"""

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.volume.limits import LISTED
from tenure.protocol.volume.messages import Listed, Reconnect, Renew
from tenure.protocol.volume.server.context import VolumeContext
from tenure.protocol.volume.server.invalidations import Invalidations
from tenure.protocol.volume.server.readers import ReaderRecord
from tenure.protocol.volume.server.versions import Version


class ReadLeases:
    """The leases that a server gives to readers."""

    def __init__(self, context: VolumeContext, invalidations: Invalidations) -> None:
        self.context = context
        self.invalidations = invalidations

    # --- volume leases ---

    def term_for(self, now: Instant, reader: ReaderRecord, received_at: Instant) -> int:
        """The length of a volume lease that the reader is told, for a request that came then."""
        # A mute reader reads without leases, so that no write waits for it again (V20).
        if now < reader.muted_until or self.context.is_closed:
            return 0
        return min(self.context.config.terms.term_ns, self.bound_ns(received_at))

    def bound_ns(self, received_at: Instant) -> int:
        """The longest length that may be told: the lease must end within the owner's term (V11), by
        the time that is written down (V16), and before the next owner may write (V13).
        """
        ends_by = min(self.context.term_until, self.context.opening.ends_by)
        # Less than is left, by the worst of clocks: the reader stops before the term does.
        left_ns = self.context.config.terms.told_ns(ends_by - received_at)
        return min(left_ns, self.context.longest_ns)

    def give_volume(self, now: Instant, reader: ReaderRecord, received_at: Instant) -> int:
        """Give a volume lease, and return its length; 0 if none can be given."""
        told_ns = self.term_for(now, reader, received_at)
        if told_ns:
            self.context.readers.give_volume(reader, received_at, told_ns)
        return told_ns

    # --- object leases ---

    def may_lease(self, now: Instant, key: Key) -> bool:
        """Whether an object lease on a key may be given now."""
        return (
            self.context.served[key] is not None
            # Who got it now would not be told of the write that is under way (V5).
            and not self.context.writes.is_written(key)
            # The same of a range that is about to go (V12).
            and not self.context.drains.is_draining(key)
            and not self.context.is_stopping
            # Until then, others may hit what the dead owner had, and this has lost (V13).
            and now >= self.context.served.reads_from(key)
        )

    def give_object(
        self,
        now: Instant,
        reader: ReaderRecord,
        key: Key,
        sequence: int,
        received_at: Instant,
        as_of: Version,
    ) -> int:
        """Give an object lease on what is current as of then, and return its length; 0 if none can
        be given.
        """
        if not self.may_lease(now, key):
            return 0
        right = reader.leases.get(key)
        if right is None:
            self.context.readers.drop_ended(now, reader)
            self.invalidations.make_room(now, reader)
            if not self.context.readers.has_room():
                return 0
        # The answer with the earlier lease may be on its way yet, so its entry counts (V15).
        since = min(as_of, right.since) if right is not None and now < right.until else as_of
        self.context.readers.give_object(reader, key, received_at, sequence, since)
        return self.context.config.terms.lease_ns

    def live(
        self, now: Instant, reader: ReaderRecord, message: Reconnect | Renew
    ) -> tuple[Listed, ...]:
        """Give an object lease on each listed entry that is current, and return these (V8, V15)."""
        # Versions of two histories cannot be compared (V15).
        if message.history != self.context.history:
            return ()
        # Before any lease is given: giving one changes what is held.
        held = {each.key for each in message.listed if self.is_held(now, reader, each)}
        live = []
        for listed in message.listed[:LISTED]:
            key = listed.key
            is_current = key in held or self.is_current(key, listed.version)
            if is_current and self.give_object(
                now, reader, key, message.sequence, now, listed.version
            ):
                number, count = self.context.version_of(key)
                live.append(Listed(key=key, number=number, count=count))
        return tuple(live)

    @staticmethod
    def is_held(now: Instant, reader: ReaderRecord, listed: Listed) -> bool:
        """Whether the reader's object lease runs, and was given on the entry that the reader has.
        Then nothing was written since, even if hardly any write is known. The reader's entry may be
        older than the lease, since the answer that gave it may not have arrived.
        """
        right = reader.leases.get(listed.key)
        return right is not None and now < right.until and listed.version >= right.since

    def is_current(self, key: Key, version: tuple[int, int]) -> bool:
        """Whether an entry of this history is current (V15)."""
        return self.context.served[key] is not None and self.context.versions.is_current(
            key, version
        )
