"""A directory that several owners open in turn: a former owner of it writes nothing late.

Each owner has the directory alone while it is open. The fence's promises are in the directory, so
they hold for the next owner, whatever became of the one before.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tenure import Family, LeaseLost, OwnedRows, Table, open_store
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster
from tests.patience import DEADLINE_SECONDS

OWNER = """
import asyncio, sys
from tenure import Family, Lease, OwnedRows, Table, TenureError, open_store
from tenure.base.keys import hashed_key
from tenure.columns.paths import edits_of
from tenure.columns.requests import RowMutation

ROOMS = Table("rooms", fenced_by="rooms", state=Family(columns=str))

class Life:
    async def open(self):
        self.opening = open_store(sys.argv[1], ROOMS)
        self.store = await self.opening.__aenter__()

    async def close(self):
        await self.opening.__aexit__(None, None, None)

    async def load(self, number):
        lease = Lease(hashed_key("attic"), int(number), 7, "rooms")
        self.row = await OwnedRows(self.store, ROOMS).load(lease, "attic")

    async def write(self, topic):
        await self.row.insert({"state": {"topic": topic.encode()}})

    async def blind(self, number, topic):  # as what was sent, and comes late
        edits = edits_of(ROOMS, {"state": {"topic": topic.encode()}})
        await self.store.write(RowMutation(ROOMS, b"attic", edits, number=int(number), journal=7))

    async def read(self):
        found = await self.store.get(ROOMS, "attic", "state", "topic")
        return found and found.value.decode()

async def main():
    life = Life()
    while line := (await asyncio.to_thread(sys.stdin.readline)).split():
        try:
            said = await getattr(life, line[0])(*line[1:])
        except TenureError as error:
            said = type(error).__name__
        print(said, flush=True)

asyncio.run(main())
"""


class OwnerProcess:
    """A process that has the directory now and then."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWNER, f"rocksdb:{path}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words: object) -> str:
        """Have it do something; what it says of it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(*words, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()


@contextmanager
def owners(path: Path) -> Iterator[tuple[OwnerProcess, OwnerProcess]]:
    both = OwnerProcess(path), OwnerProcess(path)
    try:
        yield both
    finally:
        for each in both:
            each.process.kill()
            each.process.communicate()


def test_a_former_owner_that_opens_the_directory_again_writes_nothing(tmp_path: Path) -> None:
    with owners(tmp_path / "store") as (first, second):
        assert [first("open"), first("load", 5), first("write", "tea")] == ["None"] * 3
        assert second("open") == "StoreInUse"
        assert first("close") == "None"
        assert [second("open"), second("load", 6)] == ["None"] * 2
        assert second("read") == "tea"
        assert [second("write", "milk"), second("close")] == ["None"] * 2
        assert first("write", "late") == "ClosedError"
        assert first("open") == "None"
        assert first("load", 5) == "LeaseLost"
        assert first("blind", 5, "late") == "Fenced"
        assert first("read") == "milk"


def test_a_promise_holds_though_its_owner_was_killed_before_it_wrote(tmp_path: Path) -> None:
    with owners(tmp_path / "store") as (first, second):
        assert [first("open"), first("load", 5), first("write", "tea")] == ["None"] * 3
        assert first("close") == "None"
        assert [second("open"), second("load", 6)] == ["None"] * 2
        second.process.kill()
        second.process.wait(DEADLINE_SECONDS)
        assert first("open") == "None"
        assert first("load", 5) == "LeaseLost"
        assert first("blind", 5, "late") == "Fenced"
        assert first("read") == "tea"


@pytest.mark.asyncio
async def test_of_two_owners_the_one_whose_lease_is_over_is_refused(tmp_path: Path) -> None:
    """The owners write with lease numbers that managers gave out, one after the other."""
    rooms = Table("rooms", fenced_by="rooms", state=Family(columns=str))
    async with (
        InProcessCluster(["rooms"], clock=TurnedClock()) as cluster,
        open_store(f"rocksdb:{tmp_path / 'store'}", rooms) as store,
    ):
        rows = []
        for n in range(2):
            async with cluster.owner() as owner:
                while (lease := owner.check("attic")) is None:
                    await cluster.turn(0.1)
                rows.append(await OwnedRows(store, rooms).load(lease, "attic"))
                await rows[n].insert({"state": {"topic": b"%d" % n}})
        before, now = rows
        late = [before.insert({"state": {"topic": b"late"}}), before.delete()]
        for each in await asyncio.gather(*late, return_exceptions=True):
            assert isinstance(each, LeaseLost)
        await now.insert({"state": {"mood": b"calm"}})
        assert (await store.get(rooms, "attic", "state", "topic")).value == b"1"
