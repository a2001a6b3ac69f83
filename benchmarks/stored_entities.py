"""How many calls of entities three nodes keep, beside what the store's own client writes there.

A call of an entity with `store="columns:..."` is one write of its row by its owner. So is an insert
of `OwnedRows`, which is the store's own client for owners, and so is a quorum write of a table that
nobody owns. All write rows of the same content, 64 keys at once, in rounds that alternate, from one
process; the three nodes are processes, too. What is compared is how many end in a second.

Bound: half as many calls as inserts, and half as many as quorum writes.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import monotonic

import msgspec

from benchmarks._quick import at_least, sized
from benchmarks._rounds import line, ratio
from lab.demo.ring.home_ring import HomeRing
from tenure import Entities, Entity, Family, OwnedRows, Owner, Table, open_store

AT_ONCE = 64
ROUNDS = sized(15, 5)
SECONDS = sized(4, 1)
BOUND = at_least(0.5)
ROWS = Table("rows", kind="hashed", fenced_by="rows", state=Family(columns=str))
UNOWNED = Table("unowned", kind="hashed", state=Family(columns=str))
Write = Callable[[str, int], Awaitable[object]]


class Counted(msgspec.Struct):
    """What both keep of a key: 200 bytes, of which a number changes."""

    number: int = 0
    padding: str = "x" * 190


class Counting(Entity[Counted]):
    """The entity of a key."""

    async def put(self, number: int) -> None:
        """Keep the number."""
        self.state.number = number


def content(number: int) -> dict[str, dict[str, bytes]]:
    """What a row has."""
    return {"state": {"number": b"%d" % number, "head": b"x" * 20}}


async def rate(write: Write) -> float:
    """How many end in a second."""
    ends_at, done = monotonic() + SECONDS, 0

    async def ask(key: str) -> None:
        nonlocal done
        while monotonic() < ends_at:
            await write(key, done)
            done += 1

    began = monotonic()
    await asyncio.gather(*(ask(f"key-{i}") for i in range(AT_ONCE)))
    return done / (monotonic() - began)


async def measure(home: HomeRing) -> dict[str, list[float]]:
    """The rates of all, in alternating rounds."""
    found: dict[str, list[float]] = {"call": [], "insert": [], "quorum": []}
    async with (
        Entities(Counting, "counters", home.manager, store=home.url) as counters,
        open_store(home.url, ROWS, UNOWNED) as store,
        Owner(home.manager, pool="rows", address="http://127.0.0.1/rows") as owner,
    ):
        owned = OwnedRows(store, ROWS)

        async def call(key: str, number: int) -> None:
            await counters[key].put(number)

        async def insert(key: str, number: int) -> None:
            lease = owner.check(key)
            assert lease is not None
            row = await owned.load(lease, key)
            await row.insert(content(number))

        async def quorum(key: str, number: int) -> None:
            await store.insert(UNOWNED, key, content(number))

        writes: dict[str, Write] = {"call": call, "insert": insert, "quorum": quorum}
        for write in writes.values():
            await rate(write)  # warm
        for _ in range(ROUNDS):
            for name, write in writes.items():
                found[name].append(await rate(write))
    return found


async def run(place: Path) -> dict[str, list[float]]:
    """Start the nodes, and measure."""
    home = HomeRing(place, 3, 0, options=(), managing=("--first-start",))
    try:
        await home.start()
        return await measure(home)
    finally:
        await home.end()


def main() -> int:
    """Measure and print; return 1 if the bound is not kept."""
    with tempfile.TemporaryDirectory() as place:
        found = asyncio.run(run(Path(place)))
    for name, rates in found.items():
        print(f"{name:<8} {median(rates):8.0f} a second, {AT_ONCE} keys at once")
    kept = []
    for name, others in (("insert", "inserts of owned rows"), ("quorum", "quorum writes")):
        times = ratio(found["call"], found[name])
        kept.append(times >= BOUND)
        what = f"calls of entities beside {others}"
        print(line(what, f"{times:.3f}", f">= {BOUND:.2g}", is_kept=kept[-1]))
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
