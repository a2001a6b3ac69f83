"""Owners that are stopped and succeeded, round after round, over the lightweight transactions of a
real Cassandra of today: on one server, and on three that form a ring.

What a former owner was told is kept is there for the next one; what it writes after that is
refused, or was never seen. TENURE_TEST_ROUNDS says how many rounds.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tenure.base.keys import hashed_key
from tenure.client.lease import Lease
from tenure.columns.opening import open_store
from tenure.columns.owned_rows import OwnedRow, OwnedRows
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tenure.errors import LeaseLost, StoreError, WriteUnknown
from tests.integration.cassandra import of_today

ROOMS = Table("rooms", kind="hashed", fenced_by="rooms", state=Family(columns=str))
PLAIN = Table("plain", kind="hashed", writes="clock", state=Family(columns=str))
ROUNDS = int(os.environ.get("TENURE_TEST_ROUNDS", "15"))
BEFORE = 3
"""Writes that a former owner is told are kept, before the next one comes."""


@pytest.fixture(params=["one server", "a ring of three"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if missing := of_today.why_not():
        pytest.skip(f"no Cassandra of today here: {missing}")
    name = f"k{uuid4().hex}"
    if request.param == "one server":
        place: str = request.getfixturevalue("today").partition("/")[0]
        yield f"cassandra:{place}/{name}"
        return
    if "TENURE_TEST_ROUNDS" not in os.environ:
        pytest.skip("three servers lose sight of each other on a busy machine: TENURE_TEST_ROUNDS")
    with of_today.ring_of_today(tmp_path) as places:
        yield f"cassandra:{','.join(places)}/{name}"


TRIED_AGAIN: list[int] = []
"""The leases under which a row was adopted again, because it was not known whether it was."""


class Former:
    """An owner that writes on and on, whoever else comes."""

    def __init__(self, row: OwnedRow) -> None:
        self._row = row
        self.told = 0
        """The last number that was told to be kept."""
        self.enough = asyncio.Event()

    async def write(self) -> None:
        for number in range(1, 10_000):
            try:
                await self._row.insert({"state": {"count": b"%d" % number}})
            except LeaseLost:
                return
            except (WriteUnknown, StoreError):  # its transaction met the next owner's adoption
                continue
            self.told = number
            if number == BEFORE:
                self.enough.set()
        raise AssertionError("no later owner has kept it out")


async def row_of(store: ColumnStore, number: int) -> OwnedRow:
    """Adopt the row, again where a server does not say whether it has taken the adoption."""
    lease = Lease(hashed_key("attic"), number, 7, "rooms")
    while True:
        try:
            return await OwnedRows(store, ROOMS).load(lease, "attic")
        except (WriteUnknown, StoreError):
            TRIED_AGAIN.append(number)


async def keep(row: OwnedRow, change: dict[str, dict[str, bytes]]) -> None:
    """Write it, again and again until it is told to be kept: each time it is the same."""
    while True:
        try:
            await row.insert(change)
        except (WriteUnknown, StoreError):
            continue
        return


async def one_round(store: ColumnStore, number: int) -> None:
    former = Former(await row_of(store, 2 * number + 1))
    writing = asyncio.create_task(former.write())
    await former.enough.wait()
    told = former.told
    present = await row_of(store, 2 * number + 2)
    assert int(present.get("state", "count").value) >= told
    await keep(present, {"state": {"count": b"0", "by": b"%d" % number}})
    await writing
    kept = await store.get(ROOMS, "attic", "state", "count")
    assert kept is not None
    assert kept.value == b"0", "what a former owner wrote late was kept"


@pytest.mark.asyncio
async def test_no_late_write_is_kept_and_nothing_that_was_told_is_lost(url: str) -> None:
    async with open_store(url, ROOMS, PLAIN, create=True, fence="lwt") as store:
        for number in range(ROUNDS):
            await one_round(store, number)
        row = await row_of(store, 10_000)
        fenced = await spent(row.insert({"state": {"count": b"1"}}) for _ in range(50))
        changes = ({"state": {"count": b"1"}} for _ in range(50))
        plain = await spent(store.insert(PLAIN, "attic", each) for each in changes)
        print(f"{ROUNDS} rounds, {len(TRIED_AGAIN)} adoptions tried again")
        print(f"a fenced write takes {fenced / plain:.1f} times a plain one")


async def spent(calls: Iterator[object]) -> float:
    began = time.monotonic()
    for call in calls:
        await call  # type: ignore[misc]
    return time.monotonic() - began
