"""A hash table in the memory of several processes, strongly consistent: PRS, figure 4.

    python examples/hashtable.py                                  # a whole cluster in this process
    python examples/hashtable.py --manager http://127.0.0.1:7400  # with a manager that runs already

A get returns the last value that was put, or nothing if that was lost; never an earlier value. Loss
is not hidden: whoever put values is told which keys they were, and can put them again.
"""

import asyncio
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from tenure import KeyRange, Lease, Lookup, Owner
from tenure.protocol.lease.timing import DEFAULT
from tenure.testing.cluster import InProcessCluster

POOL = "table"
NAMES = [f"user-{i}" for i in range(20)]
PAUSE_SECONDS = 0.05

Meanwhile = Callable[[], Awaitable[None]]


async def nothing() -> None:
    """Happens between doing and answering, usually."""


class Found(NamedTuple):
    """The answer to a get by the right process: None if nothing was put, or it was lost."""

    value: str | None


class Shard:
    """The keys that one process owns."""

    def __init__(self, owner: Owner, meanwhile: Meanwhile = nothing) -> None:
        self.owner = owner
        self.meanwhile = meanwhile
        """Is called between doing and answering, for those who want to see what is lost then."""
        self.stored: dict[str, tuple[Lease, str]] = {}

    async def put(self, name: str, value: str) -> bool:
        """Store `value`; False if this is not the process to ask, or no longer."""
        # (1) Has the request come to the right process?
        lease = self.owner.check(name)
        if lease is None:
            return False
        # (2) Is what is stored stale? It does not matter: it is about to be replaced.
        # (3) Do it, and keep the lease with it.
        self.stored[name] = (lease, value)
        await self.meanwhile()
        # (4) Was the lease held all the while? (5) Only then is anything said.
        return self.owner.holds(lease)

    async def get(self, name: str) -> Found | None:
        """Return the stored value; None if this is not the process to ask, or no longer."""
        # (1) Has the request come to the right process?
        lease = self.owner.check(name)
        if lease is None:
            return None
        # (2) Is what is stored stale? Then it is as if nothing were.
        stored = self.stored.get(name)
        if stored is not None and not self.owner.holds(stored[0]):
            del self.stored[name]
            stored = None
        # (3) Do it.
        found = Found(stored[1] if stored else None)
        await self.meanwhile()
        # (4) Was the lease held all the while? (5) Only then is anything said.
        return found if self.owner.holds(lease) else None


class Table:
    """The whole table, for its users: finds the shard, and tries again if the shard refuses."""

    def __init__(self) -> None:
        self.lookup: Lookup
        self.shards: dict[str, Shard] = {}
        """The shards by address. This stands for the requests that would be sent there."""
        self.lost: set[str] = set()

    async def put(self, name: str, value: str) -> None:
        """Store `value`, however often that must be tried."""
        while True:
            shard = self.shards.get(self.lookup.find(name) or "")
            if shard is not None and await shard.put(name, value):
                return
            await asyncio.sleep(PAUSE_SECONDS)

    async def get(self, name: str) -> str | None:
        """The value, or None."""
        while True:
            shard = self.shards.get(self.lookup.find(name) or "")
            found = await shard.get(name) if shard is not None else None
            if found is not None:
                return found.value
            await asyncio.sleep(PAUSE_SECONDS)

    def on_loss(self, ranges: tuple[KeyRange, ...]) -> None:
        """Keys are gone."""
        self.lost |= {n for n in NAMES if any(self.lookup.key(n) in lost for lost in ranges)}


async def show(make_owner: Callable[..., Owner], make_lookup: Callable[..., Lookup]) -> None:
    """A second process comes and goes."""
    table = Table()
    async with make_owner(address="http://one") as first:
        await first.ready()
        one = table.shards["http://one"] = Shard(first)
        async with make_lookup(on_loss=table.on_loss) as table.lookup:
            for name in NAMES:
                await table.put(name, "early")
            print(f"one process: {await _count(table, 'early')} keys are 'early'")
            await _join_in_between(table, one, make_owner)
            await until(lambda: all(map(first.check, NAMES)) and bool(table.lost))
            print("the second process has left, and the first has all keys again.")
            stale = [name for name, (lease, _) in one.stored.items() if not first.holds(lease)]
            print(f"  in its memory are stale values of {len(stale)} keys; get says", end=" ")
            print({await table.get(name) for name in stale}, "for them")
            print(f"  and {await _count(table, 'early')} keys, which never moved, are 'early'")


async def _join_in_between(table: Table, one: Shard, make_owner: Callable[..., Owner]) -> None:
    """Puts are under way at the first process when a second one joins."""
    go_on = asyncio.Event()

    async def wait() -> None:
        await go_on.wait()

    one.meanwhile = wait
    under_way = [asyncio.create_task(one.put(name, "early")) for name in NAMES]
    await asyncio.sleep(0)  # all of them have begun
    async with make_owner(address="http://two") as second:
        await second.ready()
        await until(lambda: all(one.owner.check(n) or second.check(n) for n in NAMES))
        table.shards["http://two"] = Shard(second)
        moved = [name for name in NAMES if second.check(name)]
        print(f"a second process joins and takes {len(moved)} of {len(NAMES)} keys over,")
        go_on.set()
        one.meanwhile = nothing
        done = await asyncio.gather(*under_way)
        went, failed = done.count(True), done.count(False)
        print(f"  while {len(NAMES)} puts run: {went} go through, {failed} fail")
        await until(lambda: table.lost >= set(moved))
        lost, table.lost = table.lost, set()
        print(f"  the loss of {len(lost)} keys is told: they are put again, as 'late'")
        for name in lost:
            await table.put(name, "late")
        print(f"  {await _count(table, 'early')} 'early', {await _count(table, 'late')} 'late'")
    del table.shards["http://two"]


async def _count(table: Table, value: str) -> int:
    return [await table.get(name) for name in NAMES].count(value)


async def until(condition: Callable[[], bool]) -> None:
    """Look until it is so."""
    while not condition():  # noqa: ASYNC110  # it asks what several processes believe
        await asyncio.sleep(PAUSE_SECONDS)


@asynccontextmanager
async def cluster(
    manager: str | None,
) -> AsyncIterator[tuple[Callable[..., Owner], Callable[..., Lookup]]]:
    """How to make owners and lookups: with the manager that is given, or one in this process."""
    if manager is not None:
        yield partial(Owner, manager, pool=POOL), partial(Lookup, manager, pool=POOL)
        return
    # The leases are those of production: nothing here waits for one to run out, and none may run
    # out because this machine is busy.
    async with InProcessCluster([POOL], timing=DEFAULT) as here:
        yield here.owner, here.lookup


async def main(manager: str | None) -> None:
    """Run the show."""
    async with cluster(manager) as (make_owner, make_lookup):
        await show(make_owner, make_lookup)


if __name__ == "__main__":
    parser = ArgumentParser(description="A hash table, one owner for every key.")
    parser.add_argument("--manager", help="URL of a manager; by default a cluster in this process")
    asyncio.run(main(parser.parse_args().manager))
