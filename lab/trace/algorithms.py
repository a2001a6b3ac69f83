"""The seven algorithms of table 1, as far as a trace without failures shows them.

A renewal is a request and its answer, an invalidation a message and its acknowledgement. The data
and invalidations that a volume lease's renewal carries cost no message of their own, except that
invalidations are acknowledged. A lease of unlimited length is a callback.
"""

from abc import ABC, abstractmethod
from math import inf
from typing import NamedTuple

from lab.trace.tally import Tally
from lab.trace.workload import Trace

EXCHANGE = 2
"""Messages: a request and its answer, or an invalidation and its acknowledgement."""
ACKNOWLEDGED = 1
"""The further message of an exchange whose answer carries invalidations."""
RECONNECTION = 4
"""Messages: the request that is answered with `Unknown`, and the exchange that reconnects."""


class Algorithm(ABC):
    """One way to keep caches consistent."""

    ack_wait = 0.0
    """Seconds for which a write waits at most for a client that does not answer."""
    worst_stale = 0.0
    """Seconds for which a client may be shown an old value when its server cannot reach it."""

    def __init__(self, trace: Trace, tally: Tally) -> None:
        self.volume_of = trace.volume_of
        self.tally = tally
        self.ends_at = trace.ends_at

    @abstractmethod
    def read(self, now: float, client: int, file: int) -> None:
        """A client reads a file."""

    @abstractmethod
    def write(self, now: float, file: int) -> None:
        """A server's file is written."""

    @abstractmethod
    def end(self) -> None:
        """The trace is over: count what is left."""


class Poll(Algorithm):
    """Believe a cached object for `timeout` after it was validated (2.2); 0 is poll each read."""

    def __init__(self, trace: Trace, tally: Tally, timeout: float) -> None:
        super().__init__(trace, tally)
        self.timeout = self.worst_stale = timeout
        self.versions = [0] * len(trace.volume_of)
        self.validated: list[dict[int, tuple[float, int]]] = [{} for _ in trace.volume_of]

    def read(self, now: float, client: int, file: int) -> None:
        """Ask, unless it was asked recently enough."""
        version = self.versions[file]
        at, seen = self.validated[file].get(client, (-inf, version))
        if now - at < self.timeout:
            self.tally.stale_reads += seen != version
            return
        self.validated[file][client] = (now, version)
        self.tally.say(now, self.volume_of[file], EXCHANGE)

    def write(self, now: float, file: int) -> None:
        """Write without telling anybody."""
        self.versions[file] += 1

    def end(self) -> None:
        """The server remembers nothing."""


class LeaseRecord(NamedTuple):
    """A lease as its server remembers it."""

    since: float
    until: float


NOTHING = LeaseRecord(-inf, -inf)


class WaitingItem(NamedTuple):
    """An invalidation that waits for its client to come back."""

    since: float
    file: int
    until: float
    """When the client's lease on the file ends; until then it believes that it has it."""


class ObjectLease(Algorithm):
    """Believe a cached object under a lease (2.4); with `term` infinite, callbacks (2.3)."""

    def __init__(self, trace: Trace, tally: Tally, term: float) -> None:
        super().__init__(trace, tally)
        self.term = self.ack_wait = term
        self.leases: list[dict[int, LeaseRecord]] = [{} for _ in trace.volume_of]
        """The lease of each client, for each file."""

    def read(self, now: float, client: int, file: int) -> None:
        """Renew the lease if it has ended."""
        if self.leases[file].get(client, NOTHING).until <= now:
            self.tally.say(now, self.volume_of[file], EXCHANGE)
            self.grant(now, client, file)

    def grant(self, now: float, client: int, file: int) -> None:
        """Begin an object lease anew."""
        self.charge(now, client, file)
        self.leases[file][client] = LeaseRecord(now, now + self.term)

    def charge(self, now: float, client: int, file: int) -> None:
        """Count the record of a lease up to now, or for as long as the server had it."""
        record = self.leases[file].get(client)
        if record is not None:
            self.count(self.volume_of[file], record, min(now, self.forgotten_at(client, file)))

    def count(self, volume: int, record: LeaseRecord, end: float) -> None:
        """Count a record that was there until `end` at the latest."""
        self.tally.record_seconds[volume] += max(0.0, min(record.until, end) - record.since)

    def forgotten_at(self, client: int, file: int) -> float:
        """When the server forgets what it knows of a client."""
        return inf

    def write(self, now: float, file: int) -> None:
        """Invalidate at every client whose lease runs, and wait for its word."""
        holders = self.end_leases(now, file)
        if holders:
            self.tally.say(now, self.volume_of[file], EXCHANGE * len(holders))

    def end_leases(self, now: float, file: int) -> list[int]:
        """End all leases on a file; which clients had one that ran."""
        leases = self.leases[file]
        holders = [client for client, record in leases.items() if record.until > now]
        for client in leases:
            self.charge(now, client, file)
        leases.clear()
        return holders

    def end(self) -> None:
        """Count the leases that there still are."""
        for file in range(len(self.leases)):
            self.end_leases(self.ends_at, file)


class VolumeLease(ObjectLease):
    """Believe a cached object under its lease and its volume's together (3.1).

    Each exchange renews both: the object's, and for `volume_term` the volume's.
    """

    def __init__(self, trace: Trace, tally: Tally, volume_term: float, term: float) -> None:
        super().__init__(trace, tally, term)
        self.volume_term = volume_term
        self.ack_wait = min(volume_term, term)
        self.volumes: list[dict[int, LeaseRecord]] = [{} for _ in range(trace.volumes)]
        """The lease of each client, for each volume."""

    def read(self, now: float, client: int, file: int) -> None:
        """Renew both leases if either has ended."""
        volume = self.volume_of[file]
        record = self.volumes[volume].get(client, NOTHING)
        if record.until <= now or self.leases[file].get(client, NOTHING).until <= now:
            self.tally.say(now, volume, EXCHANGE)
            self.count(volume, record, now)
            self.volumes[volume][client] = LeaseRecord(now, now + self.volume_term)
            self.grant(now, client, file)

    def end(self) -> None:
        """Count the leases that there still are."""
        super().end()
        for volume, records in enumerate(self.volumes):
            for record in records.values():
                self.count(volume, record, self.ends_at)


class Delayed(VolumeLease):
    """Tell a client whose volume lease has ended only when it renews that (3.2).

    Such a client is inactive. Its invalidations wait in a list. `patience` seconds after its volume
    lease ended, the server forgets the list and the client's object leases, and the client has to
    reconnect. With `best_effort` no write waits for anybody (3.3); messages are the same.

    The paper counts one exchange for a read that finds its volume lease over, whatever waits. The
    machines renew the volume lease first, for all objects at once; a client that learns then that
    the object was written fetches it with another exchange. `one_by_one` counts that.
    """

    def __init__(
        self,
        trace: Trace,
        tally: Tally,
        volume_term: float,
        term: float,
        patience: float = inf,
        *,
        best_effort: bool = False,
        one_by_one: bool = False,
    ) -> None:
        super().__init__(trace, tally, volume_term, term)
        self.one_by_one = one_by_one
        self.patience = patience
        if best_effort:
            self.ack_wait, self.worst_stale = 0.0, min(volume_term, term)
        self.pending: list[dict[int, list[WaitingItem]]] = [{} for _ in range(trace.volumes)]
        """The items that each inactive client is to be told."""
        self.held: list[dict[int, set[int]]] = [{} for _ in range(trace.volumes)]
        """The files on which each client may have a lease."""

    def forgotten_at(self, client: int, file: int) -> float:
        """When a client is forgotten: so long after its volume lease has ended."""
        return self.volumes[self.volume_of[file]].get(client, NOTHING).until + self.patience

    def read(self, now: float, client: int, file: int) -> None:
        """Read as with volume leases; what waits is told first, or the client reconnects."""
        volume = self.volume_of[file]
        record = self.volumes[volume].get(client)
        if record is not None and record.until <= now:
            waiting = self.pending[volume].get(client, ()) if self.one_by_one else ()
            if any(each.file == file and each.until > now for each in waiting):
                self.tally.say(now, volume, EXCHANGE)
            self._on_return(now, client, volume, record.until + self.patience)
        super().read(now, client, file)
        self.held[volume].setdefault(client, set()).add(file)

    def _on_return(self, now: float, client: int, volume: int, forgotten_at: float) -> None:
        """A client whose volume lease has ended comes back."""
        had_items = self._settle(min(now, forgotten_at), client, volume)
        if now <= forgotten_at:
            self.tally.say(now, volume, ACKNOWLEDGED if had_items else 0)
            return
        self.tally.say(now, volume, RECONNECTION)
        for file in self.held[volume].pop(client, ()):
            record = self.leases[file].get(client)
            if record is not None:  # it lists what it has, and has it again
                self.charge(now, client, file)
                self.leases[file][client] = LeaseRecord(now, record.until)

    def _settle(self, now: float, client: int, volume: int) -> bool:
        """Take the client's list away, told or discarded. Returns whether there was one."""
        since = self.pending[volume].pop(client, [])
        self.tally.record_seconds[volume] += sum(now - each.since for each in since)
        return bool(since)

    def write(self, now: float, file: int) -> None:
        """Tell active clients; keep it for inactive ones; nothing is owed to forgotten ones."""
        volume = self.volume_of[file]
        told = 0
        ends = {client: record.until for client, record in self.leases[file].items()}
        for client in self.end_leases(now, file):
            until = self.volumes[volume][client].until
            if until > now:
                told += 1
            elif now <= until + self.patience:
                waiting = WaitingItem(now, file, ends[client])
                self.pending[volume].setdefault(client, []).append(waiting)
        self.tally.say(now, volume, EXCHANGE * told)

    def end(self) -> None:
        """Count also what was never told, for as long as it was kept."""
        super().end()
        for volume, waiting in enumerate(self.pending):
            for client in list(waiting):
                until = self.volumes[volume][client].until + self.patience
                self._settle(min(self.ends_at, until), client, volume)
