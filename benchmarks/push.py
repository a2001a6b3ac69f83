"""What it costs the manager to inform one of 2,000 connected lookups of a change.

2,000 lookups on sockets of their own follow a pool; an owner takes a range and gives it back, again
and again. Every change is a push to all of them, encoded once. The figure is CPU time of the whole
manager process, kernel included, divided by changes and lookups; it counts the owner's requests and
the journal too. Every push is waited for, so that none is lost or merged with the next.
"""

import asyncio
import sys

from benchmarks._manager import (
    ManagerProcess,
    allow_many_files,
    loop_name,
    print_figure,
    running_manager,
)
from benchmarks._packed import PackedSocket, packed, run_packed
from benchmarks._quick import at_most, sized
from benchmarks.renewal import AGAIN_SECONDS, Owner, settle
from tenure.base.instants import in_seconds
from tenure.protocol.lease.messages import Changes, Sync, SyncResponse
from tenure.wire.lease import decode_to_lookup, encode
from tenure.wire.versions import NEWEST

LOOKUPS = sized(2_000, 200)
CHANGES = 10
REPEATS = sized(5, 1)
BOUND_US = at_most(50)
FAR = 1 << 62


class Lookup:
    """A lookup without a mind: it asks what has changed, and counts the changes that it is told."""

    def __init__(self, number: int, socket: PackedSocket, told: "Told") -> None:
        self.number = number
        self.socket = socket
        self.told = told
        self.sequence = 0
        self.lsn = 0
        """The LSN that it knows, by a table or by a push."""
        self.known = (0, 0, b"")
        """The leadership and the nonce of the leader that told it, and its receipt."""
        self.told_seconds = 0.0
        """How long after its last question it was told to ask again."""
        self.synced: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        socket.heard, socket.lost = self.hear, self.lose

    async def sync(self) -> None:
        """Ask until there is an answer: a manager that has just not proved that it leads says
        nothing.
        """
        self.synced = asyncio.get_running_loop().create_future()
        while not self.synced.done():
            self.sequence += 1
            journal, leadership, receipt = self.known
            asked = Sync(
                pool="bench",
                sequence=self.sequence,
                journal=journal,
                leadership=leadership,
                lsn=self.lsn,
                nonce=self.number + 1,
                receipt=receipt,
                reads_columns=True,
            )
            await self.socket.send_bytes(encode(asked, NEWEST))
            await asyncio.wait([self.synced], timeout=AGAIN_SECONDS)
        self.synced.result()

    def hear(self, data: bytes) -> None:
        """A push, which is the same for all, or an answer."""
        told = self.told
        if data == told.bytes:
            lsn = told.lsn
        else:
            message = decode_to_lookup(data, NEWEST)
            assert isinstance(message, SyncResponse | Changes), message
            lsn = message.lsn
            if isinstance(message, SyncResponse):
                self.known = (message.journal, message.leadership, message.receipt)
                self.told_seconds = in_seconds(message.sync_ns)
                if not self.synced.done():  # the answer to the question before may come, too
                    self.synced.set_result(None)
            else:
                told.bytes, told.lsn = data, lsn
        if self.lsn < lsn:
            if self.lsn <= told.before < lsn:
                told.count()
            self.lsn = lsn

    def lose(self, error: Exception) -> None:
        """Its connection has ended."""
        if not self.synced.done():
            self.synced.set_exception(error)


class Told:
    """Counts lookups that have been told of a change; sets `all` when every one has."""

    def __init__(self, lookups: int) -> None:
        self.lookups = lookups
        self.all = asyncio.Event()
        self.bytes = b""
        """The newest push."""
        self.lsn = 0
        """The LSN after the newest push."""
        self.before = FAR
        """The newest that anybody knew before the change that is waited for."""
        self.left = 0

    def expect(self, lookups: list[Lookup]) -> None:
        """Wait for what comes after all that is known."""
        self.before = max(lookup.lsn for lookup in lookups)
        self.left = self.lookups
        self.all.clear()

    def count(self) -> None:
        """One more knows of it."""
        self.left -= 1
        if not self.left:
            self.all.set()


async def change(owner: Owner, told: Told, lookups: list[Lookup]) -> None:
    """Make one change: the owner gives up all that it holds, and is granted it again."""
    told.expect(lookups)
    owner.held = ()
    await owner.renew()
    await told.all.wait()


async def connect(url: str, count: int, told: Told) -> list[Lookup]:
    """Connect this many, each of which has asked once."""
    sockets = await packed(url + "/v1/lookup", count)
    lookups = [Lookup(number, socket, told) for number, socket in enumerate(sockets)]
    await asyncio.gather(*(lookup.sync() for lookup in lookups))
    return lookups


async def measure(manager: ManagerProcess) -> tuple[list[float], int]:
    owner = Owner(0, await PackedSocket.connect(manager.url + "/v1/owner"))
    await owner.join()
    await settle([owner])
    told = Told(LOOKUPS)
    lookups = await connect(manager.url, LOOKUPS, told)
    measured = []
    for _ in range(REPEATS):
        before = manager.cpu_seconds()
        for _ in range(CHANGES):
            await change(owner, told, lookups)
        measured.append((manager.cpu_seconds() - before) / CHANGES / LOOKUPS)
    return measured, len(told.bytes)


def main() -> int:
    allow_many_files()
    with running_manager("--preset", "paper") as manager:
        measured, size = run_packed(measure(manager))
    print(f"{LOOKUPS:,} lookups, {CHANGES} changes a repeat, {size} bytes a push, {loop_name()}")
    return 0 if print_figure("manager CPU per lookup and change", measured, BOUND_US) else 1


if __name__ == "__main__":
    sys.exit(main())
