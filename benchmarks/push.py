"""What it costs the manager to inform one of 2,000 connected lookups of a change.

2,000 lookups on sockets of their own follow a pool; an owner takes a range and gives it back, again
and again. Every change is a push to all of them, encoded once. The figure is CPU time of the whole
manager process, kernel included, divided by changes and lookups; it counts the owner's requests and
the journal too. Every push is waited for, so that none is lost or merged with the next.
"""

import asyncio
import sys

import aiohttp

from benchmarks._manager import (
    ManagerProcess,
    allow_many_files,
    loop_name,
    print_figure,
    running_manager,
)
from benchmarks._quick import at_most, sized
from benchmarks.renewal import Owner, settle
from tenure.protocol.lease.messages import Changes, Sync, SyncResponse
from tenure.wire.lease import decode_to_lookup, encode
from tenure.wire.versions import NEWEST, SUBPROTOCOLS

LOOKUPS = sized(2_000, 200)
CHANGES = 10
REPEATS = sized(5, 1)
BOUND_US = at_most(50)
AT_ONCE = 100


class Lookup:
    """A lookup without a mind: it counts the changes that it is told."""

    def __init__(self, number: int, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.number = number
        self.socket = socket
        self.lsn = 0

    async def sync(self) -> None:
        await self.socket.send_bytes(
            encode(
                Sync(
                    pool="bench", sequence=1, journal=0, leadership=0, lsn=0, nonce=self.number + 1
                ),
                NEWEST,
            )
        )
        response = decode_to_lookup(await self.socket.receive_bytes(), NEWEST)
        assert isinstance(response, SyncResponse), response
        self.lsn = response.lsn

    async def follow(self, told: "Told") -> None:
        while True:
            frame = await self.socket.receive()
            if frame.type is not aiohttp.WSMsgType.BINARY:
                return
            told.count(frame.data)


class Told:
    """Counts lookups that have been told of a change; sets `all` when every one has."""

    def __init__(self) -> None:
        self.all = asyncio.Event()
        self.told = 0
        self.bytes = b""

    def count(self, data: bytes) -> None:
        if data is not self.bytes and data != self.bytes:
            assert isinstance(decode_to_lookup(data, NEWEST), Changes)
            self.bytes = data
        self.told += 1
        if self.told % LOOKUPS == 0:
            self.all.set()


async def change(owner: Owner, told: Told) -> None:
    """One change: the owner gives up all that it holds, and is granted it anew."""
    owner.held = ()
    told.all.clear()
    await owner.renew()
    await told.all.wait()


async def connect(session: aiohttp.ClientSession, url: str) -> list[Lookup]:
    lookups: list[Lookup] = []
    for first in range(0, LOOKUPS, AT_ONCE):
        sockets = [session.ws_connect(url, protocols=SUBPROTOCOLS) for _ in range(AT_ONCE)]
        lookups += map(Lookup, range(first, first + AT_ONCE), await asyncio.gather(*sockets))
    for lookup in lookups:
        await lookup.sync()
    return lookups


async def measure(manager: ManagerProcess) -> tuple[list[float], int]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        owner = Owner(
            0, await session.ws_connect(manager.url + "/v1/owner", protocols=SUBPROTOCOLS)
        )
        await owner.join()
        await settle([owner])
        told = Told()
        lookups = await connect(session, manager.url + "/v1/lookup")
        following = [asyncio.create_task(lookup.follow(told)) for lookup in lookups]
        measured = []
        for _ in range(REPEATS):
            before = manager.cpu_seconds()
            for _ in range(CHANGES):
                await change(owner, told)
            measured.append((manager.cpu_seconds() - before) / CHANGES / LOOKUPS)
        for task in following:
            task.cancel()
        await asyncio.wait(following)
        return measured, len(told.bytes)


def main() -> int:
    allow_many_files()
    with running_manager("--preset", "paper") as manager:
        measured, size = asyncio.run(measure(manager))
    print(f"{LOOKUPS:,} lookups, {CHANGES} changes a repeat, {size} bytes a push, {loop_name()}")
    return 0 if print_figure("manager CPU per lookup and change", measured, BOUND_US) else 1


if __name__ == "__main__":
    sys.exit(main())
