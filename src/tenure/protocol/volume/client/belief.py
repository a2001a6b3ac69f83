"""A client's belief: which entries it has, which of them are live, and under which volume lease.

A client takes from an answer the items first, then the lease, then the entry (V1, V4, V7). The
actions are carried out in this order too, because a reader may look at any time: an entry must be
seen dead before the lease under which it was live goes on.
"""

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.protocol.volume.client.contacts import NOBODY, Contact
from tenure.protocol.volume.client.context import ClientContext
from tenure.protocol.volume.client.events import Believe, DoubtEntries, DropEntries, KeepEntry
from tenure.protocol.volume.client.fetches import Question
from tenure.protocol.volume.client.known_entry import KnownEntry
from tenure.protocol.volume.messages import (
    Acknowledge,
    AsOf,
    Fetched,
    FetchedKind,
    Item,
    Items,
    Listed,
    Value,
    WriteDone,
)
from tenure.protocol.volume.noted import CacheKind


class EntryBelief:
    """The part of a client that makes entries live and dead."""

    def __init__(self, context: ClientContext) -> None:
        self.context = context
        self.history = 0
        """The history of the versions that are known; 0 before the first."""
        self.entries: dict[Key, KnownEntry] = {}

    def is_hit(self, now: Instant, key: Key) -> bool:
        """Whether a reader may take the entry now."""
        entry = self.entries.get(key)
        if entry is None or not entry.is_live or now >= entry.until:
            return False
        contact = self.context.contacts.get(entry.server)
        return contact is not None and contact.reader == entry.reader and contact.runs(now)

    def as_of(self, number: int, count: int) -> AsOf:
        """The version that a server told, in the history that is known."""
        return AsOf(history=self.history, number=number, count=count)

    # --- taking an answer ---

    def take(
        self, now: Instant, contact: Contact, asking: Question, term_ns: int, items: Items
    ) -> None:
        """Take the items first, then the volume lease (V4)."""
        # Dead before the lease goes on: a reader may look between the two (V1).
        contact.has_answered()
        self.apply_items(contact, items)
        self.believe(now, contact, asking, term_ns)

    def apply_items(self, contact: Contact, items: Items) -> None:
        """Make written entries dead, and withdrawn ones suspect."""
        for item in items:
            # First: an answer from before the item may come after it (V7).
            self.context.raise_marks(contact, item)
            if item.withdrawn:
                self._doubt_withdrawn(contact, item)
                continue
            entry = self.entries.get(item.key)
            # A late item says nothing of what was read after its write.
            if entry is not None and not self._is_newer(entry.as_of, item):
                self.drop(item.key)

    def _is_newer(self, as_of: AsOf, item: Item) -> bool:
        return as_of.history == self.history and as_of.version >= item.version

    def acknowledge(self, contact: Contact, items: Items) -> None:
        """Acknowledge items: the entries that they are about are dead, and no reader takes them any
        longer.
        """
        if items:
            numbers = tuple(item.item for item in items)
            message = Acknowledge(
                client=contact.nonce, epoch=contact.epoch, reader=contact.reader, items=numbers
            )
            self.context.tell(contact, message)

    def believe(self, now: Instant, contact: Contact, asking: Question, term_ns: int) -> None:
        until = Instant(asking.sent_at + term_ns)  # not from now, when the answer came (V3)
        # Answers overtake each other, and the server counts on the longest.
        contact.until = max(contact.until, until)
        contact.term_ns = term_ns or contact.term_ns
        # Fetches do not put this off: object leases that end soon are renewed then, too.
        contact.ask_use_at = min(
            contact.ask_use_at, max(Instant(asking.sent_at + term_ns // 3), now)
        )
        self.context.act(Believe(contact.server, contact.reader, contact.until))

    def fill(
        self,
        now: Instant,
        contact: Contact,
        asking: Question,
        message: Fetched | WriteDone,
        kind: FetchedKind,
        value: Value,
    ) -> None:
        """Take the value in an answer. Without a lease nobody hits the entry: it is the value that
        was known last, and the server is not asked about it, because a write may have overtaken it.
        """
        key, lease_ns = message.key, message.lease_ns
        as_of = self.as_of(message.number, message.count)
        if lease_ns and asking.marks.admits(key, message.version):  # no item came meanwhile (V7)
            self.put(contact, asking, key, as_of, lease_ns, kind, value)
            return
        if lease_ns:
            self.context.note(CacheKind.LATE_FILL)
        if self.is_hit(now, key):
            return
        self.put(contact, asking, key, as_of, 0, kind, value)
        self.doubt((key,))
        if kind != "unchanged":
            del self.entries[key]

    def put(
        self,
        contact: Contact,
        asking: Question,
        key: Key,
        as_of: AsOf,
        lease_ns: int,
        kind: FetchedKind,
        value: Value = b"",
    ) -> None:
        """A new entry, which replaces the present one."""
        until = Instant(asking.sent_at + lease_ns)
        self.entries[key] = KnownEntry(contact.server, contact.reader, until, as_of)
        self.context.act(KeepEntry(key, contact.server, contact.reader, until, as_of, kind, value))

    def revive(
        self, contact: Contact, asking: Question, live: tuple[Listed, ...], lease_ns: int
    ) -> None:
        """Make entries that the server has found current live again, as new ones."""
        for listed in live:
            entry = self.entries.get(listed.key)
            # Dropped, or filled anew, since it was listed.
            if entry is None or entry.as_of.version > listed.version:
                continue
            if asking.marks.admits(listed.key, listed.version):
                as_of = self.as_of(listed.number, listed.count)
                self.put(contact, asking, listed.key, as_of, lease_ns, "unchanged")

    # --- believing no longer ---

    def drop(self, key: Key) -> None:
        """Make an entry dead."""
        self.entries.pop(key, None)
        self.context.act(DropEntries((key,)))  # also what was known last

    def forget(self, keys: tuple[Key, ...]) -> None:
        """Forget entries whose values had to make room."""
        for key in keys:
            self.entries.pop(key, None)

    def doubt(self, keys: tuple[Key, ...]) -> None:
        """Keep these entries only to ask about them."""
        for key in keys:
            self.entries[key].is_live = False
        if keys:
            self.context.act(DoubtEntries(keys))

    def doubt_all(self, contact: Contact) -> None:
        """Doubt all entries of this server: none is live any longer, and its volume lease has ended
        (V8).
        """
        if contact.reader == NOBODY:
            return
        live = (each for each in self.entries.items() if each[1].is_live)
        self.doubt(tuple(key for key, entry in live if entry.reader == contact.reader))
        # Entries are dead before the end moves: readers look in the opposite order (V1).
        self.context.act(Believe(contact.server, contact.reader, Instant(0)))
        contact.reader, contact.until = NOBODY, Instant(0)
        contact.ask_use_at = FAR_FUTURE

    def _doubt_withdrawn(self, contact: Contact, item: Item) -> None:
        key_range = item.range
        doubted = tuple(
            key
            for key, entry in self.entries.items()
            if entry.is_live
            and key in key_range
            and entry.reader == contact.reader
            and not self._is_newer(entry.as_of, item)
        )
        self.doubt(doubted)

    def meet_history(self, history: int) -> None:
        """Meet another history: nothing of the old one can be compared with it (V15)."""
        if history == self.history:
            return
        if self.history:
            self.context.note(CacheKind.ANOTHER_HISTORY)
        self.history = history
        others = tuple(key for key, e in self.entries.items() if e.as_of.history != history)
        for key in others:
            del self.entries[key]
        if others:
            self.context.act(DropEntries(others))
