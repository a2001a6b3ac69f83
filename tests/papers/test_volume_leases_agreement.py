"""The trace simulator's volume algorithms send what the machines send, message for message (4.1).

One trace of ten thousand events, drawn as the paper's workload, is played to both. A message takes
no time, clocks run alike, and nothing fails, as in the paper's simulator. The machines need one
exchange more for each client and server, by which the client comes on record; the paper takes it
that all have met.
"""

from array import array
from collections.abc import Callable, Iterator
from math import inf
from random import Random

import pytest

from lab.trace.algorithms import Delayed, VolumeLease
from lab.trace.replay import Make, replay
from lab.trace.workload import PAPER, Trace, draw
from tenure.base.instants import Instant, seconds
from tenure.base.keys import Key
from tenure.protocol.volume.client.entries import Entries
from tenure.protocol.volume.client.events import (
    Believe,
    CacheAction,
    CacheConfig,
    DoubtEntries,
    DropEntries,
    KeepEntry,
    ObjectWanted,
    ServerSaid,
    TellServer,
    WasUsed,
)
from tenure.protocol.volume.client.machine import CacheMachine
from tenure.protocol.volume.messages import Reconnect, Reconnected, ToVolumeServer
from tenure.protocol.volume.server.events import (
    BodyEnded,
    ClientAsked,
    FenceRaised,
    LoadObject,
    MemoryPersisted,
    ObjectLoaded,
    PersistMemory,
    RaiseFence,
    RunBody,
    ServerAction,
    ServerConfig,
    ServerEvent,
    TellCache,
    VolumeMemory,
    WriteAsked,
)
from tenure.protocol.volume.server.machine import VolumeServer
from tenure.protocol.volume.server.terms import Terms

LONG_NS = seconds(1e9)
EVENTS = 10_000
T_V, T = 100.0, 2_000.0


class Client:
    """One client of one server."""

    def __init__(self, number: int) -> None:
        config = CacheConfig(server="s", retry_ns=LONG_NS, patience_ns=LONG_NS)
        self.machine = CacheMachine(config, Random(number))
        self.entries = Entries()


class OneServer:
    """A server and its clients; what they say is counted."""

    def __init__(self, terms: Terms) -> None:
        self.messages = 0
        self.introductions = 0
        self.now = Instant(0)
        memory = VolumeMemory(number=0, longest_ns=terms.term_ns, drained=True)
        self.server = VolumeServer(ServerConfig(terms=terms, memory=memory), Random(1))
        self.clients: dict[int, Client] = {}
        self._by_nonce: dict[int, Client] = {}
        self._ticket = 0
        self.carry_out(self.server.advance(self.now).actions)

    def tell(self, event: ServerEvent) -> None:
        """Give the server an event, and carry out all that follows from it."""
        self.carry_out(self.server.handle(self.now, event).actions)

    def carry_out(self, actions: list[ServerAction] | tuple[ServerAction, ...]) -> None:
        for action in actions:
            match action:
                case PersistMemory(memory=memory):
                    self.tell(MemoryPersisted(memory))
                case RaiseFence(number=number):
                    self.tell(FenceRaised(number))
                case LoadObject(load=load):
                    self.tell(ObjectLoaded(load, b"value"))
                case RunBody(write=write):
                    self.tell(BodyEnded(write))
                case TellCache(client=nonce, message=message):
                    self.count(message)
                    client = self._by_nonce[nonce]
                    said = client.machine.handle(self.now, ServerSaid("s", message))
                    self.perform(client, said.actions)

    def perform(self, client: Client, actions: list[CacheAction] | tuple[CacheAction, ...]) -> None:
        for action in actions:
            match action:
                case TellServer(message=message):
                    self.count(message)
                    self._by_nonce[message.client] = client
                    assert isinstance(message, ToVolumeServer)
                    self.tell(ClientAsked(message))
                case Believe() | KeepEntry() | DropEntries() | DoubtEntries():
                    client.entries.perform(action)

    def count(self, message: object) -> None:
        self.messages += 1
        self.introductions += isinstance(message, Reconnect | Reconnected)

    def read(self, number: int, key: Key) -> None:
        """A client reads: of itself, or it renews its volume lease, or it fetches the object."""
        client = self.clients.setdefault(number, Client(number))
        if client.entries.hit(key, lambda: self.now) is not None:
            return
        entry = client.machine.belief.entries.get(key)
        if entry is not None and entry.is_live and self.now < entry.until:
            used = client.machine.handle(self.now, WasUsed("s", (key,)))
            self.perform(client, used.actions)
        if client.entries.hit(key, lambda: self.now) is None:
            self._ticket += 1
            wanted = client.machine.handle(self.now, ObjectWanted(self._ticket, key))
            self.perform(client, wanted.actions)
        assert client.entries.hit(key, lambda: self.now) is not None


def events(trace: Trace) -> Iterator[tuple[float, int | None, int]]:
    """Reads and writes in the order of their times, as they are replayed."""
    reads = zip(trace.read_at, trace.reader, trace.read_file, strict=True)
    writes = ((at, None, file) for at, file in zip(trace.write_at, trace.written_file, strict=True))
    yield from sorted([*writes, *reads], key=lambda each: each[0])


def by_machines(trace: Trace, terms: Terms) -> tuple[list[int], int]:
    """Return what each server sends and receives, except introductions; and how many of those there
    are.
    """
    servers = [OneServer(terms) for _ in range(trace.volumes)]
    for ticket, (at, client, file) in enumerate(events(trace), start=1):
        one = servers[trace.volume_of[file]]
        one.now = Instant(seconds(at))
        key = b"%d" % file
        if client is None:
            one.tell(WriteAsked(ticket, (key,)))
        else:
            one.read(client, key)
    pairs = sum(len(each.clients) for each in servers)
    assert sum(each.introductions for each in servers) == 2 * pairs
    return [each.messages - each.introductions for each in servers], pairs


def as_in_the_paper() -> Trace:
    """The workload of section 4.2: hardly anything is read twice in so few events."""
    trace = draw(7, PAPER.scaled(EVENTS / 1_187_360))
    count = len(trace.read_at) + len(trace.write_at)
    assert abs(count - EVENTS) < EVENTS // 20, count
    return trace


def dense() -> Trace:
    """Few files that are read and written again and again, also while their readers are away."""
    random = Random(7)
    volume_of = [file % 3 for file in range(12)]
    at = 0.0
    reads: list[tuple[float, int, int]] = []
    writes: list[tuple[float, int]] = []
    for _ in range(EVENTS):
        at += random.expovariate(1 / 20)
        file = random.randrange(len(volume_of))
        if random.random() < 0.2:
            writes.append((at, file))
        else:
            reads.append((at, random.randrange(6), file))
    return Trace(
        array("i", volume_of),
        array("d", [each[0] for each in reads]),
        array("i", [each[1] for each in reads]),
        array("i", [each[2] for each in reads]),
        array("d", [each[0] for each in writes]),
        array("i", [each[1] for each in writes]),
    )


ALGORITHMS: dict[str, tuple[dict[str, str], Make]] = {
    "volume": ({"invalidate": "at once"}, lambda t, c: VolumeLease(t, c, T_V, T)),
    "delayed": ({}, lambda t, c: Delayed(t, c, T_V, T, inf, one_by_one=True)),
    "best effort": (
        {"mode": "best effort"},
        lambda t, c: Delayed(t, c, T_V, T, inf, best_effort=True, one_by_one=True),
    ),
}


@pytest.mark.parametrize("drawn", [as_in_the_paper, dense])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_4_1_the_machines_send_what_the_trace_simulator_counts(
    name: str, drawn: Callable[[], Trace]
) -> None:
    how, make = ALGORITHMS[name]
    terms = Terms(
        term_ns=seconds(T_V),
        lease_ns=seconds(T),
        keep_ns=LONG_NS,
        drift=(1, 1),
        **how,  # type: ignore[arg-type]
    )
    trace = drawn()
    counted = replay(trace, make)
    sent, pairs = by_machines(trace, terms)
    assert sent == counted.messages
    assert counted.all_messages > pairs


def test_4_1_what_the_paper_counts_as_one_exchange_the_machines_do_one_by_one() -> None:
    """A read that finds its volume lease over, of an object that was written meanwhile."""
    trace = dense()
    paper = replay(trace, lambda t, c: Delayed(t, c, T_V, T, inf)).all_messages
    ours = replay(trace, lambda t, c: Delayed(t, c, T_V, T, inf, one_by_one=True)).all_messages
    assert 0 < ours - paper < paper // 10
