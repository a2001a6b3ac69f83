"""A client's fetches and writes under way, and the old values that they must not bring back (V7,
V9, V10).

A request leaves a mark for each object that it asks about. An invalidation of the object that
arrives meanwhile raises the mark, so that an answer which the server gave before it is not kept,
however late it comes. Waiting readers get the answer anyway: its value was current when the server
read it, and that was after they asked.

A reader that joins a fetch under way asked after the fetch was sent. A write may have come between,
which a client without a volume lease is not told of; so such readers take the answer only if it was
kept, and otherwise share one more fetch.
"""

from collections.abc import Iterator

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.protocol.volume.client.known_entry import KnownEntry
from tenure.protocol.volume.messages import AsOf, Item, Value

Version = tuple[int, int]
NO_MARK: Version = (0, 0)
NOTHING_IS_KEPT: Version = (1 << 63, 0)


class Marks:
    """The version from which on answers about each object are kept (V7)."""

    __slots__ = ("keys",)

    def __init__(self, keys: tuple[Key, ...]) -> None:
        self.keys: dict[Key, Version] = dict.fromkeys(keys, NO_MARK)

    def admits(self, key: Key, version: Version) -> bool:
        """Whether an answer that is current as of `version` may be kept."""
        return version >= self.keys.get(key, NOTHING_IS_KEPT)

    def apply(self, item: Item) -> None:
        """Raise the marks of the objects that an item is about."""
        if not item.withdrawn:
            self.raise_to(item.key, item.version)
            return
        key_range = item.range
        for key in self.keys:
            if key in key_range:
                self.raise_to(key, item.version)

    def raise_to(self, key: Key, version: Version) -> None:
        """Raise a mark: answers below this version are not kept."""
        if key in self.keys:
            self.keys[key] = max(self.keys[key], version)


class Question:
    """A question that is to be answered."""

    __slots__ = ("marks", "sent_at", "sequence")

    def __init__(self, sequence: int, sent_at: Instant, keys: tuple[Key, ...]) -> None:
        self.sequence = sequence
        self.sent_at = sent_at
        """The instant from which the client counts the leases in the answer (V3)."""
        self.marks = Marks(keys)

    def is_answered_by(self, sequence: int) -> bool:
        """Whether an answer has the number of this question, the newest of its kind (V2)."""
        return self.sequence == sequence


class Flight:
    """The readers that wait for one object, and its fetch."""

    __slots__ = (
        "as_of",
        "asked_at",
        "asking",
        "audited",
        "joiners",
        "key",
        "retry_at",
        "server",
        "starters",
    )

    def __init__(self, key: Key, now: Instant) -> None:
        self.key = key
        self.server = ""
        self.asking: Question | None = None
        """The question under way; None until it is sent, and once its answer is void."""
        self.as_of: AsOf | None = None
        """The version that the question told."""
        self.asked_at = now
        self.retry_at = now
        self.starters: list[int] = []
        """The readers that asked before the question was sent."""
        self.joiners: list[int] = []
        self.audited: KnownEntry | None = None
        """The entry that the answer is to judge: then the fetch asks for the value itself."""

    def tickets(self) -> tuple[int, ...]:
        """All who wait."""
        return (*self.starters, *self.joiners)

    def patience_ends(self, patience_ns: int) -> Instant:
        """When the waiting readers are told that no server answers (V19)."""
        return Instant(self.asked_at + patience_ns)

    def join(self, ticket: int) -> None:
        """Add one more reader."""
        (self.starters if self.asking is None else self.joiners).append(ticket)

    def void(self) -> None:
        """Make the answer void; all who wait have asked before the question is sent again."""
        self.asking = None
        self.starters += self.joiners
        self.joiners = []


class OwnWrite:
    """A write of this client."""

    __slots__ = ("asked_at", "asking", "key", "server", "ticket", "value")

    def __init__(self, ticket: int, key: Key, value: Value, now: Instant) -> None:
        self.ticket = ticket
        self.key = key
        self.value = value
        self.server = ""
        self.asked_at = now
        self.asking: Question | None = None
        """The question under way; None until it is sent. It is never sent twice."""


class Fetches:
    """All fetches and writes on their way."""

    def __init__(self) -> None:
        self.flights: dict[Key, Flight] = {}
        self.writes: dict[int, OwnWrite] = {}
        self.next_at = FAR_FUTURE
        """When a fetch or write may be due next; never later than it is."""

    def due_by(self, at: Instant) -> None:
        """Note that something is due then."""
        self.next_at = min(self.next_at, at)

    def under_way(self) -> Iterator[Flight | OwnWrite]:
        """All fetches and writes, sent or not."""
        yield from self.flights.values()
        yield from self.writes.values()

    def asked(self) -> Iterator[Question]:
        """All requests that are to be answered."""
        for each in self.under_way():
            if each.asking is not None:
                yield each.asking

    def flight_of(self, sequence: int) -> Flight | None:
        """The fetch whose question under way has this number."""
        for flight in self.flights.values():
            if flight.asking is not None and flight.asking.sequence == sequence:
                return flight
        return None

    def apply(self, item: Item) -> None:
        """Apply an invalidation to all marks."""
        for asking in self.asked():
            asking.marks.apply(item)

    def raise_to(self, key: Key, version: Version) -> None:
        """Raise the marks of a key: answers below this version are not kept."""
        for asking in self.asked():
            asking.marks.raise_to(key, version)
