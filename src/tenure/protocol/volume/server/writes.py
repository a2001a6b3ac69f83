"""Writes under way: which write waits for which readers, and for how long (V5).

Writes of a key go one by one, in the order of their requests; a write of several keys goes when it
is the first for each of them. When its turn comes, each holder of an object lease gets an item, and
the write waits for the holders that may still hit: until they acknowledge, or the earlier of their
two leases ends. The longest wait is fixed then, so that a reader which renews and never
acknowledges cannot hold a write up (V6).
"""

from typing import Literal

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.protocol.volume.messages import Value

Stage = Literal["queued", "waiting", "running"]


class Acknowledgements:
    """The acknowledgements that must still come before a body runs, or a range goes."""

    __slots__ = ("latest", "missing")

    def __init__(self) -> None:
        self.missing: dict[tuple[int, int], Instant] = {}
        """The reader record and item of each missing acknowledgement, and until when to wait for
        it.
        """
        self.latest = Instant(0)

    def wait_for(self, reader: int, item: int, deadline: Instant) -> None:
        """Wait for one more acknowledgement."""
        self.missing[reader, item] = deadline
        self.latest = max(self.latest, deadline)

    def came(self, reader: int, item: int) -> None:
        """Take note that a reader has applied an item, or no longer has anything."""
        self.missing.pop((reader, item), None)

    def are_over(self, now: Instant) -> bool:
        """Whether there is nothing more to wait for."""
        return not self.missing or now >= self.latest

    @property
    def due_at(self) -> Instant:
        """When the wait ends at the latest."""
        return self.latest if self.missing else Instant(0)


class Writer:
    """The client that asked for a write."""

    __slots__ = ("client", "key", "reader", "received_at", "sequence", "value")

    def __init__(
        self, client: int, reader: int, sequence: int, received_at: Instant, key: Key, value: Value
    ) -> None:
        self.client = client
        self.reader = reader
        self.sequence = sequence
        self.received_at = received_at
        self.key = key
        self.value = value


class Writing:
    """One write."""

    __slots__ = ("began_at", "given_up", "keys", "number", "stage", "ticket", "to_come", "writer")

    def __init__(
        self, number: int, ticket: int, keys: tuple[Key, ...], writer: Writer | None
    ) -> None:
        self.number = number
        self.ticket = ticket
        """The application's ticket; 0 if a client asked."""
        self.keys = keys
        self.writer = writer
        self.stage: Stage = "queued"
        self.to_come = Acknowledgements()
        self.began_at = Instant(0)
        """When the write's turn came."""
        self.given_up = False
        """Whether its body will not run; the write ends once nobody can hit what its items are
        about.
        """


class Writes:
    """All writes on their way, in the order of their requests."""

    def __init__(self) -> None:
        self._by_number: dict[int, Writing] = {}
        self._queues: dict[Key, dict[int, None]] = {}
        self.next_at = FAR_FUTURE
        """When a write may be due next; never later than it is."""

    def __len__(self) -> int:
        return len(self._by_number)

    def get(self, number: int) -> Writing | None:
        """The write of that number."""
        return self._by_number.get(number)

    def of_ticket(self, ticket: int) -> Writing | None:
        """The write that the application asked for under that ticket."""
        return next((each for each in self._by_number.values() if each.ticket == ticket), None)

    def add(self, writing: Writing) -> None:
        """Add a write."""
        self._by_number[writing.number] = writing
        for key in writing.keys:
            self._queues.setdefault(key, {})[writing.number] = None

    def is_its_turn(self, writing: Writing) -> bool:
        """Whether it is the first for each of its keys."""
        return writing.stage == "queued" and all(
            next(iter(self._queues[key])) == writing.number for key in writing.keys
        )

    def following(self, writing: Writing) -> list[Writing]:
        """Take a write out, and return the writes whose turn it is now."""
        del self._by_number[writing.number]
        heads: dict[int, None] = {}
        for key in writing.keys:
            queue = self._queues[key]
            del queue[writing.number]
            if queue:
                heads[next(iter(queue))] = None
            else:
                del self._queues[key]
        found = (self._by_number[number] for number in heads)
        return [each for each in found if self.is_its_turn(each)]

    def is_written(self, key: Key) -> bool:
        """Whether a write of the key has its turn: no object lease is given on it (V5)."""
        queue = self._queues.get(key)
        return queue is not None and self._by_number[next(iter(queue))].stage != "queued"

    def is_running(self, key: Key) -> bool:
        """Whether the body of a write of the key runs."""
        queue = self._queues.get(key)
        return queue is not None and self._by_number[next(iter(queue))].stage == "running"

    def waiting(self) -> list[Writing]:
        """The writes that wait for acknowledgements, or for the end of a quiet."""
        return [each for each in self._by_number.values() if each.stage == "waiting"]

    def running(self) -> list[Writing]:
        """The writes whose bodies run."""
        return [each for each in self._by_number.values() if each.stage == "running"]

    def clear(self) -> list[Writing]:
        """Forget all writes, and return them."""
        found = list(self._by_number.values())
        self._by_number.clear()
        self._queues.clear()
        return found

    def invariants(self) -> None:
        """At most one write of a key has its turn."""
        for queue in self._queues.values():
            stages = [self._by_number[number].stage for number in queue]
            assert stages[0] == "queued" or set(stages[1:]) <= {"queued"}, stages
            assert set(stages[1:]) <= {"queued"}, stages
