"""A process that serves: plain HTTP in front, `Presence` behind, `Owner` for the right to it."""

import socket
from http import HTTPStatus
from pathlib import Path

import msgspec
from aiohttp import web

from leasehold import KeyRange, Lookup, Owner
from leasehold.cli.demo.leash import Leash, tell
from leasehold.cli.demo.presence import (
    Answered,
    NoChecks,
    Outcome,
    Presence,
    Refused,
    Status,
    some_work,
)
from leasehold.cli.demo.record import RecordWriter
from leasehold.cli.demo.reports import POOL, OwnerOrders, OwnerReport
from leasehold.runtime.clock import boot_clock

HOST = "127.0.0.1"
PATH = "/presence/{user}"
REPORT_SECONDS = 0.2
SHUTDOWN_SECONDS = 1.0
"""For operations under way at the end. The frontends have stopped before, so there are none."""


class Service:
    """The HTTP side of an owner."""

    def __init__(self, presence: Presence, lookup: Lookup) -> None:
        self._presence = presence
        self._lookup = lookup

    def app(self) -> web.Application:
        """What aiohttp serves."""
        app = web.Application()
        app.router.add_get(PATH, self.read)
        app.router.add_put(PATH, self.publish)
        return app

    async def read(self, request: web.Request) -> web.Response:
        """GET: a user's presence."""
        user = request.match_info["user"]
        return self._answer(user, await self._presence.read(user))

    async def publish(self, request: web.Request) -> web.Response:
        """PUT: what a user publishes."""
        user = request.match_info["user"]
        try:
            status = msgspec.json.decode(await request.read(), type=Status)
        except msgspec.MsgspecError as error:
            return web.Response(status=HTTPStatus.BAD_REQUEST, text=str(error))
        return self._answer(user, await self._presence.publish(user, status))

    def _answer(self, user: str, outcome: Outcome) -> web.Response:
        match outcome:
            case Answered(status):
                return _json(HTTPStatus.OK, status)
            case Refused():
                # Where it believes that the key lives. It may be out of date, and even be here.
                return _json(HTTPStatus.MISDIRECTED_REQUEST, {"owner": self._lookup.find(user)})


def _json(status: HTTPStatus, body: object) -> web.Response:
    data = msgspec.json.encode(body)
    return web.Response(status=status, body=data, content_type="application/json")


async def be_owner(leash: Leash) -> None:
    """Serve until told to stop."""
    orders = msgspec.json.decode(await leash.orders(), type=OwnerOrders)
    listening = socket.create_server((HOST, 0))  # first of all: an owner must know its address
    address = f"http://{HOST}:{listening.getsockname()[1]}"

    lapsed: list[int] = []

    def on_revoke(ranges: tuple[KeyRange, ...]) -> None:
        presence.drop(ranges)
        if not owner.ranges:  # a recall leaves it the rest
            lapsed.append(len(ranges))

    owner = Owner(orders.manager, pool=POOL, name=orders.name, address=address, on_revoke=on_revoke)
    record = RecordWriter(Path(orders.directory), orders.name)
    checks = NoChecks(owner) if orders.is_broken else owner
    presence = Presence(checks, record, boot_clock, some_work)
    async with owner, Lookup(orders.manager, pool=POOL) as lookup:
        app = Service(presence, lookup).app()
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        await web.SockSite(runner, listening).start()
        tell(_report(owner, presence, sum(lapsed)))
        while not await leash.stopped_within(REPORT_SECONDS):
            tell(_report(owner, presence, sum(lapsed)))
        await runner.cleanup()
    record.close()


def _report(owner: Owner, presence: Presence, lapsed: int) -> OwnerReport:
    return OwnerReport(
        at=boot_clock(),
        address=owner.address,
        ranges=len(owner.ranges),
        users=len(presence),
        served=presence.served,
        refused=presence.refused,
        voided=presence.voided,
        lapsed=lapsed,
    )
