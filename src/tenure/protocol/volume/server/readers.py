"""The server's record of readers, and of the objects that each may read without asking (V4 to V9,
V17, V20).

A reader is a client under a number that the server drew when the client reconnected. Its volume
lease and its object leases are counted from when their requests arrived, and for longer than the
client was told, so that the client always stops first (V3).

An item is kept until it is acknowledged: each message that gives a volume lease carries all of them
(V4). One object, or one range, has at most one item: a later one says all that the earlier said.

A client that is not on record reconnects. So forgetting a reader, the paper's unreachable set,
costs only one exchange; only readers whose volume lease has ended may be forgotten (V17).
"""

from collections.abc import Iterable, Iterator
from itertools import takewhile
from random import Random

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.volume.limits import ITEMS_WHILE_INACTIVE, NONCE_LIMIT, OBJECT_LEASES
from tenure.protocol.volume.messages import Item, Items
from tenure.protocol.volume.server.terms import Terms
from tenure.protocol.volume.server.versions import Version

_HIDDEN_BITS = 48


def label_of(client: int) -> str:
    """The first digits of a client's nonce, for people. Whoever knows all of it can take the
    client's place on record, and so have what it may still hit written over.
    """
    return f"{client >> _HIDDEN_BITS:04x}…"


class ObjectRight:
    """An object lease of one reader."""

    __slots__ = ("highest", "since", "until")

    def __init__(self, until: Instant, highest: int, since: Version) -> None:
        self.until = until
        self.highest = highest
        """The highest number of the requests for which it was given (V9)."""
        self.since = since
        """A value that was current as of this version, or later, is current while the lease runs
        (V15).
        """


class Pending:
    """An item that is not acknowledged."""

    __slots__ = ("item", "waits")

    def __init__(self, item: Item, waits: list[int]) -> None:
        self.item = item
        self.waits = waits
        """The writes and drains that wait for it."""


Target = tuple[Key, Key | None, bool]


class ReaderRecord:
    """One reader, as the server knows it."""

    __slots__ = (
        "by_target",
        "client",
        "fetches",
        "heard_at",
        "items",
        "last_write",
        "leases",
        "missed",
        "muted_until",
        "number",
        "reconnected",
        "volume_until",
    )

    def __init__(self, number: int, client: int, sequence: int, now: Instant) -> None:
        self.number = number
        self.client = client
        self.reconnected = sequence
        """The number of the Reconnect that put it on record."""
        self.heard_at = now
        self.volume_until = Instant(0)
        self.leases: dict[Key, ObjectRight] = {}
        self.items: dict[int, Pending] = {}
        self.by_target: dict[Target, int] = {}
        self.last_write = sequence
        """The number of its last write: a message that comes twice must not write twice."""
        self.missed = 0
        """How many deadlines in a row the reader has missed."""
        self.muted_until = Instant(0)
        self.fetches = 0
        """The number of its fetches that wait for a load."""

    def is_active(self, now: Instant) -> bool:
        """Whether the reader may hit."""
        return now < self.volume_until

    def unacknowledged(self) -> Items:
        """The items that travel with the reader's next volume lease (V4)."""
        return tuple(pending.item for pending in self.items.values())


class Readers:
    """All readers of one server, the one that has been silent longest first."""

    def __init__(self, terms: Terms, random: Random, most_leases: int = OBJECT_LEASES) -> None:
        self.terms = terms
        self.random = random
        self.most_leases = most_leases
        self.leases = 0
        """The count of object leases of all readers together."""
        self._by_number: dict[int, ReaderRecord] = {}
        self._by_client: dict[int, int] = {}
        self._holders: dict[Key, dict[int, None]] = {}

    def __len__(self) -> int:
        return len(self._by_number)

    def __iter__(self) -> Iterator[ReaderRecord]:
        return iter(self._by_number.values())

    # --- finding readers ---

    def get(self, number: int) -> ReaderRecord | None:
        """The reader of that number."""
        return self._by_number.get(number)

    def of_client(self, client: int) -> ReaderRecord | None:
        """The present reader of a client."""
        number = self._by_client.get(client)
        return None if number is None else self._by_number[number]

    def find(self, client: int, number: int) -> ReaderRecord | None:
        """The reader, if that number is the client's present one (V2)."""
        reader = self._by_number.get(number)
        return reader if reader is not None and reader.client == client else None

    def is_newer(self, client: int, sequence: int) -> bool:
        """Whether a Reconnect is newer than the one that put its client on record (V2)."""
        present = self.of_client(client)
        return present is None or sequence > present.reconnected

    def add(self, now: Instant, client: int, sequence: int) -> ReaderRecord:
        """Add a reader; the earlier reader of its client must be forgotten first."""
        assert client not in self._by_client
        # Drawn: a message to an earlier reader must not look like one to this (V2).
        number = self.random.randrange(1, NONCE_LIMIT)
        reader = self._by_number[number] = ReaderRecord(number, client, sequence, now)
        self._by_client[client] = number
        return reader

    def hear(self, now: Instant, reader: ReaderRecord) -> None:
        """Note that the reader was heard: its silence begins anew."""
        reader.heard_at = now
        self._by_number[reader.number] = self._by_number.pop(reader.number)

    def forget(self, reader: ReaderRecord) -> list[tuple[int, int]]:
        """Forget a reader, and return those of its items for which something waits."""
        for key in list(reader.leases):
            self.drop_lease(reader, key)
        del self._by_number[reader.number]
        del self._by_client[reader.client]
        return [(wait, n) for n, pending in reader.items.items() for wait in pending.waits]

    # --- leases ---

    def give_volume(self, reader: ReaderRecord, received_at: Instant, told_ns: int) -> None:
        """Count a volume lease from when its request came, for longer than the reader was told
        (V3).
        """
        until = Instant(received_at + self.terms.held_ns(told_ns))
        # Never earlier: it may believe in an answer that was told before (V3).
        reader.volume_until = max(reader.volume_until, until)

    def give_object(
        self, reader: ReaderRecord, key: Key, received_at: Instant, sequence: int, since: Version
    ) -> None:
        """Count an object lease of which the reader was told; nothing was written since."""
        until = Instant(received_at + self.terms.held_ns(self.terms.lease_ns))
        right = reader.leases.pop(key, None)
        if right is None:
            self.leases += 1
            right = ObjectRight(until, sequence, since)
            self._holders.setdefault(key, {})[reader.number] = None
        right.until, right.since = max(right.until, until), since
        right.highest = max(right.highest, sequence)  # not the last: requests overtake (V9)
        reader.leases[key] = right  # at the end: the one that ends last

    def drop_lease(self, reader: ReaderRecord, key: Key) -> None:
        """Drop an object lease that has ended, or whose place an item takes."""
        del reader.leases[key]
        self.leases -= 1
        holders = self._holders[key]
        del holders[reader.number]
        if not holders:
            del self._holders[key]

    def holders(self, key: Key) -> list[ReaderRecord]:
        """The readers that have an object lease on a key."""
        return [self._by_number[number] for number in self._holders.get(key, ())]

    def held_in(self, key_range: KeyRange) -> list[Key]:
        """The keys of a range on which there are object leases."""
        return sorted(key for key in self._holders if key in key_range)

    def drop_ended(self, now: Instant, reader: ReaderRecord) -> None:
        """Drop a reader's object leases that have ended. They are in the order of their ends."""
        ended = takewhile(lambda lease: lease[1].until <= now, reader.leases.items())
        for key, _ in list(ended):
            self.drop_lease(reader, key)

    def has_room(self) -> bool:
        """Whether another object lease fits (V17)."""
        return self.leases < self.most_leases

    def longest_inactive(self, now: Instant, spared: ReaderRecord) -> ReaderRecord | None:
        """The reader that goes first if there are too many object leases (V17)."""
        others = (each for each in self if each.leases and each is not spared)
        return next((each for each in others if self.may_forget(now, each)), None)

    # --- items ---

    def add_item(self, reader: ReaderRecord, item: Item, waits: list[int]) -> None:
        """Note an invalidation for a reader."""
        target = (item.key, item.end, item.withdrawn)
        before = reader.items.get(reader.by_target.get(target, 0))
        if before is not None and not before.waits:  # the later one says all that it said
            del reader.items[before.item.item]
        reader.items[item.item] = Pending(item, waits)
        reader.by_target[target] = item.item

    def acknowledged(self, reader: ReaderRecord, numbers: Iterable[int]) -> list[tuple[int, int]]:
        """Take note that a reader has applied these items, and return those for which something
        waits.
        """
        waited: list[tuple[int, int]] = []
        for number in numbers:
            pending = reader.items.pop(number, None)
            if pending is not None:
                target = (pending.item.key, pending.item.end, pending.item.withdrawn)
                if reader.by_target.get(target) == number:
                    del reader.by_target[target]
                # It is there after all: only misses in a row make it mute (V20).
                reader.missed = 0
                waited.extend((wait, number) for wait in pending.waits)
        return waited

    def missed(self, now: Instant, reader: ReaderRecord, most: int) -> bool:
        """Count a deadline that has passed. Returns whether it is one too many (V20)."""
        reader.missed += 1
        if reader.missed < most:
            return False
        reader.missed = 0
        reader.muted_until = Instant(now + self.terms.mute_ns)
        return True

    # --- forgetting ---

    def may_forget(self, now: Instant, reader: ReaderRecord) -> bool:
        """Whether the reader may be forgotten: only one that cannot hit (V17)."""
        return not reader.is_active(now)

    def forgettable(self, now: Instant) -> list[ReaderRecord]:
        """The readers that were silent for so long that the server must forget them (C6)."""
        found = []
        for reader in self:
            # They are in the order in which they were heard.
            if now < reader.heard_at + self.terms.known_ns:
                break
            if self.may_forget(now, reader):
                found.append(reader)
        return found

    def is_overloaded(self, now: Instant, reader: ReaderRecord) -> bool:
        """Whether the reader's items are too many to be kept: it is not there to take
        them (V17).
        """
        return len(reader.items) > ITEMS_WHILE_INACTIVE and self.may_forget(now, reader)

    @property
    def next_at(self) -> Instant:
        """When the next reader is to be forgotten, if it is not heard."""
        first = next(iter(self), None)
        return FAR_FUTURE if first is None else Instant(first.heard_at + self.terms.known_ns)

    def clear(self) -> None:
        """Forget all readers."""
        self._by_number.clear()
        self._by_client.clear()
        self._holders.clear()
        self.leases = 0

    def invariants(self) -> None:
        """Both indexes agree, and no bound is exceeded."""
        assert self.leases == sum(len(each.leases) for each in self)
        assert self.leases == sum(len(each) for each in self._holders.values())
        assert len(self._by_client) == len(self._by_number)
        for reader in self:
            assert self._by_client[reader.client] == reader.number
            assert set(reader.by_target.values()) <= set(reader.items)
            assert all(reader.number in self._holders[key] for key in reader.leases)
