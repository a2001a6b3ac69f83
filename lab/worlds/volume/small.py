"""A world of caches that is searched whole: one volume, two objects, two clients (3.1.4).

Servers come in turn, with the memory and the store of the one before. The paper's authors had
Murphi check a model; here the machines themselves are checked: nobody can hit an object while the
body of a write of it runs, and every version that can be hit, or is returned by a read, is the
current one. Leases last two ticks by the slowest client and by the fastest server: exactly at the
bound of clock rates, not within it.
"""

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import msgspec

from lab.search.exhaustive import Found, search
from lab.search.memo import Dice
from lab.search.small import ANYBODY, Move, Packet, SmallWorld
from tenure.base.instants import SECOND_NS, Instant
from tenure.base.keys import Key
from tenure.protocol.volume.client import events as client_events
from tenure.protocol.volume.client.entries import Entries
from tenure.protocol.volume.client.machine import CacheMachine
from tenure.protocol.volume.server import events as server_events
from tenure.protocol.volume.server.events import ServerConfig, VolumeMemory
from tenure.protocol.volume.server.machine import VolumeServer
from tenure.protocol.volume.server.terms import Terms
from tenure.sim.kernel.checkers import Violation

SERVER, STORE = 0, 3
CLIENTS = (1, 2)
KEYS: tuple[Key, ...] = (b"k", b"l")
OWN = b"own"
BEGIN = 1_000 * SECOND_NS
SLOW, FAST = SECOND_NS, 2 * SECOND_NS
"""How far a clock goes on in a tick. Clients are slow and servers fast, which is the worst case."""
SMALL_TERMS = Terms(
    term_ns=2 * SLOW,
    lease_ns=3 * SLOW,
    keep_ns=FAST,
    mute_ns=100 * FAST,
    drift=(FAST, SLOW),
)


class Scope(msgspec.Struct, frozen=True):
    """How many faults one story may have, and how long it may be."""

    ticks: int = 4
    reads: int = 0
    """Reads that find nothing and ask, at any client, for any object."""
    writes: int = 0
    """Writes of the server's application."""
    own: int = 0
    """Writes of clients."""
    lose: int = 0
    late: int = 0
    """Messages, loads, and writes on their way to the store, that arrive at any later time."""
    double: int = 0
    crash: int = 0
    """Crashes of servers."""
    starts: int = 0
    freeze: int = 0

    def limits(self) -> dict[str, int]:
        """The limits by kind of fault."""
        fields: dict[str, int] = msgspec.structs.asdict(self)
        return {kind: most for kind, most in fields.items() if kind != "ticks"}


class PendingRead(NamedTuple):
    """A read that has asked: what it returns must be as new as this."""

    client: int
    ticket: int
    key: Key
    floor: int


class Beside(NamedTuple):
    """The state beside the machines."""

    entries: tuple[int, ...]
    values: tuple[int, ...]
    """The number of the last write of each object that the store has."""
    floors: tuple[int, ...]
    """The last version of each object that was certainly there: written or read."""
    reads: tuple[PendingRead, ...]
    fence: int
    disk: VolumeMemory
    tickets: int
    own: int = 0
    """The version that a client's write has made; 0 until the store has it."""


class SmallVolumes(SmallWorld):
    """All possible events."""

    slots = ("s", "a", "b", "store")
    clients = CLIENTS

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope.limits(), scope.ticks)
        self._nonces: dict[int, tuple[int, int]] = {}
        self.beside = Beside((), (), (), (), 0, VolumeMemory(number=0, longest_ns=0), 0)

    # --- the beginning ---

    def begin(self) -> None:
        """The first state: both clients hold the first object, and no process waits for another."""
        nothing = self.memory.number(Entries())
        memory = VolumeMemory(number=0, longest_ns=SMALL_TERMS.term_ns, drained=True)
        self.beside = Beside((nothing, nothing), (0, 0), (0, 0), (), 0, memory, 0)
        for slot in (SERVER, *CLIENTS):
            self.start(slot)
        for client in CLIENTS:
            self.read(client, KEYS[0])
        while self.flying:
            self.go_on()

    def make(self, slot: int, uid: int) -> Any:
        """Make a server with the memory that is on disk, or a client."""
        dice = Dice(1_000 * uid)
        if slot == SERVER:
            return VolumeServer(ServerConfig(terms=SMALL_TERMS, memory=self.beside.disk), dice)
        config = client_events.CacheConfig(
            server="s", retry_ns=SLOW, patience_ns=50 * SLOW, write_patience_ns=50 * SLOW
        )
        return CacheMachine(config, dice)

    def now(self, slot: int) -> Instant:
        """The reading of the clock of a place."""
        return Instant(BEGIN + self.tick * (FAST if slot == SERVER else SLOW))

    def keep(self) -> Hashable:
        """The state beside the machines."""
        return self.beside

    def bring_back(self, kept: Any) -> None:
        """Restore the state beside the machines."""
        self.beside = kept

    def may_start(self, slot: int) -> bool:
        """Whether the process may restart: only servers may."""
        return slot == SERVER

    def crash_of(self, slot: int) -> str:
        """The crash of a process: only servers are killed."""
        return "crash" if slot == SERVER else "no crash"

    def in_words(self, packet: Packet) -> str:
        """The messages, loads and writes on their way."""
        return str(self.memory.thing(packet.event))

    # --- what people do ---

    def more_faults(self) -> Iterator[Move]:
        """Reads that ask, and writes."""
        if self.may("reads"):
            waits = {(each.client, each.key) for each in self.beside.reads}
            for client in CLIENTS:
                for key in KEYS:
                    if (client, key) not in waits and self._hit(client, key) is None:
                        yield self._ask, client, key
        if self.may("writes") and self.is_there(SERVER):
            for key in KEYS:
                yield self._write, key
        if self.may("own"):
            for client in CLIENTS:
                yield self._write_at, client, KEYS[0]

    def _ask(self, client: int, key: Key) -> None:
        self.spend("reads")
        self.headline(lambda: f"{self.slots[client]} reads {key!r}")
        self.read(client, key)

    def read(self, client: int, key: Key) -> None:
        """A reader finds nothing, and asks."""
        ticket = self.beside.tickets + 1
        pending = PendingRead(client, ticket, key, self.beside.floors[KEYS.index(key)])
        self.beside = self.beside._replace(tickets=ticket, reads=(*self.beside.reads, pending))
        self.take(client, self.memory.number(client_events.ObjectWanted(ticket, key)))

    def _write(self, key: Key) -> None:
        self.spend("writes")
        self.headline(lambda: f"the server's application writes {key!r}")
        self.take(SERVER, self.memory.number(server_events.WriteAsked(1, (key,))))

    def _write_at(self, client: int, key: Key) -> None:
        self.spend("own")
        self.headline(lambda: f"{self.slots[client]} writes {key!r}")
        self.take(client, self.memory.number(client_events.WriteWanted(1, key, OWN)))

    # --- actions ---

    def act(self, slot: int, action: Any) -> None:
        """Carry out an action of the process in a place."""
        match action:
            case client_events.TellServer(message=message):
                self._nonces[message.client] = slot, self.lives[slot].uid
                event = self.event_of(action, 0, lambda: server_events.ClientAsked(message))
                self.send(Packet(slot, SERVER, ANYBODY, event), "lose", "late", "double")
            case server_events.TellCache():
                self._tell_cache(action)
            case server_events.LoadObject(load=load, key=key):
                value = b"%d" % self.beside.values[KEYS.index(key)]
                loaded = server_events.ObjectLoaded(load, value)
                self._in_its_time(slot, self.memory.number(loaded), "the load")
            case server_events.RunBody():
                self._run(action)
            case server_events.PersistMemory(memory=memory):
                self.beside = self.beside._replace(disk=memory)
                self.answer(self.memory.number(server_events.MemoryPersisted(memory)))
            case server_events.RaiseFence(number=number):
                fence = self.beside.fence
                refused = fence if fence >= number else 0
                self.beside = self.beside._replace(fence=max(fence, number))
                self.answer(self.memory.number(server_events.FenceRaised(number, refused)))
            case client_events.AskWhetherUsed(server=server, ending_before=soon):
                keys = self._entries(slot).ending_soon(server, soon, len(KEYS))
                self.answer(self.memory.number(client_events.WasUsed(server, keys)))
            case client_events.TellReaders():
                self._told(slot, action)
            case (
                client_events.Believe()
                | client_events.KeepEntry()
                | client_events.DropEntries()
                | client_events.DoubtEntries()
            ):
                self._change_entries(slot, action)

    def _tell_cache(self, action: server_events.TellCache) -> None:
        client, uid = self._nonces[action.client]
        if self.lives[client].uid == uid:
            event = self.event_of(action, 0, lambda: client_events.ServerSaid("s", action.message))
            self.send(Packet(SERVER, client, uid, event), "lose", "late", "double")

    def _in_its_time(self, slot: int, event: int, what: str) -> None:
        if self.fate(("late",)):
            self.tell(lambda: f"{what} takes its time")
            self.aside.append(Packet(slot, slot, self.lives[slot].uid, event))
        else:
            self.answer(event)

    # --- the store ---

    def _run(self, body: server_events.RunBody) -> None:
        """Run the body; nobody may hit the old value, which is the paper's first invariant (C2)."""
        for key in body.keys:
            for client in CLIENTS:
                if body.fence >= self.beside.fence and self._hit(client, key) is not None:
                    name = self.slots[client]
                    raise Violation("C2", f"{name} can hit {key!r} while its write's body runs")
        if self.fate(("late",)):
            self.tell(lambda: "its body's value is late on its way to the store")
            self.aside.append(Packet(SERVER, STORE, ANYBODY, self.memory.number(body)))
        else:
            self._store(body)
            self.answer(self.memory.number(server_events.BodyEnded(body.write)))

    def deliver(self, packet: Packet) -> None:
        """The store takes values. Their writer hears of it if it still lives."""
        if packet.to != STORE:
            super().deliver(packet)
            return
        body: server_events.RunBody = self.memory.thing(packet.event)
        is_of_this_life = body.fence == self.beside.disk.number
        self._store(body)
        if is_of_this_life and self.is_there(SERVER):
            self.take(SERVER, self.memory.number(server_events.BodyEnded(body.write)))

    def _store(self, body: server_events.RunBody) -> None:
        if not self.takes(body.fence):
            return
        values, floors = list(self.beside.values), list(self.beside.floors)
        for key in body.keys:
            i = KEYS.index(key)
            values[i] += 1
            floors[i] = values[i]
        own = values[0] if body.value == OWN else self.beside.own
        self.beside = self.beside._replace(values=tuple(values), floors=tuple(floors), own=own)

    def takes(self, fence: int) -> bool:
        """Whether the store takes a write under that number (V14)."""
        return fence >= self.beside.fence

    # --- what readers see ---

    def _entries(self, client: int) -> Entries:
        found: Entries = self.memory.thing(self.beside.entries[client - 1])
        return found

    def _change_entries(self, client: int, action: Any) -> None:
        before = self.beside.entries[client - 1]

        def changed() -> int:
            entries: Entries = self.memory.thing(before)
            entries.perform(action)
            return self.memory.number(entries)

        after = self.memory.once(("entries", before, self.memory.number(action)), changed)
        entries = list(self.beside.entries)
        entries[client - 1] = after
        self.beside = self.beside._replace(entries=tuple(entries))

    def _hit(self, client: int, key: Key) -> int | None:
        """The version that a reader can hit now."""
        number, now = self.beside.entries[client - 1], self.now(client)

        def look() -> bytes | None:
            entries: Entries = self.memory.thing(number)
            found = entries.hit(key, lambda: now)
            return None if found is None else found.value

        value: bytes | None = self.memory.once(("hit", number, key, now), look)
        return None if value is None else self._version(value)

    def _version(self, value: bytes | None) -> int:
        """The number of the write that stored a value."""
        return self.beside.own if value == OWN else int(value or b"0")

    def _told(self, client: int, told: client_events.TellReaders) -> None:
        if told.outcome in ("hit", "unchanged"):
            found = self._entries(client).objects[told.key]
            version = self._version(found.value)
        elif told.outcome == "value":
            version = self._version(told.value)
        else:
            return
        i = KEYS.index(told.key)
        for pending in self.beside.reads:
            if pending.client == client and pending.ticket in told.tickets:
                self._check_version(client, told.key, version, pending.floor)
        floors = list(self.beside.floors)
        floors[i] = max(floors[i], version)
        reads = tuple(
            each
            for each in self.beside.reads
            if each.client != client or each.ticket not in told.tickets
        )
        self.beside = self.beside._replace(reads=reads, floors=tuple(floors))

    def _check_version(self, client: int, key: Key, version: int, floor: int) -> None:
        """Check the paper's second invariant (C1)."""
        if version < floor:
            name = self.slots[client]
            raise Violation("C1", f"{name} reads version {version} of {key!r} after {floor}")

    def check(self) -> None:
        """Check that every version that can be hit is the current one."""
        for client in CLIENTS:
            for key, floor in zip(KEYS, self.beside.floors, strict=True):
                version = self._hit(client, key)
                if version is not None:
                    self._check_version(client, key, version, floor)


def search_caches(scope: Scope, most_states: int = 1 << 20) -> Found:
    """Look at every story within a scope."""
    return search(SmallVolumes(scope), most_states)
