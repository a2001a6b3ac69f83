"""The questions of a client to servers: fetches, renewals, and requests for a place on record.

Every question has a number that rises. One that is not answered in time is asked again, under a new
number, and only the newest counts (V2).
"""

from random import Random

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.base.noted import Noted
from tenure.base.rangemap import RangeMap
from tenure.protocol.volume.client.contacts import NOBODY, Contact
from tenure.protocol.volume.client.events import (
    Believe,
    CacheAction,
    CacheConfig,
    DoubtEntries,
    TellReaders,
    TellServer,
)
from tenure.protocol.volume.client.fetches import Fetches, Flight, OwnWrite, Question
from tenure.protocol.volume.client.known_entry import KnownEntry
from tenure.protocol.volume.limits import LISTED, LISTED_BYTES, NONCE_LIMIT
from tenure.protocol.volume.messages import AsOf, Fetch, Listed, Reconnect, Renew, Write
from tenure.protocol.volume.noted import CacheKind


class Asks:
    """The state of a client, and its questions."""

    def __init__(self, config: CacheConfig, random: Random) -> None:
        self.config = config
        self.random = random
        self.sequence = 0
        self.history = 0
        """The history of the versions that are known; 0 before the first."""
        self.routes: RangeMap[str | None] = RangeMap(None)
        self.contacts: dict[str, Contact] = {}
        self.entries: dict[Key, KnownEntry] = {}
        self.fetches = Fetches()
        self._actions: list[CacheAction] = []

    def next_sequence(self) -> int:
        """The number of the next question."""
        self.sequence += 1
        return self.sequence

    def contact(self, server: str) -> Contact:
        """The contact with a server."""
        found = self.contacts.get(server)
        if found is None:
            found = self.contacts[server] = Contact(server, self.random.randrange(1, NONCE_LIMIT))
        return found

    def answers(self, asking: Question, sequence: int) -> bool:
        """Whether that is the number of this question, and the newest of its kind (V2)."""
        return asking.sequence == sequence

    def is_newest(self, contact: Contact, sequence: int) -> bool:
        """Whether any question to this server that is to be answered has that number."""
        if contact.renewing is not None and contact.renewing.sequence == sequence:
            return True
        asked: list[Flight | OwnWrite] = [
            *self.fetches.flights.values(),
            *self.fetches.writes.values(),
        ]
        return any(
            each.server == contact.server
            and each.asking is not None
            and each.asking.sequence == sequence
            for each in asked
        )

    # --- entries ---

    def remember(self, key: Key, contact: Contact, until: Instant, as_of: AsOf) -> None:
        """A new entry, which replaces the present one."""
        self.entries[key] = KnownEntry(contact.server, contact.reader, until, as_of)

    def is_hit(self, now: Instant, key: Key) -> bool:
        """Whether a reader may take the entry now."""
        entry = self.entries.get(key)
        if entry is None or not entry.is_live or now >= entry.until:
            return False
        contact = self.contacts.get(entry.server)
        return contact is not None and contact.reader == entry.reader and contact.runs(now)

    def doubt(self, keys: tuple[Key, ...]) -> None:
        """Keep these entries only to ask about them."""
        for key in keys:
            self.entries[key].is_live = False
        if keys:
            self._actions.append(DoubtEntries(keys))

    def doubt_all(self, contact: Contact) -> None:
        """Doubt all entries of this server: none is live any longer, and its volume lease has ended
        (V8).
        """
        if contact.reader == NOBODY:
            return
        live = (each for each in self.entries.items() if each[1].is_live)
        self.doubt(tuple(key for key, entry in live if entry.reader == contact.reader))
        self._actions.append(Believe(contact.server, contact.reader, Instant(0)))
        contact.reader, contact.until = NOBODY, Instant(0)
        contact.ask_use_at = FAR_FUTURE

    # --- reading ---

    def serve(self, now: Instant, key: Key, ticket: int) -> None:
        """Serve a reader that wants an object."""
        if self.is_hit(now, key):
            self.tell_hit((ticket,), key)
            return
        flight = self.fetches.flights.get(key)
        if flight is not None:
            flight.join(ticket)
            return
        flight = self.fetches.flights[key] = Flight(key, now)
        flight.join(ticket)
        entry = self.entries.get(key)
        if entry is not None and entry.is_live and now < entry.until:
            contact = self.contacts.get(entry.server)
            if contact is not None and contact.reader == entry.reader and now >= contact.mute_until:
                self._wait_for_lease(now, contact, flight)
                return
        self.send_fetch(now, flight)

    def audit(self, now: Instant, key: Key) -> None:
        """Have a hit judged: the server reads the object, whatever it knows of it."""
        if self.is_hit(now, key) and key not in self.fetches.flights:
            flight = self.fetches.flights[key] = Flight(key, now)
            flight.audited = self.entries[key]
            self.send_fetch(now, flight)

    def _wait_for_lease(self, now: Instant, contact: Contact, flight: Flight) -> None:
        """Ask for the volume lease, since nothing else is over: its renewal serves all entries at
        once.
        """
        flight.server = contact.server
        flight.retry_at = Instant(now + self.config.retry_ns)
        self.fetches.due_by(flight.retry_at)
        contact.used = True
        self.get_lease(now, contact)

    def tell_hit(self, tickets: tuple[int, ...], key: Key) -> None:
        """Tell the readers that the entry may be taken."""
        self._actions.append(TellReaders(tickets, key, "hit", b"", self.entries[key].as_of))

    def patience_ends(self, flight: Flight) -> Instant:
        """When the waiting readers are told that no server answers (V19)."""
        return Instant(flight.asked_at + self.config.patience_ns)

    def send_fetch(self, now: Instant, flight: Flight) -> None:
        """Ask for an object; first ask for a place on record, if needed."""
        server = self.routes[flight.key]
        flight.server = server or ""
        # The pause grows each time: asking a slow server again makes it slower, and an answer that
        # it has sent meanwhile no longer counts.
        flight.retry_at = Instant(now + max(self.config.retry_ns, now - flight.asked_at))
        self.fetches.due_by(min(flight.retry_at, self.patience_ends(flight)))
        if server is None:
            return
        contact = self.contact(server)
        if contact.reader == NOBODY:
            self.get_lease(now, contact)
            return
        entry = self.entries.get(flight.key)
        is_audit = flight.audited is not None
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
        self._actions.append(TellServer(server, fetch))

    def write_message(self, contact: Contact, write: OwnWrite) -> Write:
        """A write, under its number."""
        assert write.asking is not None
        sequence = write.asking.sequence
        return Write(
            client=contact.nonce,
            epoch=contact.epoch,
            reader=contact.reader,
            sequence=sequence,
            key=write.key,
            value=write.value,
        )

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
        asking = Question(self.next_sequence(), now, tuple(each.key for each in listed))
        contact.renewing = asking
        contact.again_at = Instant(now + self.config.retry_ns)
        message = Renew(
            client=contact.nonce,
            epoch=contact.epoch,
            reader=contact.reader,
            sequence=asking.sequence,
            history=self.history,
            listed=listed,
        )
        self._actions.append(TellServer(contact.server, message))

    def reconnect(self, now: Instant, contact: Contact) -> None:
        """Ask to be put on record, and which suspects are current."""
        self.doubt_all(contact)
        contact.renewing = None
        suspects = (
            key
            for key, entry in self.entries.items()
            if not entry.is_live and self.routes[key] == contact.server
        )
        listed = self._listed(tuple(suspects))
        asking = Question(self.next_sequence(), now, tuple(each.key for each in listed))
        contact.reconnecting = asking
        contact.again_at = Instant(now + self.config.retry_ns)
        message = Reconnect(
            client=contact.nonce, sequence=asking.sequence, history=self.history, listed=listed
        )
        self._actions.append(TellServer(contact.server, message))

    def _listed(self, keys: tuple[Key, ...]) -> tuple[Listed, ...]:
        found: list[Listed] = []
        size = 0
        for key in keys:
            entry = self.entries.get(key)
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
            if self.is_waited_for(contact):
                self.reconnect(now, contact)
            else:
                contact.reconnecting = None
        elif contact.used and (contact.runs(now) or self.is_waited_for(contact)):
            self.renew(now, contact)
        else:
            contact.used, contact.renewing = False, None

    def is_waited_for(self, contact: Contact) -> bool:
        """Whether a read or a write waits until this server has put the client on record."""
        server = contact.server
        asked: list[Flight | OwnWrite] = [
            *self.fetches.flights.values(),
            *self.fetches.writes.values(),
        ]
        return any(each.asking is None and self.routes[each.key] == server for each in asked)

    def note(self, kind: CacheKind, detail: str = "") -> None:
        """Note something."""
        self._actions.append(Noted(kind, "", detail))
