"""What the renewal of 64 ranges costs the manager, over real sockets.

Owners with about 64 ranges each, as the ring deals them out, in a process of their own, renew what
they hold: a request that lists it all, an answer that lists it all. The figure is CPU time of the
whole manager process, kernel included, divided by the number of renewals. One at a time is the
dear case: each renewal wakes the manager for itself alone.
"""

import asyncio
import sys
from typing import NamedTuple

import aiohttp

from benchmarks._manager import ManagerProcess, loop_name, print_figure, running_manager
from benchmarks._quick import at_most, sized
from tenure.protocol.lease.messages import (
    Held,
    Hello,
    Introduction,
    Join,
    LeaseRequest,
    LeaseResponse,
    Poke,
    ToOwner,
)
from tenure.wire.lease import decode_to_owner, encode
from tenure.wire.versions import NEWEST, SUBPROTOCOLS

OWNERS = 32
RENEWALS = sized(6_000, 1_000)
REPEATS = sized(5, 1)
BOUND_US = at_most(200)


class Owner:
    """An owner without a mind: it asks for what it has."""

    def __init__(self, number: int, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.number = number
        self.socket = socket
        self.sequence = 0
        self.held: tuple[Held, ...] = ()
        self.pokes = 0

    async def hear(self) -> ToOwner:
        """What the manager says, but for its pokes."""
        while isinstance(
            message := decode_to_owner(await self.socket.receive_bytes(), NEWEST), Poke
        ):
            self.pokes += 1
        return message

    async def join(self) -> None:
        await self.socket.send_bytes(encode(Hello(pool="bench", token=1), NEWEST))
        introduction = await self.hear()
        assert isinstance(introduction, Introduction)
        self.seal = introduction
        self.sequence += 1
        await self.socket.send_bytes(
            encode(
                Join(
                    pool="bench",
                    kind="hashed",
                    name=f"owner-{self.number}",
                    address=f"http://10.0.0.{self.number}:8000",
                    owner_nonce=self.number + 1,
                    manager_nonce=introduction.manager_nonce,
                    sequence=self.sequence,
                ),
                NEWEST,
            )
        )
        response = await self.hear()
        assert isinstance(response, LeaseResponse), response
        self.incarnation = response.incarnation

    async def renew(self) -> None:
        self.sequence += 1
        seal = self.seal
        await self.socket.send_bytes(
            encode(
                LeaseRequest(
                    pool="bench",
                    incarnation=self.incarnation,
                    owner_nonce=self.number + 1,
                    manager_nonce=seal.manager_nonce,
                    sequence=self.sequence,
                    journal=seal.journal,
                    leadership=seal.leadership,
                    held=self.held,
                ),
                NEWEST,
            )
        )
        response = await self.hear()
        assert isinstance(response, LeaseResponse), response
        self.held = tuple(
            Held(start=lease.start, end=lease.end, number=lease.number)
            for lease in response.leases
            if lease.mark != "recalled"
        )


class Figures(NamedTuple):
    one_at_a_time: list[float]
    all_at_once: list[float]
    ranges: float
    request_bytes: float


async def settle(owners: list[Owner]) -> None:
    """Renew until nothing moves any more."""
    while True:
        before = [owner.held for owner in owners]
        for owner in owners:
            await owner.renew()
        await asyncio.sleep(0.2)  # owners that arrive together are gathered for so long
        if before == [owner.held for owner in owners] and all(before):
            return


async def repeat(owner: Owner, times: int) -> None:
    for _ in range(times):
        await owner.renew()


async def measure(manager: ManagerProcess) -> Figures:
    async with aiohttp.ClientSession() as session:
        url = manager.url + "/v1/owner"
        owners = [
            Owner(n, await session.ws_connect(url, protocols=SUBPROTOCOLS)) for n in range(OWNERS)
        ]
        for owner in owners:
            await owner.join()
        await settle(owners)
        alone, together = [], []
        for _ in range(REPEATS):
            before = manager.cpu_seconds()
            for n in range(RENEWALS):
                await owners[n % OWNERS].renew()
            alone.append((manager.cpu_seconds() - before) / RENEWALS)
            before = manager.cpu_seconds()
            each = RENEWALS // OWNERS
            await asyncio.gather(*(repeat(owner, each) for owner in owners))
            together.append((manager.cpu_seconds() - before) / (each * OWNERS))
        ranges = sum(len(owner.held) for owner in owners) / OWNERS
        return Figures(alone, together, ranges, len(encode_held(owners)) / OWNERS)


def encode_held(owners: list[Owner]) -> bytes:
    request = (
        LeaseRequest(
            pool="bench",
            incarnation=1,
            owner_nonce=1,
            manager_nonce=1,
            sequence=1,
            journal=1,
            leadership=1,
            held=owner.held,
        )
        for owner in owners
    )
    return b"".join(encode(each, NEWEST) for each in request)


def main() -> int:
    with running_manager("--preset", "paper") as manager:
        figures = asyncio.run(measure(manager))
    print(
        f"{OWNERS} owners with {figures.ranges:.1f} ranges each on average, "
        f"{figures.request_bytes / 1024:.1f} KiB a request, {RENEWALS:,} renewals a repeat, "
        f"{loop_name()}"
    )
    good = print_figure("manager CPU per renewal, one at a time", figures.one_at_a_time, BOUND_US)
    good &= print_figure(
        f"manager CPU per renewal, {OWNERS} at once", figures.all_at_once, BOUND_US
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
