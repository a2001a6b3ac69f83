"""A process that serves: plain HTTP in front, `Presence` behind, `Owner` for the right to it.

SIGTERM is for leaving as a service should: everything is handed over, and served until it is.
"""

import asyncio
import signal
import socket
from collections.abc import Awaitable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import msgspec
from aiohttp import web

from tenure import KeyedState, KeyRange, LeaseLost, Lookup, NotOwner, Owner, TenureError, refusal
from tenure.cli.demo.leash import Leash, tell
from tenure.cli.demo.operations import PATH
from tenure.cli.demo.presence import (
    Answered,
    NoChecks,
    NotServed,
    Outcome,
    Presence,
    Status,
    some_work,
)
from tenure.cli.demo.record import RecordWriter
from tenure.cli.demo.reports import POOL, OwnerOrders, OwnerReport
from tenure.errors import ClosedError
from tenure.protocol.balance.load import share_of
from tenure.runtime.clock import boot_clock

HOST = "127.0.0.1"
REPORT_SECONDS = 0.2
SHUTDOWN_SECONDS = 1.0
"""The time that operations under way at the end get. They are short, and no key is here any
more."""
DRAIN_SECONDS = 20.0
"""The longest time for handing everything over. The drain ends as soon as that is done."""


class PresenceServer:
    """The HTTP side of an owner."""

    def __init__(self, presence: Presence, lookup: Lookup) -> None:
        self._presence = presence
        self._lookup = lookup

    def app(self) -> web.Application:
        """Return the application that aiohttp serves."""
        app = web.Application()
        app.router.add_get(PATH, self.read)
        app.router.add_put(PATH, self.publish)
        return app

    async def read(self, request: web.Request) -> web.Response:
        """GET: a user's presence."""
        user = request.match_info["user"]
        return await self._answer(user, self._presence.read(user))

    async def publish(self, request: web.Request) -> web.Response:
        """PUT: what a user publishes."""
        user = request.match_info["user"]
        try:
            status = msgspec.json.decode(await request.read(), type=Status)
        except msgspec.MsgspecError as error:
            return web.Response(status=HTTPStatus.BAD_REQUEST, text=str(error))
        return await self._answer(user, self._presence.publish(user, status))

    async def _answer(self, user: str, operation: Awaitable[Outcome]) -> web.Response:
        try:
            outcome = await operation
        except ClosedError:  # it has left, and owns nothing
            outcome = NotServed(was_voided=False)
        match outcome:
            case Answered(status):
                return _json(HTTPStatus.OK, status)
            case NotServed(was_voided=True):
                return _refused(LeaseLost("the lease ended in the middle"))
            case NotServed():
                # What it believes may be out of date, and even be here.
                return _refused(NotOwner("not ours", address=self._lookup.find(user)))


def _refused(error: TenureError) -> web.Response:
    answer = refusal(error)
    assert answer is not None
    return web.Response(status=answer.status, headers=answer.headers, text=answer.text)


def _json(status: HTTPStatus, body: object) -> web.Response:
    data = msgspec.json.encode(body)
    return web.Response(status=status, body=data, content_type="application/json")


@dataclass
class LeaseCounts:
    """The counts of what happened to the leases of this process; see `OwnerReport`."""

    granted: float = 0.0


async def be_owner(leash: Leash) -> None:
    """Serve until told to stop."""
    orders = msgspec.json.decode(await leash.orders(), type=OwnerOrders)
    listening = socket.create_server((HOST, 0))  # first of all: an owner must know its address
    address = f"http://{HOST}:{listening.getsockname()[1]}"

    counts = LeaseCounts()
    to_leave = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, to_leave.set)

    def on_grant(ranges: tuple[KeyRange, ...]) -> None:
        counts.granted += sum(map(share_of, ranges))

    state = KeyedState(value_type=Status)
    owner = Owner(
        orders.manager,
        pool=POOL,
        name=orders.name,
        address=address,
        on_grant=on_grant,
        hand_off=state,
    )
    record = RecordWriter(Path(orders.directory), orders.name)
    checks = NoChecks(owner) if orders.is_broken else owner
    presence = Presence(checks, state, record, boot_clock, some_work)
    async with owner, Lookup(orders.manager, pool=POOL) as lookup:
        app = PresenceServer(presence, lookup).app()
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        await web.SockSite(runner, listening).start()
        ending = asyncio.create_task(_to_the_end(leash, to_leave, owner))
        while not ending.done():
            tell(_report(owner, presence, counts))
            await asyncio.wait({ending}, timeout=REPORT_SECONDS)
        ending.result()
        await runner.cleanup()
    tell(_report(owner, presence, counts))
    record.close()


async def _to_the_end(leash: Leash, to_leave: asyncio.Event, owner: Owner) -> None:
    """Wait to be told, and go: at once where the demo ends, after handing over with SIGTERM."""
    told = [asyncio.create_task(each.wait()) for each in (leash.stopping, to_leave)]
    await asyncio.wait(told, return_when=asyncio.FIRST_COMPLETED)
    for each in told:
        each.cancel()
    await owner.close(drain=DRAIN_SECONDS if to_leave.is_set() else 0)


def _report(owner: Owner, presence: Presence, counts: LeaseCounts) -> OwnerReport:
    return OwnerReport(
        at=boot_clock(),
        address=owner.address,
        ranges=held(owner),
        users=len(presence),
        served=presence.served,
        refused=presence.refused,
        voided=presence.voided,
        lapsed=owner.stats().get("lapsed", 0),
        granted=counts.granted,
    )


def held(owner: Owner) -> int:
    """How many ranges it holds."""
    try:
        return len(owner.ranges)
    except ClosedError:
        return 0
