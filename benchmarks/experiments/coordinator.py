"""The cost of idle holders to their coordinator: CPU and network, when nothing changes.

Each owner renews what it has, three or four times in a term, on a connection of its own. Owners of
tenure and sessions of ZooKeeper are written by hand, so that they fit into one process: they send
what the library and kazoo send, and decide nothing; a lock in Redis is extended by the script of
`redis-py`; a lease of etcd is kept alive over its JSON gateway, which costs etcd more than gRPC.
"""

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import NamedTuple, Protocol, TypeVar

import aiohttp

from benchmarks._manager import allow_many_files
from benchmarks._packed import packed, run_packed
from benchmarks._quick import sized
from benchmarks._report import Section, Table, prose
from benchmarks.peers.servers import TITLES, Server, serving, there
from benchmarks.renewal import Owner as Renewer
from benchmarks.renewal import join, settle
from tenure.base.instants import in_seconds
from tenure.protocol.lease.timing import DEFAULT

OWNERS = sized(1_000, 100)
SECONDS = float(sized(60, 5))
TIME_TO_LIVE = 13.0
RENEW = TIME_TO_LIVE / 3
T = TypeVar("T")
OURS = in_seconds(DEFAULT.renew_ns)
START_SECONDS = 60.0
"""How long a server may take until it serves."""
ATTEMPT_SECONDS = 2.0
"""How long it may take for one answer."""
AGAIN_SECONDS = 0.2
"""The pause between two attempts."""
AT_ONCE = 20
ACKED, RECEIVED = 120, 128
"""The places where Linux has the bytes of a connection in its `tcp_info`."""
TEXT = """{owners:,} owners that hold something, at rest: nothing is asked for, nothing changes,
for {seconds:g} s. CPU is of the coordinator's process, in percent of a core; bytes are what the
owners' connections carried in both directions, without the headers of packets. Terms are {term:g}
s. tenure's manager also says which ranges each owner has, and keeps a journal that another
manager can go on from; the others renew a lock or a session and no more."""


class ToldWhen(Protocol):
    """A client that its manager tells when to ask again."""

    @property
    def told_seconds(self) -> float:
        """How long after its last question."""
        ...


class Rest(NamedTuple):
    """The cost of a second."""

    cpu: float
    sent: float


def carried() -> int:
    """Bytes of all TCP connections of this process, both ways."""
    total = 0
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if str(path.readlink()).startswith("socket:"):
                total += _carried_by(os.dup(int(path.name)))
    return total


def _carried_by(file: int) -> int:
    with socket.socket(fileno=file) as one:
        if one.family not in (socket.AF_INET, socket.AF_INET6) or one.type != socket.SOCK_STREAM:
            return 0
        info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        return sum(struct.unpack_from("<QQ", info, ACKED))


@asynccontextmanager
async def renewing(
    renewals: Sequence[Callable[[], Awaitable[object]]],
    period: float = RENEW,
    *,
    wait: bool = True,
    told: Sequence[ToldWhen] = (),
) -> AsyncIterator[None]:
    """Each of them once in a period, spread evenly at first; `wait` for the first of each. Those
    that are `told` when to ask again ask then.
    """

    async def keep(number: int) -> None:
        await asyncio.sleep(period * number / len(renewals))
        while True:
            began = monotonic()
            await renewals[number]()
            after = told[number].told_seconds if told else period
            await asyncio.sleep(after - (monotonic() - began))

    tasks = [asyncio.create_task(keep(number)) for number in range(len(renewals))]
    try:
        if wait:
            await asyncio.sleep(period)
        yield
        assert not any(task.done() for task in tasks), "a renewal has failed"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@asynccontextmanager
async def of_tenure(url: str, owners: int) -> AsyncIterator[None]:
    sockets = await packed(url + "/v1/owner", owners)
    made = [Renewer(number, socket) for number, socket in enumerate(sockets)]
    await join(made)
    await settle(made)
    async with renewing([owner.renew_in_short for owner in made], OURS, told=made):
        yield


@asynccontextmanager
async def of_zookeeper(url: str, owners: int) -> AsyncIterator[None]:
    host, _, port = url.rpartition(":")

    async def session() -> Callable[[], Awaitable[object]]:
        reader, writer = await asyncio.open_connection(host, int(port))

        async def answer() -> None:
            [length] = struct.unpack(">i", await reader.readexactly(4))
            await reader.readexactly(length)

        async def ping() -> None:
            writer.write(struct.pack(">iii", 8, -2, 11))
            await answer()

        asked = struct.pack(">iqiqi16s?", 0, 0, int(TIME_TO_LIVE * 1000), 0, 16, bytes(16), False)  # noqa: FBT003
        writer.write(struct.pack(">i", len(asked)) + asked)
        try:
            await answer()
        except BaseException:
            writer.close()
            raise
        return ping

    # A session that is not pinged ends after its term, so this many are opened at once.
    sessions = [await patiently(session)]
    while len(sessions) < owners:
        few = min(AT_ONCE, owners - len(sessions))
        sessions += await asyncio.gather(*(session() for _ in range(few)))
    async with renewing(sessions):
        yield


async def patiently(
    opened: Callable[[], Awaitable[T]],
    patience: float = START_SECONDS,
    attempt: float = ATTEMPT_SECONDS,
) -> T:
    """Return the answer of a server that listens before it serves.

    ZooKeeper mostly answers questions that come too early by closing the connection, and sometimes
    never. Raises TimeoutError.
    """
    async with asyncio.timeout(patience):
        while True:
            with suppress(asyncio.IncompleteReadError, ConnectionError, TimeoutError):
                async with asyncio.timeout(attempt):
                    return await opened()
            await asyncio.sleep(AGAIN_SECONDS)


@asynccontextmanager
async def of_redis(url: str, owners: int) -> AsyncIterator[None]:
    from redis.asyncio import Redis  # noqa: PLC0415  # only where it is asked for

    host, _, port = url.rpartition(":")

    async def lock(number: int) -> Callable[[], Awaitable[object]]:
        client = Redis(host=host, port=int(port))
        held = client.lock(f"lock:{number}", timeout=TIME_TO_LIVE, thread_local=False)

        async def keep() -> None:
            if held.local.token is None:
                assert await held.acquire(blocking=False)
            else:
                await held.extend(TIME_TO_LIVE, replace_ttl=True)

        return keep

    async with renewing([await lock(n) for n in range(owners)]):
        yield


@asynccontextmanager
async def of_etcd(url: str, owners: int) -> AsyncIterator[None]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call(path: str, body: object) -> dict[str, str]:
            async with session.post(f"{url}/v3{path}", json=body) as response:
                return dict(await response.json(content_type=None))

        async def lease() -> Callable[[], Awaitable[object]]:
            granted = await call("/lease/grant", {"TTL": round(TIME_TO_LIVE)})
            return lambda: call("/lease/keepalive", {"ID": granted["ID"]})

        async with renewing([await lease() for _ in range(owners)]):
            yield


OPEN = {"tenure": of_tenure, "zookeeper": of_zookeeper, "redis": of_redis, "etcd": of_etcd}


async def measure(system: str, server: Server, owners: int, seconds: float) -> Rest:
    """Measure the cost of a second once all members are connected."""
    async with OPEN[system](server.url, owners):
        cpu, sent, began = server.cpu_seconds(), carried(), monotonic()
        await asyncio.sleep(seconds)
        took = monotonic() - began
        return Rest((server.cpu_seconds() - cpu) / took, (carried() - sent) / took)


def run(tell: Callable[[str], None], owners: int = OWNERS, seconds: float = SECONDS) -> Section:
    """Every system in turn."""
    allow_many_files()
    notes = ["PostgreSQL: skipped; a session has a process each, and nothing to renew."]
    rows = []
    with TemporaryDirectory(prefix="tenure-bench-") as directory:
        for system in there(notes):
            if system in OPEN:
                tell(f"{TITLES[system]}, {owners} owners")
                with serving(system, Path(directory, system), TIME_TO_LIVE) as server:
                    rest = run_packed(measure(system, server, owners, seconds))
                cells = [f"{rest.cpu:.1%}", f"{rest.sent / 1000:.1f}"]
                rows.append([TITLES[system], *cells, f"{rest.sent / owners:.0f}"])
    return Section(
        title="Holders at rest: the coordinator",
        text=prose(TEXT.format(owners=owners, seconds=seconds, term=TIME_TO_LIVE)),
        tables=[Table(["", "CPU of a core", "KB/s", "bytes/s for each owner"], rows)],
        notes=notes,
    )
