"""The operations of the demo's clients, sent to the owners by the library's routing.

An attempt that the routing gives up is not taken back here: like a packet in a real network it
stays on its way, and is answered when the owner that stood still goes on. That answer must be a
refusal, and is counted.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

import aiohttp
import msgspec

from tenure import TenureError, route
from tenure.base.instants import in_seconds
from tenure.cli.demo.presence import Answered, Status
from tenure.cli.demo.reports import POOL
from tenure.routing.finder import Finder
from tenure.runtime.clock import boot_clock

HOLDS_IN_A_DEADLINE = 2
PATH = "/presence/{user}"


class PresenceRequest(NamedTuple):
    """A read of a user's presence, or with a status, its publication."""

    user: str
    status: Status | None = None


@dataclass
class RequestCounts:
    """How the operations of this frontend ended; see `FrontendReport`."""

    requests: int = 0
    failed: int = 0
    rerouted: int = 0
    attempts: int = 0
    refused: int = 0
    refused_late: int = 0
    slowest_ns: int = 0


_asked: ContextVar[list[str]] = ContextVar("asked")
"""The owners to which the operation of this task was sent."""


class Attempts:
    """A middleware behind the routing: counts attempts, and does not take them back."""

    def __init__(self, counts: RequestCounts) -> None:
        self._counts = counts
        self._given_up: set[asyncio.Task[aiohttp.ClientResponse]] = set()

    async def __call__(
        self,
        request: aiohttp.ClientRequest,
        handler: Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]],
    ) -> aiohttp.ClientResponse:
        self._counts.attempts += 1
        _asked.get().append(request.url.authority)
        task = asyncio.ensure_future(handler(request))
        try:
            response = await asyncio.shield(task)
        except asyncio.CancelledError:
            self._given_up.add(task)
            task.add_done_callback(self._on_late)
            raise
        self._counts.refused += response.status == HTTPStatus.MISDIRECTED_REQUEST
        return response

    def _on_late(self, task: "asyncio.Task[aiohttp.ClientResponse]") -> None:
        self._given_up.discard(task)
        if task.cancelled() or task.exception() is not None:
            return
        response = task.result()
        if response.status == HTTPStatus.MISDIRECTED_REQUEST:
            self._counts.refused += 1
            self._counts.refused_late += 1
        response.close()

    async def close(self) -> None:
        """Take back what was given up."""
        given_up = list(self._given_up)
        for task in given_up:
            task.cancel()
        await asyncio.gather(*given_up, return_exceptions=True)


class Operations:
    """Does the operations of one process."""

    def __init__(self, session: aiohttp.ClientSession, counts: RequestCounts) -> None:
        self.counts = counts
        self._session = session

    async def do(self, request: PresenceRequest) -> Answered | None:
        """Do it; None where it could not be done in time."""
        began = boot_clock()
        asked: list[str] = []
        _asked.set(asked)
        done = await self._send(request)
        self.counts.requests += 1
        self.counts.rerouted += done is not None and asked[0] != asked[-1]
        self.counts.slowest_ns = max(self.counts.slowest_ns, boot_clock() - began)
        self.counts.failed += done is None
        return done

    async def _send(self, request: PresenceRequest) -> Answered | None:
        body = None if request.status is None else msgspec.json.encode(request.status)
        method = "GET" if body is None else "PUT"
        path = PATH.format(user=request.user)
        try:
            async with self._session.request(method, path, data=body) as response:
                data = await response.read()
        except (aiohttp.ClientError, OSError, TenureError):
            return None
        if response.status != HTTPStatus.OK:
            return None
        return Answered(msgspec.json.decode(data, type=Status | None))


@asynccontextmanager
async def operations(lookup: Finder, hold_ns: int) -> AsyncIterator[Operations]:
    """Operations on what `lookup` finds."""
    counts = RequestCounts()
    attempts = Attempts(counts)
    routing = route(lookup, key=PATH, deadline=in_seconds(HOLDS_IN_A_DEADLINE * hold_ns))
    async with aiohttp.ClientSession(
        f"http://{POOL}",
        middlewares=[routing, attempts],
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),  # attempts are given up, but not taken back
    ) as session:
        try:
            yield Operations(session, counts)
        finally:
            await attempts.close()
