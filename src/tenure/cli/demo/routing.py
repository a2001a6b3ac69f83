"""A frontend's way to the owner of a key: ask, and ask again, until it is done or too late.

What `Lookup.find` says may be out of date, and an owner may be gone or stand still. So whoever asks
tries again: when the lookup is told that the key is elsewhere, or after a short and growing pause,
for nobody is told that a grant has arrived (PRS 2.1). An attempt that gets no answer is given up,
but not taken back: like a packet in a real network it stays on its way, and is answered when the
owner that stood still goes on. That answer must be a refusal, and is counted.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from random import Random
from typing import NamedTuple, Protocol, TypeAlias

import aiohttp
import msgspec

from tenure import KeyChange
from tenure.base.instants import Instant, in_seconds, seconds
from tenure.cli.demo.presence import Answered, Status
from tenure.runtime.clock import boot_clock

SHORTEST_PAUSE_NS = seconds(0.01)
LONGEST_PAUSE_NS = seconds(0.15)
"""Where no change of the table is told: it was told before, or the owner is only slow."""
ATTEMPTS_IN_A_HOLD = 4
HOLDS_IN_A_DEADLINE = 2


class PresenceRequest(NamedTuple):
    """A read of a user's presence, or with a status, its publication."""

    user: str
    status: Status | None = None


class Misdirected(NamedTuple):
    """It is not the owner, and believes that this is."""

    owner: str | None


class NoReply(NamedTuple):
    """The connection failed, or there was no answer in time."""


AttemptResult: TypeAlias = Answered | Misdirected | NoReply


class Watching(Protocol):
    """What it takes of a `Watch`."""

    def cancel(self) -> None: ...


class Finder(Protocol):
    """What it takes of a `Lookup`."""

    def find(self, key: str, /) -> str | None: ...
    def watch(self, key: str, callback: Callable[[KeyChange], object], /) -> Watching: ...


class _Hint(msgspec.Struct):
    owner: str | None


@dataclass
class RequestCounts:
    """What the operations of this frontend came to; see `FrontendReport`."""

    requests: int = 0
    failed: int = 0
    rerouted: int = 0
    attempts: int = 0
    refused: int = 0
    refused_late: int = 0
    slowest_ns: int = 0


class Router:
    """Does the operations of one frontend."""

    def __init__(
        self, session: aiohttp.ClientSession, lookup: Finder, hold_ns: int, random: Random
    ) -> None:
        self.counts = RequestCounts()
        self._session = session
        self._lookup = lookup
        self._random = random
        self._deadline_ns = HOLDS_IN_A_DEADLINE * hold_ns
        self._attempt_ns = hold_ns // ATTEMPTS_IN_A_HOLD
        self._given_up: set[asyncio.Task[AttemptResult]] = set()

    async def do(self, request: PresenceRequest) -> Answered | None:
        """Do it; None where it could not be done in time."""
        began = boot_clock()
        done = await self._try_until(request, Instant(began + self._deadline_ns))
        self.counts.requests += 1
        self.counts.slowest_ns = max(self.counts.slowest_ns, boot_clock() - began)
        if done is None:
            self.counts.failed += 1
        return done

    async def _try_until(self, request: PresenceRequest, deadline: Instant) -> Answered | None:
        first = found = address = self._lookup.find(request.user)
        pause_ns = SHORTEST_PAUSE_NS
        while True:
            hint = None
            if address is not None:
                match await self._attempt(address, request, deadline):
                    case Answered() as done:
                        self.counts.rerouted += address != first
                        return done if boot_clock() <= deadline else None
                    case Misdirected(owner):
                        hint = owner if owner != address else None
                    case NoReply():
                        pass
            known = found
            found = await self._found_after(request.user, known, pause_ns)
            if boot_clock() > deadline:
                return None
            is_told = found != known
            pause_ns = SHORTEST_PAUSE_NS if is_told else min(2 * pause_ns, LONGEST_PAUSE_NS)
            address = hint if hint and found == address else found

    async def _found_after(self, user: str, known: str | None, pause_ns: int) -> str | None:
        """Where the key is when that is told to be elsewhere than was known, or after the pause."""
        told = asyncio.Event()
        watching = self._lookup.watch(user, lambda _: told.set())
        try:
            if self._lookup.find(user) == known:
                with suppress(TimeoutError):
                    async with asyncio.timeout(in_seconds(pause_ns) * self._random.uniform(0.5, 1)):
                        await told.wait()
        finally:
            watching.cancel()
        return self._lookup.find(user)

    async def _attempt(
        self, address: str, request: PresenceRequest, deadline: Instant
    ) -> AttemptResult:
        self.counts.attempts += 1
        task = asyncio.create_task(self._send(address, request))
        wait_ns = max(min(self._attempt_ns, deadline - boot_clock()), 0)
        await asyncio.wait({task}, timeout=in_seconds(wait_ns))
        if not task.done():
            self._given_up.add(task)
            task.add_done_callback(self._on_late_reply)
            return NoReply()
        reply = task.result()
        self.counts.refused += isinstance(reply, Misdirected)
        return reply

    def _on_late_reply(self, task: asyncio.Task[AttemptResult]) -> None:
        self._given_up.discard(task)
        if not task.cancelled() and isinstance(task.result(), Misdirected):
            self.counts.refused += 1
            self.counts.refused_late += 1

    async def _send(self, address: str, request: PresenceRequest) -> AttemptResult:
        url = f"{address}/presence/{request.user}"
        body = None if request.status is None else msgspec.json.encode(request.status)
        method = "GET" if body is None else "PUT"
        try:
            async with self._session.request(method, url, data=body) as response:
                data = await response.read()
        except (aiohttp.ClientError, OSError):
            return NoReply()
        match response.status:
            case HTTPStatus.OK:
                return Answered(msgspec.json.decode(data, type=Status | None))
            case HTTPStatus.MISDIRECTED_REQUEST:
                return Misdirected(msgspec.json.decode(data, type=_Hint).owner)
            case _:
                return NoReply()

    async def close(self) -> None:
        """Take back what was given up."""
        for task in self._given_up:
            task.cancel()
        if self._given_up:
            await asyncio.wait(self._given_up)
