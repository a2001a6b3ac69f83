"""Simulated servers and caches: the machines, with their surroundings in production."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from lab.worlds.volume.store import Fence, FencedStore
from lab.worlds.volume.watching import WatchedEntries
from tenure.base.instants import MILLISECOND_NS
from tenure.base.keys import Key
from tenure.base.noted import Noted
from tenure.protocol.lease.messages import Leased
from tenure.protocol.volume.client import events as client_events
from tenure.protocol.volume.client.machine import CacheMachine
from tenure.protocol.volume.server import events as server_events
from tenure.protocol.volume.server.machine import VolumeServer
from tenure.protocol.volume.server.versions import KnownWrites
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.faults import Fault
from tenure.sim.kernel.network import Network
from tenure.sim.kernel.process import SimProcess, Site

SERVER = "s0"
STORE_NS = 2 * MILLISECOND_NS
"""The longest that a quick store takes."""
SLOW_STORE = Fault("slow store")
LOAD_FAILS = Fault("load fails")
BODY_RAISES = Fault("body raises")
STOPPED_READER = Fault("stopped reader")
MOST_USED_KEYS = 8


class Judging(Protocol):
    """The judge of a world's events."""

    def on_heard(self, server: "AnyServer", client: int) -> None:
        """A message of a client has reached its server."""
        ...

    def on_body(self, server: "AnyServer", body: server_events.RunBody) -> None:
        """The body of a write begins to run."""
        ...

    def on_stored(self, key: Key) -> None:
        """The store has another value of the key."""
        ...

    def on_granted(self, server: "AnyServer", lease: Leased, known: KnownWrites | None) -> None:
        """An owner was granted a range, with what came along of its writes."""
        ...

    def on_believed(
        self, cache: "CacheProcess", moved: client_events.Believe | client_events.KeepEntry
    ) -> None:
        """A client may hit from here on."""
        ...

    def on_audit(self, cache: "CacheProcess", judged: client_events.JudgeHit) -> None:
        """An audit has judged a hit of a client by what the server has read."""
        ...

    def on_saw(self, cache: "CacheProcess", key: Key, value: bytes) -> None:
        """A client's application was told what another client has read."""
        ...


class Applications(Protocol):
    """The applications that read and write."""

    def lose(self, key: Key) -> bytes:
        """The state of the key is lost: the value that readers find instead."""
        ...

    def value_of(self, server: "AnyServer", body: server_events.RunBody, key: Key) -> bytes:
        """The value that a body stores."""
        ...

    def on_body_ended(
        self, server: "AnyServer", body: server_events.RunBody, *, ok: bool, stored: bool
    ) -> None:
        """The body of a write of the server's application has ended."""
        ...

    def on_write_failed(self, server: "AnyServer", failed: server_events.FailWrite) -> None:
        """The body of a write will not run."""
        ...

    def on_answer(self, cache: "CacheProcess", answer: client_events.TellReaders) -> None:
        """Readers have what they asked for."""
        ...

    def on_written(self, cache: "CacheProcess", answer: client_events.TellWriter) -> None:
        """A client's write has ended."""
        ...


class VolumeSite(Site):
    """A world of caches, as everything in it sees it."""

    network: Network
    store: FencedStore
    judge: Judging
    applications: Applications
    disk: server_events.VolumeMemory | None = None
    """The memory of a server without owners, as it is on disk."""
    earlier: list[server_events.VolumeMemory]
    """Copies of the memory, from earlier lives."""

    nonces: "dict[int, CacheProcess]"
    """The client behind each nonce."""

    @abstractmethod
    def stop_a_reader(self) -> None:
        """Perhaps let time go on before a reader takes its next step."""

    def servers(self) -> "list[AnyServer]":
        return [each for each in self.slots.values() if isinstance(each, AnyServer)]

    def caches(self) -> "list[CacheProcess]":
        """The clients."""
        return [each for each in self.slots.values() if isinstance(each, CacheProcess)]

    def groups(self) -> Sequence[Sequence[SimProcess]]:
        """The servers, and the clients."""
        return self.servers(), self.caches()

    def peers(self, process: SimProcess) -> Sequence[SimProcess]:
        """The processes that the process may have a connection to."""
        return self.caches() if isinstance(process, AnyServer) else self.servers()

    def name_of(self, server: SimProcess) -> str:
        """The server's name, as clients know it."""
        return server.slot

    def slot_of(self, server: str) -> str:
        """The slot of the server that clients know by this name."""
        return server

    def store_ns(self) -> int:
        """How long the store takes now."""
        if self.faults.strikes(SLOW_STORE):
            return self.faults.span(0.01, 0.8)
        return self.random.randrange(1, STORE_NS)


class VolumeProcess(SimProcess):
    """A process in a world of caches."""

    site: VolumeSite

    def note(self, noted: Noted) -> None:
        """The process's machine has noted something."""
        self.site.tell(self.slot, noted.kind.phrase, noted.detail)
        self.site.count_note(noted.kind.phrase)

    def on_disconnected(self, peer: tuple[str, int]) -> None:
        """Nothing needs to be done: clients repeat their requests anyway."""


SERVERS_STOP_BEFORE = (
    server_events.TellCache,
    server_events.RunBody,
    server_events.LoadObject,
    server_events.PersistMemory,
    server_events.RaiseFence,
)


class AnyServer(SimProcess):
    """A process with a volume, its application, and its connection to the store."""

    site: VolumeSite
    volume: VolumeServer

    def fence(self, number: int) -> Fence:
        """The fence that the store knows for a lease number."""
        return 0, number

    def writable(self, keys: list[Key]) -> list[Key]:
        """The keys that the server's application may write."""
        return keys

    def before_load(self, key: Key, fence: Fence) -> None:
        """The application is about to read the object."""

    def before_store(self, key: Key) -> None:
        """The application is about to write the object."""

    def hear(self, message: Any) -> None:
        """A message of a client has arrived."""
        self.site.judge.on_heard(self, message.client)
        self.post(server_events.ClientAsked(message))

    def serve(self, action: Any) -> None:
        """Carry out an action of a server's machine."""
        site = self.site
        match action:
            case server_events.TellCache(client=client, message=message):
                cache = site.nonces.get(client)
                if cache is not None:
                    site.network.to_process(self, cache, message)
            case server_events.LoadObject():
                site.at(site.now + site.store_ns(), self._read, action)
            case server_events.RunBody():
                self._run(action)
            case server_events.FailWrite():
                site.applications.on_write_failed(self, action)

    def _read(self, load: server_events.LoadObject) -> None:
        """The store has read the object. Its answer takes as long again."""
        self.before_load(load.key, self.fence(load.fence))
        self.site.store.raise_for(load.key, self.fence(load.fence))
        value = self.site.store.read(load.key)
        loaded = server_events.ObjectLoaded(load.load, value)
        if self.site.faults.strikes(LOAD_FAILS):
            loaded = server_events.ObjectLoaded(load.load, None, "the store is busy")
        self.site.at(self.site.now + self.site.store_ns(), self.post, loaded)

    def _run(self, body: server_events.RunBody) -> None:
        site = self.site
        site.judge.on_body(self, body)
        stores = site.now + site.store_ns()
        raises = site.faults.strikes(BODY_RAISES)
        stored = not raises or site.random.random() < 0.5
        values = {key: site.applications.value_of(self, body, key) for key in body.keys}
        refused: list[Key] = []
        if stored:
            for key, number in body.fences:
                write = (self.fence(number), key, values[key], refused)
                site.at(stores, self._store, write)
        ends = stores + site.store_ns()
        site.at(ends, self._end_body, (body, not raises, stored, refused))

    def _store(self, write: tuple[Fence, Key, bytes, list[Key]]) -> None:
        """The write arrives at the store, whether or not its server still lives."""
        fence, key, value, refused = write
        self.before_store(key)
        if self.site.store.write(fence, key, value):
            self.site.judge.on_stored(key)
        else:
            refused.append(key)
            self.site.tell("store", "refuses a past server's write", value)
            self.site.count_note("write of a past server refused")

    def _end_body(self, ended: tuple[server_events.RunBody, bool, bool, list[Key]]) -> None:
        body, ok, stored, refused = ended
        ok, stored = ok and not refused, stored and not refused
        if self.alive:
            self.site.applications.on_body_ended(self, body, ok=ok, stored=stored)
            self.post(server_events.BodyEnded(body.write, ok))


class ServerProcess(VolumeProcess, AnyServer):
    """A server without owners, which keeps a memory."""

    machine: VolumeServer
    stops_before = SERVERS_STOP_BEFORE

    def __init__(self, site: VolumeSite, slot: str, clock: SimClock, machine: VolumeServer) -> None:
        super().__init__(site, slot, clock, machine)
        self.volume = machine

    def on_message(self, sender: SimProcess, message: Any) -> None:
        """A message of a client has arrived."""
        self.hear(message)

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        site = self.site
        match action:
            case server_events.PersistMemory(memory=memory):
                site.at(site.now + site.store_ns(), self._persist, memory)
            case server_events.RaiseFence(number=number):
                site.at(site.now + site.store_ns(), self._raise_fence, number)
            case server_events.VolumeClosed():
                self.site.tell(self.slot, "closed")
                self.kill()
                site.restart_later(self.slot, site.random.randrange(1, MILLISECOND_NS))
            case Noted():
                self.note(action)
            case _:
                self.serve(action)

    def _persist(self, memory: server_events.VolumeMemory) -> None:
        if self.alive:
            self.site.disk = memory
            self.post(server_events.MemoryPersisted(memory))

    def _raise_fence(self, number: int) -> None:
        if self.alive:
            refused = self.site.store.raise_fence(number)
            self.post(server_events.FenceRaised(number, refused))


class CacheProcess(VolumeProcess):
    """A client, and the entries that its readers look at."""

    machine: CacheMachine
    stops_before = (
        client_events.TellServer,
        client_events.Believe,
        client_events.KeepEntry,
        client_events.DropEntries,
        client_events.DoubtEntries,
        client_events.TellReaders,
        client_events.JudgeHit,
    )

    def __init__(self, site: VolumeSite, slot: str, clock: SimClock, machine: CacheMachine) -> None:
        super().__init__(site, slot, clock, machine)
        self.entries = WatchedEntries(site.stop_a_reader)
        self.pending: dict[int, tuple[Key, int]] = {}
        """The object that each ticket asked for, and when."""

    def on_message(self, sender: SimProcess, message: Any) -> None:
        """A message of a server has arrived."""
        self.post(client_events.ServerSaid(self.site.name_of(sender), message))

    def hit(self, key: Key) -> bytes | None:
        """The value that a reader finds without asking; None if it must ask."""
        found = self.entries.hit(key, self.now)
        return None if found is None else found.value or b""

    def evict(self) -> None:
        """Evict half of the entries."""
        keys = tuple(key for key in self.entries.objects if self.site.random.random() < 0.5)
        for key in keys:
            self.entries.objects.pop(key).is_live = False
        self.post(client_events.Evicted(keys))

    def tell_what_it_saw(self, other: "CacheProcess") -> None:
        """Tell the other cache's application, which must then read nothing older (C5)."""
        for key, found in list(self.entries.objects.items()):
            if other.is_frozen or not found.is_live:
                continue
            other.post(client_events.Saw(key, found.as_of))
            self.site.judge.on_saw(other, key, found.value or b"")

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        match action:
            case client_events.TellServer(server=server, message=message):
                self.site.nonces[message.client] = self
                self.site.network.to_address(self, self.site.slot_of(server), message)
            case client_events.Believe() | client_events.KeepEntry():
                self.entries.perform(action)
                self.site.judge.on_believed(self, action)
            case client_events.DropEntries() | client_events.DoubtEntries():
                self.entries.perform(action)
            case client_events.JudgeHit():
                self.site.judge.on_audit(self, action)
            case client_events.TellReaders():
                self.site.applications.on_answer(self, action)
            case client_events.TellWriter():
                self.site.applications.on_written(self, action)
            case client_events.AskWhetherUsed(server=server, ending_before=soon):
                if self.entries.was_used(server):
                    keys = self.entries.ending_soon(server, soon, MOST_USED_KEYS)
                    self.post(client_events.WasUsed(server, keys))
            case Noted():
                self.note(action)
