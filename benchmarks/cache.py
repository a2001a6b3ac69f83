"""The cost of a cache: hits, renewals, writes with many holders, writes with a holder that is gone.

Ratios are within one run, against the least that is possible: a look into a dict and at the clock,
a bare echo over WebSocket. Counts (of fetches, records, questions to the owner) are exact, with a
clock that is turned by hand.
"""

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from time import perf_counter

import aiohttp

from benchmarks._holders import Holder, echoing, processor_seconds
from benchmarks._quick import at_most, sized, soon
from benchmarks._rounds import ROUNDS, line, ratio
from tenure import Cache, CacheServer, KeyedState, Volume
from tenure.cache.cache_engine import PATH
from tenure.runtime.clock import boot_clock
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import ClusterEnvironment, InProcessCluster
from tenure.wire.versions import NEWEST

KEYS = [f"row-{i}" for i in range(2_000)]
PEEK_BOUND, GET_BOUND = at_most(2.5), at_most(4)
RENEWALS = sized(3_000, 500)
RENEWAL_BOUND = at_most(4)
HOLDERS = 100
WRITE_ROUNDS = sized(30, 10)
WRITE_BOUND = at_most(3)
WRITES = 1_000
TERM = 0.5
LATEST = TERM * 13 / 12 + soon(0.05)
ENTRIES = sized(10_000, 1_000)
CHANGED = 10
READS = sized(100_000, 10_000)
SERVER = "http://127.0.0.1:7500"


def _told(what: str, figure: str, bound: str, is_kept: bool) -> bool:  # noqa: FBT001
    print(line(what, figure, bound, is_kept=is_kept))
    return is_kept


async def hits() -> bool:
    """`peek` and `get` against a look into a dict and one at the clock."""
    rows = dict.fromkeys(KEYS, "x")
    volume = Volume(rows.get, value_type=str)
    async with (
        CacheServer(volume, listen="127.0.0.1:0") as server,
        Cache(server.url, value_type=str) as cache,
    ):
        for key in KEYS:
            await cache.get(key)

        async def bare(keys: Sequence[str]) -> None:
            find, clock = rows.get, boot_clock
            for key in keys:
                find(key)
                clock()

        async def peek(keys: Sequence[str]) -> None:
            find = cache.peek
            for key in keys:
                find(key)

        async def get(keys: Sequence[str]) -> None:
            find = cache.get
            for key in keys:
                await find(key)

        await asyncio.sleep(0.1)
        tracked = len(gc.get_objects())
        await peek(KEYS)
        left = len(gc.get_objects()) - tracked
        times = await _measured({"bare": bare, "peek": peek, "get": get})
        asked = cache.stats()["sent"]
    peeks, gets = ratio(times["peek"], times["bare"]), ratio(times["get"], times["bare"])
    kept = [
        _told("peek, to dict.get and the clock", f"{peeks:.2f} x", "2.5 x", peeks <= PEEK_BOUND),
        _told("await get, to the same", f"{gets:.2f} x", "4 x", gets <= GET_BOUND),
        _told("objects left by 2,000 hits", str(left), "16", left <= 16),
    ]
    print(f"  ({asked} messages were sent for all)")
    return all(kept)


async def _measured(
    loops: dict[str, Callable[[Sequence[str]], Awaitable[None]]],
) -> dict[str, list[float]]:
    """Seconds of each loop in each round, in turn; the library's thread has its turn between."""
    found: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(ROUNDS):
        for name, loop in loops.items():
            await asyncio.sleep(0)
            began = perf_counter()
            await loop(KEYS)
            found[name].append(perf_counter() - began)
    return found


async def _holder(
    stack: AsyncExitStack, session: aiohttp.ClientSession, url: str, client: int
) -> Holder:
    socket = await stack.enter_async_context(
        session.ws_connect(url + PATH, protocols=[f"tenure.{NEWEST}"])
    )
    holder = Holder(socket, client)
    await holder.come_on_record()
    return holder


async def renewals() -> bool:
    """The cost of a renewal to the server's thread, against an echo of its size."""
    async with AsyncExitStack() as stack:
        volume = Volume(dict[str, str]().get, value_type=str)
        server = await stack.enter_async_context(CacheServer(volume, listen="127.0.0.1:0"))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        echo = await stack.enter_async_context(
            session.ws_connect(await stack.enter_async_context(echoing()))
        )
        holder = await _holder(stack, session, server.url, 1)
        costs: dict[str, list[float]] = {"cache server": [], "echo": []}
        for _ in range(5):
            for name, socket in (("cache server", holder.socket), ("echo", echo)):
                before = processor_seconds(name)
                for _ in range(RENEWALS // 5):
                    await socket.send_bytes(holder.renewal())
                    await socket.receive_bytes()
                costs[name].append((processor_seconds(name) - before) / (RENEWALS // 5))
    found = ratio(costs["cache server"], costs["echo"])
    micros = min(costs["cache server"]) * 1e6
    figure = f"{found:.2f} x, {micros:.0f} µs"
    return _told("a renewal, to an echo, on the server", figure, "4 x", found <= RENEWAL_BOUND)


async def writes() -> bool:
    """A write that waits for a hundred holders, against a hundred echoes."""
    async with AsyncExitStack() as stack:
        volume = Volume({"a": "x"}.get, value_type=str, term=3)
        server = await stack.enter_async_context(CacheServer(volume, listen="127.0.0.1:0"))
        session = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        )
        echo = await stack.enter_async_context(echoing())
        echoes = [await stack.enter_async_context(session.ws_connect(echo)) for _ in range(HOLDERS)]
        holders = [await _holder(stack, session, server.url, i + 1) for i in range(HOLDERS)]
        await volume.changed("b")  # past the quiet
        return await _compared(volume, holders, echoes)


async def _compared(
    volume: Volume[str], holders: list[Holder], echoes: list[aiohttp.ClientWebSocketResponse]
) -> bool:
    data = holders[0].renewal()
    times: dict[str, list[float]] = {"write": [], "echo": []}

    async def bounce(socket: aiohttp.ClientWebSocketResponse) -> None:
        await socket.send_bytes(data)
        await socket.receive_bytes()

    for _ in range(WRITE_ROUNDS):
        for holder in holders:
            await holder.fetch(b"a")
        acknowledging = [asyncio.ensure_future(each.acknowledge_one()) for each in holders]
        await asyncio.sleep(0)
        began = perf_counter()
        async with volume.write("a"):
            times["write"].append(perf_counter() - began)
        await asyncio.gather(*acknowledging)
        began = perf_counter()
        await asyncio.gather(*map(bounce, echoes))
        times["echo"].append(perf_counter() - began)
    found = ratio(times["write"], times["echo"])
    figure = f"{found:.2f} x, {min(times['write']) * 1e3:.1f} ms"
    return _told("a write with 100 holders, to 100 echoes", figure, "3 x", found <= WRITE_BOUND)


async def cut_off() -> bool:
    """A thousand writes while their one holder is silent."""
    keys = [f"row-{i}" for i in range(WRITES)]
    async with AsyncExitStack() as stack:
        volume = Volume(dict[str, str]().get, value_type=str, term=TERM)
        server = await stack.enter_async_context(CacheServer(volume, listen="127.0.0.1:0"))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        await asyncio.sleep(TERM * 13 / 12)
        holder = await _holder(stack, session, server.url, 1)
        for key in keys:
            await holder.fetch(key.encode())

        async def write(key: str) -> float:
            async with volume.write(key) as write:
                return write.waited

        waited = await asyncio.gather(*map(write, keys))
    latest, waits = max(waited), sum(each > 0 for each in waited)
    what = f"the latest of {WRITES:,} writes, a holder cut off"
    is_kept = latest <= LATEST and waits > 0
    return _told(what, f"{latest * 1e3:.0f} ms", f"{LATEST * 1e3:.0f} ms", is_kept)


async def away() -> bool:
    """A cache that was not read for a minute, while ten entries changed; and one that vanishes."""
    loads: list[str] = []

    def load(key: str) -> str:
        loads.append(key)
        return key

    clock = TurnedClock()
    async with InProcessCluster(clock=clock) as cluster:
        volume = Volume(load, value_type=str)
        server = CacheServer(volume, _environment=ClusterEnvironment(cluster))
        cache: Cache[str] = Cache(SERVER, value_type=str, _environment=ClusterEnvironment(cluster))
        names = [f"row-{i}" for i in range(ENTRIES)]
        async with server, cache:
            await cluster.turn(3.5)
            for name in names:
                await cache.get(name)
            await cluster.turn(60)
            await volume.changed(*names[:CHANGED])
            loads.clear()
            before = cache.stats()["sent"]
            for name in reversed(names):
                await cache.get(name)
            fetches, sent = len(loads), cache.stats()["sent"] - before
            exchanges = sent - fetches - 1  # one acknowledgement of all that was missed
            cluster.crash(cache._client)  # type: ignore[arg-type]
            await cluster.turn(3.25 + 60 + 0.1)
            view = server._engine._machine.view()
    records = len(view.readers) + view.leases
    what = f"fetches of {ENTRIES:,} entries, a minute away"
    kept = [
        _told(what, str(fetches), str(CHANGED), fetches == CHANGED),
        _told("exchanges beside them", str(exchanges), "1", exchanges == 1),
        _told("records of who vanished, after C6", str(records), "0", records == 0),
    ]
    return all(kept)


async def hot() -> bool:
    """A hot key of an owner at four frontends, written once in a thousand reads."""
    clock, loads = TurnedClock(), 0
    state: KeyedState[str] = KeyedState(value_type=str)

    def load(key: str) -> str | None:
        nonlocal loads
        loads += 1
        return state.get(key)

    volume = Volume(load, value_type=str, term=0.3)
    async with InProcessCluster(["rooms"], clock=clock) as cluster, AsyncExitStack() as stack:
        await stack.enter_async_context(cluster.owner(hand_off=state, volume=volume))
        await cluster.turn(1)
        caches: list[Cache[str]] = []
        for _ in range(4):
            lookup = await stack.enter_async_context(cluster.lookup())
            environment = ClusterEnvironment(cluster)
            cache: Cache[str] = Cache(lookup, value_type=str, _environment=environment)
            caches.append(await stack.enter_async_context(cache))
        for i in range(READS):
            if i % 1000 == 0:
                async with volume.write("room"):
                    state["room"] = str(i)
                await cluster.turn(0.05)
            assert await caches[i % 4].get("room") == str(i - i % 1000)
    share = loads / READS
    what = "reads of a hot key that reach its owner"
    return _told(what, f"{share:.2%}", "1 %", share < 0.01)


async def _all() -> list[bool]:
    return [await part() for part in (hits, renewals, writes, cut_off, away, hot)]


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    return 0 if all(asyncio.run(_all())) else 1


if __name__ == "__main__":
    sys.exit(main())
