"""The questions of a client to servers: fetches, writes, renewals, and requests for a place on
record.

Every question has a number that rises. One that is not answered in time is asked again, under a new
number, and only the newest counts (V2). A write is never asked again (V9).
"""

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.protocol.volume.client.belief import EntryBelief
from tenure.protocol.volume.client.contacts import NOBODY, Contact
from tenure.protocol.volume.client.context import ClientContext
from tenure.protocol.volume.client.fetches import Flight, OwnWrite, Question
from tenure.protocol.volume.limits import LISTED, LISTED_BYTES
from tenure.protocol.volume.messages import Fetch, Listed, Reconnect, Renew, Write


class CacheQuestions:
    """The part of a client that asks."""

    def __init__(self, context: ClientContext, belief: EntryBelief) -> None:
        self.context = context
        self.belief = belief
        self.sequence = 0
        """The number of the newest question."""

    def next_sequence(self) -> int:
        """The number of the next question."""
        self.sequence += 1
        return self.sequence

    def is_newest(self, contact: Contact, sequence: int) -> bool:
        """Whether any question to this server that is to be answered has that number."""
        if contact.renewing is not None and contact.renewing.sequence == sequence:
            return True
        return any(
            each.server == contact.server
            and each.asking is not None
            and each.asking.sequence == sequence
            for each in self.context.fetches.under_way()
        )

    # --- objects ---

    def fetch(self, now: Instant, flight: Flight) -> None:
        """Ask for an object; first ask for a place on record, if needed."""
        config, fetches = self.context.config, self.context.fetches
        server = self.context.routes[flight.key]
        flight.server = server or ""
        # The pause grows each time: asking a slow server again makes it slower, and an answer that
        # it has sent meanwhile no longer counts.
        flight.retry_at = Instant(now + max(config.retry_ns, now - flight.asked_at))
        fetches.due_by(min(flight.retry_at, flight.patience_ends(config.patience_ns)))
        if server is None:
            return
        contact = self.context.contact(server)
        # Only who is on record is told of writes, and may keep what it reads (V8).
        if contact.reader == NOBODY:
            self.get_lease(now, contact)
            return
        entry = self.belief.entries.get(flight.key)
        is_audit = flight.audited is not None
        # An audit wants the value, whatever the server knows of the entry (V21).
        flight.as_of = entry.as_of if entry is not None and not is_audit else None
        asking = flight.asking = Question(self.next_sequence(), now, (flight.key,))
        fetch = Fetch(
            client=contact.nonce,
            epoch=contact.epoch,
            reader=contact.reader,
            sequence=asking.sequence,
            key=flight.key,
            as_of=flight.as_of,
        )
        self.context.tell(contact, fetch)

    def write(self, now: Instant, contact: Contact, write: OwnWrite) -> None:
        """Have an object written."""
        asking = write.asking = Question(self.next_sequence(), now, (write.key,))
        write.server = contact.server
        self.context.fetches.writes[asking.sequence] = write
        message = Write(
            client=contact.nonce,
            epoch=contact.epoch,
            reader=contact.reader,
            sequence=asking.sequence,
            key=write.key,
            value=write.value,
        )
        self.context.tell(contact, message)

    # --- volume leases ---

    def get_lease(self, now: Instant, contact: Contact) -> None:
        """Ask for a volume lease, unless it is asked for."""
        if contact.reader == NOBODY:
            if contact.reconnecting is None and now >= contact.place_at:
                self.reconnect(now, contact)
        elif contact.renewing is None:
            self.renew(now, contact)

    def renew(self, now: Instant, contact: Contact) -> None:
        """Ask for another volume lease, and for object leases on entries that are used."""
        listed = self._listed(contact.keys_used)
        asking = contact.renewing = self._listing(now, contact, listed)
        message = Renew(
            client=contact.nonce,
            epoch=contact.epoch,
            reader=contact.reader,
            sequence=asking.sequence,
            history=self.belief.history,
            listed=listed,
        )
        self.context.tell(contact, message)

    def reconnect(self, now: Instant, contact: Contact) -> None:
        """Ask to be put on record, and which suspects are current."""
        self.belief.doubt_all(contact)
        contact.renewing = None
        suspects = (
            key
            for key, entry in self.belief.entries.items()
            if not entry.is_live and self.context.routes[key] == contact.server
        )
        listed = self._listed(tuple(suspects))
        asking = contact.reconnecting = self._listing(now, contact, listed)
        message = Reconnect(
            client=contact.nonce,
            sequence=asking.sequence,
            history=self.belief.history,
            listed=listed,
        )
        self.context.tell(contact, message)

    def _listing(self, now: Instant, contact: Contact, listed: tuple[Listed, ...]) -> Question:
        contact.again_at = Instant(now + self.context.config.retry_ns)
        # Each key leaves a mark: an item may overtake the answer that revives it (V7).
        return Question(self.next_sequence(), now, tuple(each.key for each in listed))

    def _listed(self, keys: tuple[Key, ...]) -> tuple[Listed, ...]:
        found: list[Listed] = []
        size = 0
        for key in keys:
            entry = self.belief.entries.get(key)
            if entry is None:
                continue
            size += len(key)
            if len(found) == LISTED or size > LISTED_BYTES:
                break  # the other entries are asked about when they are read
            as_of = entry.as_of
            found.append(Listed(key=key, number=as_of.number, count=as_of.count))
        return tuple(found)

    def ask_again(self, now: Instant, contact: Contact) -> None:
        """Ask again, since no answer came, as long as a reader or writer waits for it."""
        contact.again_at = FAR_FUTURE
        if contact.reader == NOBODY:
            # Nobody else needs a place: then forgetting the client costs nothing.
            if self.context.is_waited_for(contact):
                self.reconnect(now, contact)
            else:
                contact.reconnecting = None
        elif contact.used and (contact.runs(now) or self.context.is_waited_for(contact)):
            self.renew(now, contact)
        else:
            contact.used, contact.renewing = False, None
