"""A volume's server and its clients, played by hand: every message is carried by the test.

Real time is one number; each machine has a clock of its own over it. Nothing happens by itself.
What a machine sends lies in `sent` until the test delivers it, late, twice, or never.
"""

from random import Random
from typing import NamedTuple

import msgspec

from tenure.base.instants import SECOND_NS, Instant, seconds
from tenure.base.keys import Key
from tenure.base.machine import Output
from tenure.base.noted import Noted, NotedKind
from tenure.base.ranges import WHOLE
from tenure.protocol.volume.client.entries import Entries
from tenure.protocol.volume.client.events import (
    Believe,
    CacheAction,
    CacheConfig,
    CacheEvent,
    DoubtEntries,
    DropEntries,
    KeepEntry,
    ObjectWanted,
    ServerSaid,
    TellReaders,
    TellServer,
    TellWriter,
    WasUsed,
    WriteWanted,
)
from tenure.protocol.volume.client.machine import CacheMachine
from tenure.protocol.volume.messages import (
    AsOf,
    Listed,
    Reconnect,
    ToCache,
    ToVolumeServer,
    UnknownReader,
)
from tenure.protocol.volume.server.events import (
    BodyEnded,
    ClientAsked,
    FenceRaised,
    LoadObject,
    MemoryPersisted,
    ObjectLoaded,
    PersistMemory,
    RaiseFence,
    RangeGranted,
    RunBody,
    ServerAction,
    ServerConfig,
    ServerEvent,
    TellCache,
    TermMoved,
    VolumeMemory,
    WriteAsked,
)
from tenure.protocol.volume.server.machine import VolumeServer
from tenure.protocol.volume.server.terms import Terms
from tenure.protocol.volume.server.versions import KnownWrites

K, L = b"k", b"l"
ALONE = ServerConfig()
OWNED = ServerConfig(alone=False, durable=True)
TERMS = Terms()
QUIET_S = 3.25
"""How long a server waits that knows nothing of its predecessor."""


class Letter(NamedTuple):
    """A message on its way."""

    of: str
    to: str
    message: ToCache | ToVolumeServer

    @property
    def name(self) -> str:
        """The type of the message."""
        return type(self.message).__name__


class Stage:
    """One server, any number of clients, a store, and the time."""

    def __init__(
        self,
        terms: Terms = TERMS,
        *,
        clients: str = "ab",
        patient: bool = False,
        config: ServerConfig = ALONE,
    ) -> None:
        self.patient = patient
        """Clients ask again only after minutes."""
        self.real = 0
        self.terms = terms
        self.rates = {"s": 1.0}
        self.sent: list[Letter] = []
        self.store: dict[Key, bytes] = {K: b"old", L: b"old"}
        self.loads: list[LoadObject] = []
        self.bodies: list[RunBody] = []
        self.told: list[ServerAction] = []
        """The words to the server's application alone."""
        self.memory: VolumeMemory | None = None
        self.fence = 0
        self.fences = True
        """Whether the store answers when it is to be fenced."""
        self.caches: dict[str, CacheMachine] = {}
        self.entries: dict[str, Entries] = {}
        self.answers: dict[str, list[TellReaders | TellWriter]] = {}
        self.noted: list[NotedKind] = []
        """What clients have noted."""
        self.server = self.start(config)
        for name in clients:
            self.add(name)

    # --- machines ---

    def start(self, config: ServerConfig = ALONE, seed: int = 1) -> VolumeServer:
        """A server begins; it has the store and whatever memory it is given."""
        made = msgspec.structs.replace(config, terms=self.terms)
        self.server = VolumeServer(made, Random(seed))
        self.do_server(self.server.advance(self.now("s")))
        return self.server

    def restart(self, config: ServerConfig = ALONE, seed: int = 2) -> VolumeServer:
        """The server is killed, and another comes, with the memory that was kept."""
        return self.start(msgspec.structs.replace(config, memory=self.memory), seed)

    def grant(
        self,
        number: int = 7,
        *,
        term_s: float = 12,
        quiet_s: float = 0,
        known: KnownWrites | None = None,
    ) -> None:
        """The owner has the whole space, under a term."""
        self.tell_server(TermMoved(Instant(self.now("s") + seconds(term_s))))
        granted = RangeGranted(
            range=WHOLE,
            number=number,
            history=99,
            quiet_ns=seconds(quiet_s),
            known=known,
        )
        self.tell_server(granted)

    def add(self, name: str) -> None:
        """Add another client."""
        config = CacheConfig(server="s")
        if self.patient:
            config = CacheConfig(server="s", retry_ns=seconds(600), patience_ns=seconds(1200))
        self.caches[name] = CacheMachine(config, Random(ord(name)))
        self.entries[name] = Entries()
        self.answers[name] = []

    def now(self, who: str) -> Instant:
        """Return what the clock of one shows."""
        return Instant(1_000 * SECOND_NS + round(self.real * self.rates.get(who, 1.0)))

    def pass_(self, span_s: float) -> None:
        """Time passes, and nobody is woken."""
        self.real += seconds(span_s)

    def wake(self, who: str = "s") -> None:
        """One looks at its clock."""
        if who == "s":
            self.do_server(self.server.advance(self.now("s")))
        else:
            self.do_cache(who, self.caches[who].advance(self.now(who)))

    def tell_server(self, event: ServerEvent) -> None:
        """An event for the server."""
        self.do_server(self.server.handle(self.now("s"), event))

    def tell_cache(self, name: str, event: CacheEvent) -> None:
        """An event for a client."""
        self.do_cache(name, self.caches[name].handle(self.now(name), event))

    def do_server(self, output: Output[ServerAction]) -> None:
        """Carry out what the server wants; loads and bodies wait for the test."""
        for action in output.actions:
            match action:
                case TellCache(client=client, message=message):
                    to = next((n for n in self.caches if self.nonce(n) == client), "?")
                    self.sent.append(Letter("s", to, message))
                case LoadObject():
                    self.loads.append(action)
                case RunBody():
                    self.bodies.append(action)
                case PersistMemory(memory=memory):
                    self.memory = memory
                    self.tell_server(MemoryPersisted(memory))
                case RaiseFence() if not self.fences:
                    pass
                case RaiseFence(number=number):
                    refused = self.fence if self.fence >= number else 0
                    self.fence = max(self.fence, number)
                    self.tell_server(FenceRaised(number, refused))
                case _:
                    self.told.append(action)
        self.server.invariants()

    def do_cache(self, name: str, output: Output[CacheAction]) -> None:
        """Carry out what a client wants."""
        for action in output.actions:
            match action:
                case TellServer(message=message):
                    self.sent.append(Letter(name, "s", message))
                case Believe() | KeepEntry() | DropEntries() | DoubtEntries():
                    self.entries[name].perform(action)
                case TellReaders() | TellWriter():
                    self.answers[name].append(action)
                case Noted(kind=kind):
                    self.noted.append(kind)
        self.caches[name].invariants()

    # --- what machines have ---

    def nonce(self, name: str) -> int:
        """Return the nonce by which the server knows a client; 0 if the client has never asked it
        anything.
        """
        contact = self.caches[name].contacts.get("s")
        return 0 if contact is None else contact.nonce

    def reader(self, name: str) -> int:
        """The number under which a client is on record."""
        return self.caches[name].contacts["s"].reader

    def as_of(self, name: str, key: Key = K) -> AsOf:
        """Return the as-of of a client's entry."""
        return self.caches[name].belief.entries[key].as_of

    def listed(self, name: str) -> list[Listed]:
        """Return the entries about which a client would ask."""
        entries = self.caches[name].belief.entries.items()
        versions = ((key, entry.as_of) for key, entry in entries)
        return [Listed(key=key, number=v.number, count=v.count) for key, v in versions]

    def reconnected(self, listed: tuple[Listed, ...]) -> ToCache | ToVolumeServer:
        """Return the server's answer to a client that asks about these."""
        message = Reconnect(
            client=4, sequence=1, history=self.server.context.history, listed=listed
        )
        self.tell_server(ClientAsked(message))
        return self.take("Reconnected").message

    # --- messages ---

    def letters(self, name: str, *, of: str = "", to: str = "") -> list[Letter]:
        """Return the messages of that kind that are on their way."""
        return [
            each
            for each in self.sent
            if each.name == name and of in ("", each.of) and to in ("", each.to)
        ]

    def take(self, name: str, *, of: str = "", to: str = "") -> Letter:
        """Take the first of that kind off its way; the test may deliver it whenever it likes."""
        found = self.letters(name, of=of, to=to)
        assert found, (name, [(each.of, each.to, each.name) for each in self.sent])
        self.sent.remove(found[0])
        return found[0]

    def deliver(self, letter: Letter) -> None:
        """It arrives."""
        message = letter.message
        if letter.to == "s":
            assert isinstance(message, ToVolumeServer)
            self.tell_server(ClientAsked(message))
        elif letter.to in self.caches:
            assert isinstance(message, ToCache)
            self.tell_cache(letter.to, ServerSaid("s", message))

    def carry(self, name: str, *, of: str = "", to: str = "") -> ToCache | ToVolumeServer:
        """The first of that kind arrives."""
        letter = self.take(name, of=of, to=to)
        self.deliver(letter)
        return letter.message

    def settle(self) -> None:
        """Everything arrives, every load and body ends, until nothing is on its way."""
        while self.sent or self.loads or self.bodies:
            if self.sent:
                self.deliver(self.sent.pop(0))
            elif self.loads:
                self.load()
            else:
                self.end_body()

    def settle_to(self, name: str, *, loads: bool = False) -> None:
        """Everything arrives until a message of that name is on its way, or a load."""
        while not (self.loads if loads else self.letters(name)):
            if self.sent:
                self.deliver(self.sent.pop(0))
            else:
                self.load()

    # --- the store ---

    def load(self, value: bytes | None = None) -> None:
        """The first load ends, with what the store has, or had."""
        load = self.loads.pop(0)
        value = self.store.get(load.key) if value is None else value
        self.tell_server(ObjectLoaded(load.load, value))

    def end_body(self, value: bytes = b"new", *, ok: bool = True) -> None:
        """The first body ends, and has stored its value."""
        body = self.bodies.pop(0)
        if ok:
            for key in body.keys:
                self.store[key] = body.value or value
        self.tell_server(BodyEnded(body.write, ok))

    # --- what people do ---

    def reconnect(self, name: str) -> None:
        """A client is told that it is not on record, which it may be by now."""
        cache = self.caches[name]
        contact = cache.contacts["s"]
        self.use(name, K)
        assert contact.renewing is not None
        self.take("Renew", of=name)
        self.tell_cache(
            name,
            ServerSaid(
                "s", UnknownReader(client=contact.nonce, sequence=contact.renewing.sequence)
            ),
        )

    def want(self, name: str, key: Key = K, ticket: int = 1) -> None:
        """A reader wants an object."""
        self.tell_cache(name, ObjectWanted(ticket, key))

    def read(self, name: str, key: Key = K) -> bytes | None:
        """A reader gets what it wants, everything going well."""
        hit = self.hit(name, key)
        if hit is not None:
            return hit
        self.answers[name].clear()
        self.want(name, key)
        self.settle()
        return self.value(name)

    def reads(self, name: str) -> list[TellReaders]:
        """All that a client's readers were told."""
        return [each for each in self.answers[name] if isinstance(each, TellReaders)]

    def value(self, name: str) -> bytes | None:
        """Return what a client's readers were told last."""
        answer = self.answers[name][-1]
        assert isinstance(answer, TellReaders), answer
        if answer.outcome in ("hit", "unchanged"):
            return self.entries[name].objects[answer.key].value
        assert answer.outcome == "value", answer
        return answer.value

    def hit(self, name: str, key: Key = K) -> bytes | None:
        """Return what a reader finds that asks nobody."""
        found = self.entries[name].hit(key, lambda: self.now(name))
        return None if found is None else found.value

    def use(self, name: str, *keys: Key) -> None:
        """Say that there were hits."""
        self.tell_cache(name, WasUsed("s", keys))

    def write(self, *keys: Key, ticket: int = 1) -> None:
        """The server's application wants to write."""
        self.tell_server(WriteAsked(ticket, keys or (K,)))

    def write_at(self, name: str, value: bytes = b"own", key: Key = K, ticket: int = 9) -> None:
        """A client's application wants to write."""
        self.tell_cache(name, WriteWanted(ticket, key, value))


def opened(terms: Terms = TERMS, *, patient: bool = False, config: ServerConfig = ALONE) -> Stage:
    """A server whose quiet is over, and two clients."""
    stage = Stage(terms, patient=patient, config=config)
    stage.pass_(QUIET_S)
    stage.wake()
    return stage


def held(
    *names: str, terms: Terms = TERMS, patient: bool = False, config: ServerConfig = ALONE
) -> Stage:
    """Return a stage on which these clients hold a lease on K."""
    stage = opened(terms, patient=patient, config=config)
    for name in names or ("a",):
        assert stage.read(name) == b"old"
        assert stage.hit(name) == b"old"
    return stage
