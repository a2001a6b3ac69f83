"""The cost to the manager of a renewal that changes nothing, over real sockets.

Owners in a process of their own, with 1, 64 or 200 ranges each, renew what they hold: in short, by
the fingerprint of it, as owners do; and with the whole list, as owners of the version before do.
The figure is CPU time of the whole manager process, kernel included, divided by the number of
renewals. One at a time is the dear case: each renewal wakes the manager for itself alone.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from http.client import HTTPConnection
from statistics import median
from typing import NamedTuple
from urllib.parse import urlsplit

import aiohttp

from benchmarks._manager import ManagerProcess, loop_name, print_figure, running_manager
from benchmarks._packed import Socket
from benchmarks._quick import QUICK, at_most, sized
from tenure.base.instants import in_seconds
from tenure.base.keys import PoolKind
from tenure.protocol.lease.fingerprints import fingerprint
from tenure.protocol.lease.messages import (
    Held,
    Hello,
    Introduction,
    Join,
    LeaseRequest,
    LeaseResponse,
    Poke,
    ShortRequest,
    ShortResponse,
)
from tenure.wire.lease import HeardByOwner, decode_to_owner, encode
from tenure.wire.versions import NEWEST, SUBPROTOCOLS

OWNERS = 16
RANGES = (1, 64, 200)
RENEWALS = sized(6_000, 1_000)
REPEATS = sized(5, 1)
BOUND_US = None if QUICK else 40.0
"""The bound on a quiet machine. The quick form has the ratio: its few renewals are ten clock ticks
of CPU.
"""
MOST_TO_WHOLE = 0.75
"""A renewal in short to one with the list, where owners have the most ranges."""
BOUND_OF_WHOLE_US = at_most(200)
BOUND_BYTES = 200
AGAIN_SECONDS = 2.0
JOINS_AT_ONCE = 100


class Owner:
    """An owner without a mind: it asks for what it has."""

    again_seconds = AGAIN_SECONDS

    def __init__(
        self,
        number: int,
        socket: Socket,
        pool: str = "bench",
        kind: PoolKind | None = "hashed",
    ) -> None:
        self.number = number
        self.pool = pool
        self.kind = kind
        self.socket = socket
        self.sequence = 0
        self.held: tuple[Held, ...] = ()
        self.told = b""
        self.receipt = b""
        self.told_seconds = 0.0
        """How long after its last question it was told to ask again."""
        self.pokes = 0
        self.bytes = (0, 0)
        """The sizes of the last request, and of its answer."""

    async def hear(self) -> HeardByOwner:
        """Take what the manager says, except its pokes."""
        while True:
            data = await self.socket.receive_bytes()
            message = decode_to_owner(data, NEWEST)
            if not isinstance(message, Poke):
                self.bytes = (self.bytes[0], len(data))
                return message
            self.pokes += 1

    async def join(self) -> None:
        self.seal = await self._introduced()
        response = await self._ask(self._join)
        assert isinstance(response, LeaseResponse), response
        self.incarnation = response.incarnation

    async def _introduced(self) -> Introduction:
        await self.socket.send_bytes(encode(Hello(pool=self.pool, token=1), NEWEST))
        while not isinstance(introduction := await self.hear(), Introduction):
            pass  # it answers what was asked before
        return introduction

    def _join(self) -> Join:
        self.sequence += 1
        return Join(
            pool=self.pool,
            kind=self.kind,
            name=f"owner-{self.number}",
            address=f"http://10.0.0.{self.number}:8000",
            owner_nonce=self.number + (1 << 62),
            manager_nonce=self.seal.manager_nonce,
            sequence=self.sequence,
        )

    async def renew(self) -> None:
        """Renew with the whole list."""
        response = await self._ask(self._request)
        assert isinstance(response, LeaseResponse), response
        self.held = tuple(
            Held(start=lease.start, end=lease.end, number=lease.number)
            for lease in response.leases
            if lease.mark != "recalled"
        )
        self.told = response.fingerprint

    async def renew_in_short(self) -> None:
        """Renew with the fingerprint of the list, which the manager tells and this
        computes once.
        """
        response = await self._ask(lambda: in_short(self._request(), self.told))
        assert isinstance(response, ShortResponse), response

    def _request(self) -> LeaseRequest:
        self.sequence += 1
        return LeaseRequest(
            pool=self.pool,
            incarnation=self.incarnation,
            owner_nonce=self.number + (1 << 62),
            manager_nonce=self.seal.manager_nonce,
            sequence=self.sequence,
            journal=self.seal.journal,
            leadership=self.seal.leadership,
            held=self.held,
            receipt=self.receipt,
        )

    async def _ask(self, request: Callable[[], Join | LeaseRequest | ShortRequest]) -> HeardByOwner:
        """Ask until there is an answer: a manager that has just not proved that it leads says
        nothing. Each time it is waited for twice as long: a busy one has enough to answer.
        """
        again_seconds = self.again_seconds
        while True:
            data = encode(request(), NEWEST)
            self.bytes = (len(data), 0)
            await self.socket.send_bytes(data)
            with suppress(TimeoutError):
                async with asyncio.timeout(again_seconds):
                    response = await self._answer()
                if isinstance(response, LeaseResponse | ShortResponse):
                    self.receipt = response.receipt
                    self.told_seconds = in_seconds(response.renew_ns)
                return response
            again_seconds *= 2

    async def _answer(self) -> HeardByOwner:
        """Return the answer to the newest request."""
        while True:
            response = await self.hear()
            if not isinstance(response, LeaseResponse | ShortResponse):
                return response
            if response.sequence == self.sequence:
                return response

    def is_settled(self) -> bool:
        """Whether the manager renews just what this owner lists."""
        nonces = self.number + (1 << 62), self.seal.manager_nonce
        return self.told == fingerprint(self.held, *nonces)


def in_short(whole: LeaseRequest, told: bytes) -> ShortRequest:
    """Return a request that says the same in short, if there is nothing to say but what is held."""
    return ShortRequest(
        pool=whole.pool,
        incarnation=whole.incarnation,
        owner_nonce=whole.owner_nonce,
        manager_nonce=whole.manager_nonce,
        sequence=whole.sequence,
        journal=whole.journal,
        leadership=whole.leadership,
        fingerprint=told,
        receipt=whole.receipt,
    )


class Figures(NamedTuple):
    alone: list[float]
    """Seconds of CPU for each renewal, one at a time."""
    together: list[float]
    """The same, all owners at once."""
    bytes: tuple[int, int]
    """The sizes of the largest request, and of the largest answer."""


async def join(owners: list[Owner]) -> None:
    """Have all join, few at once, and renew those that are in: on a busy machine a thousand joins
    may take longer than a term.
    """
    for first in range(0, len(owners), JOINS_AT_ONCE):
        until = first + JOINS_AT_ONCE
        await asyncio.gather(*(owner.join() for owner in owners[first:until]))
        await asyncio.gather(*(owner.renew() for owner in owners[:until]))


async def settle(owners: list[Owner]) -> None:
    """Renew until nothing moves any more: all at once, since a thousand one after the other may
    take longer on a busy machine than their terms.
    """
    while not all(owner.held and owner.is_settled() for owner in owners):
        await asyncio.gather(*(owner.renew() for owner in owners))
        await asyncio.sleep(0.2)  # owners that arrive together are gathered for this long


async def measure(manager: ManagerProcess, owners: list[Owner], *, short: bool) -> Figures:
    async def repeat(owner: Owner, times: int) -> None:
        for _ in range(times):
            await (owner.renew_in_short() if short else owner.renew())

    alone, together, each = [], [], RENEWALS // OWNERS
    for _ in range(REPEATS):
        before = manager.cpu_seconds()
        for _ in range(each):
            for owner in owners:
                await repeat(owner, 1)
        alone.append((manager.cpu_seconds() - before) / (each * OWNERS))
        before = manager.cpu_seconds()
        await asyncio.gather(*(repeat(owner, each) for owner in owners))
        together.append((manager.cpu_seconds() - before) / (each * OWNERS))
    asked, answered = (max(owner.bytes[i] for owner in owners) for i in (0, 1))
    return Figures(alone, together, (asked, answered))


def make_pool(manager: ManagerProcess, ranges: int) -> str:
    """Make a pool in which each owner has this many ranges."""
    pool = f"bench-{ranges}"
    points = [f"{i:05}" for i in range(1, OWNERS * ranges)]
    with closing(HTTPConnection(urlsplit(manager.url).netloc)) as connection:
        asked = {"name": pool, "kind": "ordered", "split_points": points}
        _post(connection, "/v1/pools", asked)
        # Any other policy makes cold neighbours of a pool one range.
        _post(connection, f"/v1/pools/{pool}/policy", {"policy": "deal"})
    return pool


def _post(connection: HTTPConnection, path: str, said: object) -> None:
    body = json.dumps(said).encode()
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status in (200, 201), answer.read()
    answer.read()


class Found(NamedTuple):
    """Results for owners with this many ranges each."""

    ranges: float
    short: Figures
    whole: Figures


async def find(manager: ManagerProcess, ranges: int) -> Found:
    """Measure owners with this many ranges."""
    pool = make_pool(manager, ranges)
    async with aiohttp.ClientSession() as session:
        url = manager.url + "/v1/owner"
        sockets = [await session.ws_connect(url, protocols=SUBPROTOCOLS) for _ in range(OWNERS)]
        owners = [Owner(n, socket, pool, kind=None) for n, socket in enumerate(sockets)]
        for owner in owners:
            await owner.join()
        await settle(owners)
        short = await measure(manager, owners, short=True)
        whole = await measure(manager, owners, short=False)
        for socket in sockets:
            await socket.close()
    await asyncio.sleep(0)  # their transports must end before the loop does
    return Found(sum(len(owner.held) for owner in owners) / OWNERS, short, whole)


def report(found: Found, ranges: int) -> bool:
    """Print it; whether every bound was kept."""
    have, short, whole = found
    print(
        f"{OWNERS} owners with {have:.1f} ranges each: in short {short.bytes[0]} bytes asked and "
        f"{short.bytes[1]} answered, whole {whole.bytes[0]} and {whole.bytes[1]}"
    )
    good = max(short.bytes) <= BOUND_BYTES
    good &= print_figure("  in short, one at a time", short.alone, BOUND_US)
    good &= print_figure(f"  in short, {OWNERS} at once", short.together, BOUND_US)
    is_bound = BOUND_OF_WHOLE_US if ranges <= 64 else None
    good &= print_figure("  the whole list, one at a time", whole.alone, is_bound)
    good &= print_figure(f"  the whole list, {OWNERS} at once", whole.together, is_bound)
    if ranges == max(RANGES):
        ratio = median(short.together) / median(whole.together)
        print(f"  in short, to the whole list {ratio:41.2f}      bound {MOST_TO_WHOLE}")
        good &= ratio <= MOST_TO_WHOLE
    return good


def main() -> int:
    with running_manager("--preset", "paper") as manager:
        print(f"{RENEWALS:,} renewals a repeat, {loop_name()}; manager CPU for each renewal:")
        good = [report(asyncio.run(find(manager, ranges)), ranges) for ranges in RANGES]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
