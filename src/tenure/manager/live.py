"""Live events: server-sent events for pages and commands that follow a manager.

There are two kinds. `noted` is one thing that happened, with its number; a reader that comes back
says the last number that it saw, and is given the later events, as far as they are remembered.
Numbers begin anew with each start of the manager, so the id of an event has the start in it, too.
`pulse` is the manager's state, sent when it has changed: it has the LSN of each pool's table, which
says when to read that again.

A reader that does not keep up is disconnected, and comes back: EventSource reconnects
automatically. The port disconnects a reader that reads nothing at all, as it does for every answer.

Whoever connects and leaves makes events, and each goes to every reader. So an event is encoded
once, and a reader is sent what has come since the last time, 20 times a second at most.
"""

import asyncio
import secrets
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import takewhile
from typing import Literal

import msgspec
from aiohttp import web

from tenure.base.instants import in_seconds
from tenure.base.noted import Level, Noted
from tenure.manager.access.gate import Gate
from tenure.manager.access.roles import Permit
from tenure.manager.engine import ManagerEngine
from tenure.manager.http_errors import MOST_DIGITS, HttpRefusal, cut
from tenure.protocol.lease.answers import Pools, PoolSummary
from tenure.protocol.lease.leader.events import ListPools
from tenure.protocol.lease.leader.view import ManagerRole
from tenure.protocol.topology.answers import ClustersListed, ClusterSummary
from tenure.protocol.topology.questions import ListClusters

RECENT_EVENTS = 1000
"""The events that are remembered for readers that come, or come back: a rolling restart of 200
owners.
"""
WAITING_EVENTS = 2 * RECENT_EVENTS
"""The events that may wait for one reader: all that is remembered, when it comes, and as many
again. A reader with more has stopped reading, or its line is too thin.
"""
MOST_READERS = 100
"""Open pages and commands. Each costs a task, and what waits for it."""
PAUSE_SECONDS = 0.05
"""How soon a reader is sent what comes after what it was sent: nobody sees the difference, and all
readers together cost a few hundredths of the manager's time, whatever happens."""
PULSE_SECONDS = 0.5
"""How soon a page shows a change that it was not told of as an event."""
LIFE_BYTES = 4
"""Enough to tell the few lives apart that one reader can have seen."""
QUIET_SECONDS = 15.0
"""A word on a quiet stream, so that proxies do not cut it off."""


class LiveEvent(msgspec.Struct, frozen=True):
    """One thing that happened."""

    number: int
    at: float
    """Seconds since 1970, by the manager's clock."""
    kind: str
    level: Literal["debug", "info", "warning", "error"]
    pool: str
    detail: str
    cause: str
    life: str = ""
    """The life of the manager's process in which the number was given."""

    @property
    def id(self) -> str:
        """The id that a returning reader sends."""
        return f"{self.life}-{self.number}"


class Pulse(msgspec.Struct, frozen=True):
    """The manager's state."""

    role: ManagerRole
    proven: bool
    leader: str | None
    leadership: int
    lsn: int
    waits: bool
    """Whether it leads, and does not grant yet."""
    pools: tuple[PoolSummary, ...]
    """The pools of a leader."""
    clusters: tuple[ClusterSummary, ...] = ()
    """The clusters of a leader."""


class _Reader:
    """One stream."""

    def __init__(self, least: Level, permit: Permit) -> None:
        self.least = least
        self.permit = permit
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue(WAITING_EVENTS)
        """The messages that wait; an empty one ends the connection."""

    def end(self) -> None:
        """Tell nothing more than what waits."""
        self.put(b"")

    def put(self, frame: bytes) -> None:
        try:
            self._waiting.put_nowait(frame)
        except asyncio.QueueFull:
            self._take()
            self._waiting.put_nowait(b"")

    async def next(self) -> list[bytes]:
        """Everything that waits, as soon as there is anything."""
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                first = await self._waiting.get()
        except TimeoutError:
            first = b":\n\n"
        return [first, *self._take()]

    def _take(self) -> list[bytes]:
        return [self._waiting.get_nowait() for _ in range(self._waiting.qsize())]


class LiveFeed:
    """All streams of one manager."""

    def __init__(self, engine: ManagerEngine, gate: Gate, wall: Callable[[], float]) -> None:
        self._engine = engine
        self._gate = gate
        self._wall = wall
        self._recent: deque[tuple[Level, int, bytes]] = deque(maxlen=RECENT_EVENTS)
        """The level, the number and the bytes of each event."""
        self._last = 0
        self._life = secrets.token_hex(LIFE_BYTES)
        self._readers: dict[_Reader, None] = {}
        """Who came first is the first."""
        self._has_come = asyncio.Event()
        self._pulse: Pulse | None = None
        engine.observer.subscribe(self._on_noted)

    def add_routes(self, app: web.Application) -> None:
        """Put the stream under its path."""
        app.router.add_get("/v1/live", self.serve, allow_head=False)
        app.on_shutdown.append(self._end)
        app.cleanup_ctx.append(self._pulsing)

    async def _end(self, app: web.Application) -> None:
        for reader in self._readers:
            reader.end()

    # --- what happens ---

    def _on_noted(self, noted: Noted) -> None:
        self._last += 1
        level = noted.kind.level
        event = LiveEvent(
            number=self._last,
            at=round(self._wall(), 3),
            kind=noted.kind.phrase,
            level=level.name.lower(),  # type: ignore[arg-type]
            pool=noted.pool,
            detail=noted.detail,
            cause=noted.cause,
            life=self._life,
        )
        frame = _frame("noted", event, event.id)
        self._recent.append((level, event.number, frame))
        for reader in self._readers:
            if level >= reader.least:
                reader.put(frame)

    async def _pulsing(self, app: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(self._tell_pulse())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def _tell_pulse(self) -> None:
        while True:
            await asyncio.sleep(PULSE_SECONDS)
            for reader in self._readers:
                if not self._gate.still_takes(reader.permit):
                    reader.end()
            if not self._readers:
                self._pulse = None
                self._has_come.clear()
                await self._has_come.wait()  # a manager at rest is not woken for nobody
                continue
            pulse = await self._now()
            if pulse != self._pulse:
                self._pulse, frame = pulse, _frame("pulse", pulse)
                for reader in self._readers:
                    reader.put(frame)

    async def _now(self) -> Pulse:
        view = self._engine.view
        pools: tuple[PoolSummary, ...] = ()
        clusters: tuple[ClusterSummary, ...] = ()
        if view.leads:
            with suppress(TimeoutError):
                answer = await self._engine.ask(ListPools())
                pools = answer.pools if isinstance(answer, Pools) else ()
                listed = await self._engine.ask(ListClusters())
                clusters = listed.clusters if isinstance(listed, ClustersListed) else ()
        return Pulse(
            role=view.role,
            proven=view.is_proven,
            leader=view.leader,
            leadership=view.leadership,
            lsn=view.lsn,
            waits=in_seconds(view.grants_in_ns) > 0,
            pools=pools,
            clusters=clusters,
        )

    # --- a stream ---

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """The stream, until either side ends it."""
        permit = self._gate.let_in(request)
        self._make_room(permit)
        reader, since = _Reader(_least(request), permit), self._since(request)
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        for frame in self._missed(reader.least, since):
            reader.put(frame)
        self._readers[reader] = None
        self._has_come.set()
        try:
            await response.prepare(request)
            reader.put(_frame("pulse", await self._now()))
            await self._write(response, reader)
        except ConnectionError:  # the reader is gone, or has read nothing for too long
            pass
        finally:
            self._readers.pop(reader, None)
        return response

    def _make_room(self, newcomer: Permit) -> None:
        """See that there is a place: a token that has many readers keeps no other token out."""
        if len(self._readers) < MOST_READERS:
            return
        of = Counter(reader.permit for reader in self._readers)
        greediest, most = of.most_common(1)[0]
        if of[newcomer] + 1 >= most:
            why = f"{MOST_READERS} pages and commands follow this manager already"
            raise HttpRefusal(503, why, "close one, or ask again later")
        first = next(reader for reader in self._readers if reader.permit == greediest)
        first.end()
        del self._readers[first]

    def _since(self, request: web.Request) -> int:
        """The last event that a reader saw in this life of the manager; 0 if it saw none."""
        written = request.headers.get("Last-Event-ID") or request.query.get("since", "0")
        life, dash, number = written.rpartition("-")
        is_number = number.isascii() and number.isdigit() and len(number) <= MOST_DIGITS
        if not is_number or bool(dash) != bool(life):
            what = f"{cut(written)!r} is not the id of an event"
            raise HttpRefusal(400, what, "give the id of the last event that you saw, or nothing")
        is_of_now = life == self._life if dash else int(number) <= self._last
        return int(number) if is_of_now else 0

    def _missed(self, least: Level, since: int) -> list[bytes]:
        return [frame for level, number, frame in self._recent if number > since and level >= least]

    async def _write(self, response: web.StreamResponse, reader: _Reader) -> None:
        while True:
            frames = await reader.next()
            if told := b"".join(takewhile(bool, frames)):
                await response.write(told)
            if b"" in frames:
                return
            await asyncio.sleep(PAUSE_SECONDS)


def _frame(kind: str, body: msgspec.Struct, event_id: str = "") -> bytes:
    which = f"id: {event_id}\n" if event_id else ""
    return f"{which}event: {kind}\ndata: ".encode() + msgspec.json.encode(body) + b"\n\n"


def _least(request: web.Request) -> Level:
    written = request.query.get("level", "info")
    try:
        return Level[written.upper()]
    except KeyError:
        names = ", ".join(level.name.lower() for level in Level)
        raise HttpRefusal(
            400, f"there is no level {cut(written)!r}", f"give one of {names}"
        ) from None
