"""One process of a pool of entities, while it is entered: an Owner, a Lookup, and what runs between
them. Everything in it is of one event loop.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import Context
from typing import Any

import msgspec

from tenure.base.keys import UserKey
from tenure.base.ranges import KeyRange
from tenure.client.lease import Lease
from tenure.client.lookup import Lookup
from tenure.client.owner import Owner
from tenure.entities.agenda import LATER, Agenda
from tenure.entities.alarms import ring_alarm
from tenure.entities.caller import Caller
from tenure.entities.edge import ASK_SECONDS, Edge
from tenure.entities.entity_kind import EntityKind
from tenure.entities.envelopes import Envelopes
from tenure.entities.host import EntityHost
from tenure.entities.links import GatedAnswer, Links, always
from tenure.entities.live_entity import LiveEntity
from tenure.entities.settings import EntitySettings
from tenure.entities.socket_calls import (
    DISCONNECT,
    FRAMES,
    PushedFrames,
    SocketGone,
    perform_any,
)
from tenure.entities.stores import EntityStore
from tenure.errors import (
    Busy,
    ClosedError,
    ConfigurationError,
    LeaseLost,
    NotOwner,
    StoreFailed,
    TenureError,
)
from tenure.protocol.entity.envelope import Push
from tenure.protocol.entity.key_line import EntityCall
from tenure.protocol.lease.reports import EntityReport

PING = ".ping"
SWEEP_SECONDS = 10.0
TELL_SECONDS = 1.0
"""Between two looks at what the owner tells the managers of this process; it renews less often."""
SILENT_SECONDS = 4 * ASK_SECONDS
_encode = msgspec.msgpack.Encoder().encode
_pushed = msgspec.msgpack.Decoder(PushedFrames).decode
_received = msgspec.msgpack.Decoder(dict[bytes, int]).decode
logger = logging.getLogger("tenure.entities")


class Station:
    """What is entered."""

    owner: Owner
    lookup: Lookup
    host: EntityHost
    caller: Caller
    edge: Edge

    def __init__(self, kind: EntityKind, settings: EntitySettings) -> None:
        self._settings = settings
        self.kind = kind
        self._links = Links(settings.environment.channels(), self._serve, self._on_link_lost)
        self._agenda = Agenda(settings.environment, self._ring)
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Be an owner of the pool until the block ends."""
        settings = self._settings
        async with AsyncExitStack() as stack:
            envelopes = Envelopes(settings.settle)
            store = await settings.open_store()
            if store is not None:
                stack.push_async_callback(store.close)
            self.host = EntityHost(
                settings.pool,
                self.kind,
                settings.options,
                envelopes,
                store,
                self,
                settings.environment.wall,
            )
            url = await self._listen()
            stack.push_async_callback(self._end)
            self.lookup = settings.lookup()
            self.owner = settings.owner(
                address=settings.address or url,
                hand_off=envelopes,
                on_grant=self._on_grant,
                lookup=self.lookup,
                probe=self._probe,
            )
            self.caller = Caller(
                self.owner,
                self.lookup,
                self._links,
                self._perform,
                settings.options,
                settings.environment.random(),
            )
            self.edge = Edge(
                self.caller, self.owner.address, settings.environment.random(), self._go
            )
            await stack.enter_async_context(self.owner)
            await stack.enter_async_context(self.lookup)
            stack.push_async_callback(self._leave)
            self._go(self._sweep())
            self._go(self._tell())
            self._go(self.edge.keep_asking())
            yield

    async def _listen(self) -> str:
        try:
            return await self._links.listen(self._settings.listen)
        except OSError as error:
            raise ConfigurationError(
                f"entities cannot listen on {self._settings.listen}: {error}. Let them choose a "
                'free port, as in listen="127.0.0.1:0"'
            ) from None

    async def _leave(self) -> None:
        await self.owner.close(drain=self._settings.drain)

    async def _end(self) -> None:
        for each in list(self._tasks):
            each.cancel()
        await self._agenda.close()
        await self._links.close()

    def _go(self, work: Any) -> None:  # noqa: ANN401  # a coroutine
        # Whoever began it, it is not on behalf of a turn.
        task = asyncio.get_running_loop().create_task(work, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _sweep(self) -> None:
        idle = self._settings.options.idle
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
            await asyncio.sleep(TELL_SECONDS)

    def report(self) -> EntityReport:
        """How the entities here are."""
        return self.host.report(len(self._agenda))

    async def _end_socket(self, key: str | int, socket: bytes) -> None:
        """Its edge has gone without a word."""
        call = EntityCall(key, b"", DISCONNECT, _encode(SocketGone(socket)))
        with suppress(TenureError):
            await self._perform(call)

    # --- what others ask ---

    async def _serve(self, call: EntityCall) -> GatedAnswer:
        if call.method == PING:
            return self.owner.name.encode(), always
        if call.method == FRAMES:
            return _encode(self.edge.take(_pushed(call.data))), always
        lease = self.owner.check(call.key)
        if lease is None:
            raise NotOwner(f"{call.key!r:.100} is not held here", address=self._elsewhere(call.key))
        data = await self._perform(call)
        held: Lease = lease
        return data, lambda: self.owner.holds(held)

    def _elsewhere(self, key: UserKey) -> str | None:
        try:
            found = self.lookup.find(key)
        except ClosedError:  # it ends before the links do, and others ask until they hear of it
            return None
        return None if found == self.owner.address else found

    async def _perform(self, call: EntityCall) -> bytes:
        return await perform_any(self.host, call)

    def _on_link_lost(self, _: str) -> None:
        self.edge.ask_all()  # whatever was on its way may be lost

    async def _probe(self) -> None:
        """That its own address leads here."""
        link = await self._links.link(self.owner.address)
        found = (await link.ask(EntityCall("", b"", PING, b""))).decode()
        if found != self.owner.name:
            raise ConfigurationError(
                f"{self.owner.address} is answered by {found!r}, and not by {self.owner.name!r}"
            )

    # --- what is kept ---

    def push(self, live: LiveEntity, lease: Lease, pushes: list[Push]) -> None:
        """See `Outlet`."""
        for each in pushes:
            pushed = PushedFrames.of(each, lease)
            if each.edge == self.owner.address:
                self.host.confirm(live.key, self.edge.take(pushed))
            else:
                self._go(self._push(live.key, lease, each.edge, _encode(pushed)))

    async def _push(self, key: str | int, lease: Lease, edge: str, data: bytes) -> None:
        try:
            link = self._links.to(edge) or await self._links.link(edge)
            asked = link.ask(EntityCall(key, b"", FRAMES, data), lambda: self.owner.holds(lease))
            self.host.confirm(key, _received(await asked))
        except TenureError:
            pass  # the edge asks for it

    def arm(self, key: str | int, at: float | None) -> None:
        """See `Outlet`."""
        self._agenda.arm(key, at)

    async def _on_grant(self, ranges: tuple[KeyRange, ...]) -> None:
        """The alarms of these keys ring here from now on."""
        if self.host.store is None:
            self._arm_all(self.host.envelopes.alarms_within(ranges))
        else:
            self._go(self._arm_stored(self.host.store, ranges))

    async def _arm_stored(self, store: EntityStore, ranges: tuple[KeyRange, ...]) -> None:
        while True:
            try:
                self._arm_all(await store.alarms_within(ranges))
            except StoreFailed as error:
                logger.warning("the alarms of %s are not known yet: %s", self.host.pool, error)
                await asyncio.sleep(LATER)
            else:
                return

    def _arm_all(self, found: list[tuple[str | int, float]]) -> None:
        for key, at in found:
            self._agenda.arm(key, at)

    async def _ring(self, key: str | int) -> None:
        try:
            await ring_alarm(self.host, key)
        except (NotOwner, LeaseLost):
            if self.owner.check(key) is not None:  # it was about to move, and has not
                self._agenda.later(key)  # otherwise the next owner finds it
        except Busy:
            self._agenda.later(key)
        except Exception:
            logger.exception("the alarm of %s %.100r could not be handled", self.host.pool, key)
            self._agenda.later(key)
