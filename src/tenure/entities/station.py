"""One process of a pool of entities, while it is entered: an Owner, a Lookup, and what runs between
them. Everything in it belongs to one event loop.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import Context
from functools import partial
from typing import Any

from tenure.base.keys import UserKey
from tenure.client.lease import Lease
from tenure.client.lookup import Lookup
from tenure.client.owner import Owner
from tenure.client.owner_engine import Answers
from tenure.entities.alarms import Alarms
from tenure.entities.caller import Caller
from tenure.entities.copies_given import CopiesGiven
from tenure.entities.copies_here import CopiesHere
from tenure.entities.edge import ASK_SECONDS, Edge
from tenure.entities.edge_watch import EdgeWatch
from tenure.entities.entity_kind import EntityKind
from tenure.entities.envelopes import Envelopes
from tenure.entities.gate import EntityGate
from tenure.entities.giving_over import offers_of
from tenure.entities.inspector import Inspector
from tenure.entities.live_entity import LiveEntity
from tenure.entities.method_runs import MethodRuns
from tenure.entities.settings import EntitySettings
from tenure.entities.socket_offer import SocketOffer, offered
from tenure.entities.sockets import pushed
from tenure.entities.turns import EntityHost
from tenure.errors import ClosedError, ConfigurationError, NotOwner, TenureError
from tenure.protocol.entity.envelope import Push
from tenure.protocol.entity.key_line import EntityCall
from tenure.protocol.entity.messages import DISCONNECT, FRAMES, SocketGone
from tenure.protocol.lease.inspecting import Inspect, Inspected
from tenure.protocol.lease.reports import EntityReport
from tenure.runtime.loops import call_in
from tenure.transport.link import GatedAnswer, always
from tenure.transport.links import Links
from tenure.wire.entity import packed, read_pushed, read_received

PING = ".ping"
SWEEP_SECONDS = 10.0
SILENT_SECONDS = 4 * ASK_SECONDS
MOST_PUSHED = 1000
"""For how many sockets one message has frames: beside the largest frame, more would not fit."""


class Station:
    """One process of a pool of entities."""

    owner: Owner
    lookup: Lookup
    host: EntityHost
    caller: Caller
    edge: Edge
    _watch: EdgeWatch

    def __init__(self, kind: EntityKind, settings: EntitySettings) -> None:
        self._settings = settings
        self.kind = kind
        self.loop = asyncio.get_running_loop()
        self.copies: CopiesHere | None = None
        """The copies of entities that other processes own, if readings run here, too."""
        self.runs = MethodRuns(settings.pool, settings.turn)
        self._links = Links(settings.environment.channels(), self._serve, self._on_link_lost)
        self._alarms = Alarms(settings.environment, self._go)
        self._tasks: dict[asyncio.Task[None], None] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Be an owner of the pool until the block ends."""
        settings = self._settings
        async with AsyncExitStack() as stack:
            envelopes = Envelopes(settings.settle, settings.environment.clock)
            store = await settings.open_store()
            if store is not None:
                stack.push_async_callback(store.close)
            wall, alarms = settings.environment.wall, self._alarms
            given = self._copies_given(is_durable=store is not None)
            gate = EntityGate(
                self.kind.codec, envelopes, store, wall, self._let_out, alarms.agenda.arm, given
            )
            self.host = alarms.host = EntityHost(self.kind, settings, gate, self.runs)
            address = await self._listen()
            stack.push_async_callback(self._end)
            self.lookup = settings.lookup()
            self.owner = alarms.owner = settings.owner(
                address=address,
                hand_off=envelopes,
                on_grant=alarms.on_grant,
                lookup=self.lookup,
                probe=self._probe,
                of_class=(self.kind.name, self.kind.version),
                volume=None if given is None else given.volume,
            )
            if given is not None:
                given.host = self.host
                self.copies = CopiesHere(self.kind, settings, self.lookup, self.runs)
            self.caller = Caller(
                self.owner,
                self.lookup,
                self._links,
                self.host,
                settings,
                settings.environment.random(),
                self.copies,
            )
            self.edge = Edge(
                self.caller, self.owner.address, settings.environment.random(), self._go
            )
            self._watch = EdgeWatch(
                self.host, self.owner, self._links, self.edge, self._end_socket, self._go
            )
            self.host.on_edge = self._watch.look
            await stack.enter_async_context(self.owner)
            self._answer_inspections()
            await stack.enter_async_context(self.lookup)
            if self.copies is not None:
                await stack.enter_async_context(self.copies)
            stack.push_async_callback(self._leave)
            self._go(self._sweep())
            self._go(self._tell())
            self._go(self.edge.keep_asking())
            yield

    def _copies_given(self, *, is_durable: bool) -> CopiesGiven | None:
        settings = self._settings
        if settings.reads == "owner":
            return None
        return CopiesGiven(term=settings.read_term, durable=is_durable, insecure=settings.insecure)

    @property
    def pool(self) -> str:
        """Whose keys these are."""
        return self._settings.pool

    def offered(self, websocket: object) -> SocketOffer | None:
        """A gateway's offer to be the other end of a WebSocket that is not accepted yet."""
        return offered(offers_of(websocket), self.pool, self._settings.secret)

    async def _listen(self) -> str:
        try:
            return await self._links.listen(self._settings.listen, self._settings.address)
        except OSError as error:
            raise ConfigurationError(
                f"entities cannot listen on {self._settings.listen}: {error}. Let them choose a "
                'free port, as in listen="127.0.0.1:0"'
            ) from None

    async def _leave(self) -> None:
        await self.owner.close(drain=self._settings.drain)

    async def _end(self) -> None:
        self._stop()
        await self._alarms.agenda.close()
        await self._links.close()
        self._stop()  # a connection that is lost has the edge ask

    def _stop(self) -> None:
        for each in list(self._tasks):
            each.cancel()

    def _go(self, work: Any) -> None:  # noqa: ANN401  # a coroutine
        # Whatever began it, it does not run on behalf of a turn.
        task = asyncio.get_running_loop().create_task(work, context=Context())
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _sweep(self) -> None:
        idle = self._settings.idle
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(idle / 2, SWEEP_SECONDS))
            self.host.passivate(loop.time() - idle)
            if self.host.has_empty_rows:
                self._go(self.host.tidy())
            for key, socket in self.host.silent_sockets(SILENT_SECONDS):
                self._go(self._end_socket(key, socket))

    async def _tell(self) -> None:
        while True:
            self.owner.tell_entities(self.report())
            await asyncio.sleep(self._settings.tell)

    def report(self) -> EntityReport:
        """The state of the entities here."""
        return self.host.report(len(self._alarms.agenda))

    async def _end_socket(self, key: str | int, socket: bytes) -> None:
        """End a socket whose edge has gone without a word."""
        call = EntityCall(key, b"", DISCONNECT, packed(SocketGone(socket)))
        with suppress(TenureError):
            await self.host.perform(call)

    # --- what others ask ---

    async def _serve(self, call: EntityCall) -> GatedAnswer:
        if call.method == PING:
            return self.owner.name.encode(), always
        if call.method == FRAMES:
            return packed(self.edge.take(read_pushed(call.data))), always
        lease = self.owner.check(call.key)
        if lease is None:
            raise NotOwner(f"{call.key!r:.100} is not held here", address=self._elsewhere(call.key))
        return await self.host.perform(call), partial(self.owner.holds, lease)

    def _elsewhere(self, key: UserKey) -> str | None:
        try:
            found = self.lookup.find(key)
        except ClosedError:  # others ask until they hear of it
            return None
        return None if found == self.owner.address else found

    def _on_link_lost(self, url: str) -> None:
        self.edge.lost()
        self._watch.look(url)

    async def _probe(self) -> None:
        """Raise unless its own address leads here."""
        link = await self._links.link(self.owner.address)
        found = (await link.ask(EntityCall("", b"", PING, b""))).decode()
        if found != self.owner.name:
            raise ConfigurationError(
                f"{self.owner.address} is answered by {found!r}, and not by {self.owner.name!r}"
            )

    def _answer_inspections(self) -> None:
        """Have operators told what the entities here are. The owner may be in another thread."""
        inspector = Inspector(self.host, self._settings.environment.clock)

        async def answer(asked: Inspect, send: Answers) -> None:
            found = await inspector.answer(asked.question)
            send(Inspected(pool=asked.pool, ticket=asked.ticket, answer=found))

        self.owner.answer_inspections(
            lambda asked, send: call_in(self.loop, lambda: self._go(answer(asked, send)))
        )

    # --- what is kept ---

    def _let_out(self, live: LiveEntity, lease: Lease, pushes: list[Push]) -> None:
        """Send frames to the edges of their sockets."""
        for each in pushes:
            for first in range(0, len(each.sockets), MOST_PUSHED):
                sockets = each.sockets[first : first + MOST_PUSHED]
                said = pushed(live, lease, each.frames, sockets)
                if each.edge == self.owner.address:
                    self.host.confirm(live.key, self.edge.take(said))
                else:
                    self._go(self._push(live.key, lease, each.edge, packed(said)))

    async def _push(self, key: str | int, lease: Lease, edge: str, data: bytes) -> None:
        try:
            link = self._links.to(edge) or await self._links.link(edge)
            asked = link.ask(EntityCall(key, b"", FRAMES, data), partial(self.owner.holds, lease))
            self.host.confirm(key, read_received(await asked))
        except TenureError:
            pass  # the edge asks for it
