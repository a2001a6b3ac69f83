"""A server is killed with -9 while rows are written, and started again.

Acknowledged writes are there, each mutation whole; a write of unknown outcome is repeated; and the
store goes on by itself.

TENURE_CASSANDRA names a present Cassandra or ScyllaDB, and TENURE_CASSANDRA_KILL and
TENURE_CASSANDRA_START are shell commands that kill and start one of its nodes. Such commands kill
and start 1.2.0, too. It has no lightweight transactions, so the fence is tried on the small server,
whose connections end in the middle of a request. TENURE_TEST_KILLS says how often; once by default.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Literal, NamedTuple
from uuid import uuid4

import pytest

from tenure.base.keys import hashed_key
from tenure.client.lease import Lease
from tenure.columns.opening import driver_named, open_store
from tenure.columns.owned_rows import OwnedRow, OwnedRows
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tenure.columns.writes import RowWrite
from tenure.errors import LeaseLost, NotEnoughReplicas, StoreError, WriteUnknown
from tests.integration.cassandra import cql_server, server
from tests.integration.cassandra.of_today import NAMED, START_SECONDS, cassandra_of_today
from tests.integration.cassandra.of_today import why_not as why_not_today
from tests.integration.cassandra.server import Commands
from tests.integration.cassandra.test_contract import drop_keyspace
from tests.patience import until

pytestmark = pytest.mark.asyncio

MAIL = Table(
    "mail",
    writes="clock",
    kind="hashed",
    texts=Family(columns=int),
    terms=Family(supers=str, columns=int, order="time"),
)
ROOMS = Table("rooms", kind="hashed", fenced_by="rooms", state=Family(columns=str))
KILLS = int(os.environ.get("TENURE_TEST_KILLS", "1"))
WRITERS, USERS = 8, 5
ENOUGH = 100
"""Writes that are acknowledged before a kill; and after it, where other nodes go on."""
AWAY = (StoreError, NotEnoughReplicas)
"""The errors that are raised when nothing was sent."""


class Killable(NamedTuple):
    """A server that may be killed, and is started again."""

    url: str
    options: Mapping[str, object]
    kill: Callable[[], None]
    start: Callable[[], None]


@contextmanager
def small(_: Path) -> Iterator[Killable]:
    with cql_server.small_server() as running:
        url = f"cassandra:127.0.0.1:{running.port}/k{uuid4().hex}"
        yield Killable(url, cql_server.DRIVER_OPTIONS, running.cut, running.come_again)


@contextmanager
def old(path: Path) -> Iterator[Killable]:
    if missing := server.why_not():
        pytest.skip(f"no Cassandra 1.2.0 here: {missing}")
    with server.cassandra_to_kill(path / "cassandra") as (place, commands):
        yield by_commands(f"cassandra:{place}/k{uuid4().hex}", server.DRIVER_OPTIONS, commands)


@contextmanager
def of_today(path: Path) -> Iterator[Killable]:
    where = os.environ.get(NAMED)
    if not where:
        if missing := why_not_today():
            pytest.skip(f"no Cassandra of today here: {missing}")
        with cassandra_of_today(path / "today") as (place, commands):
            yield by_commands(f"cassandra:{place}/k{uuid4().hex}", {}, commands)
        return
    kill, start = (os.environ.get(f"{NAMED}_{each}") for each in ("KILL", "START"))
    if not kill or not start:
        pytest.skip(f"it is not killed: {NAMED}_KILL and {NAMED}_START are not both set")
    options = driver_named(os.environ.get(f"{NAMED}_DRIVER")) or {}
    url = f"cassandra:{where}_{uuid4().hex[:12]}"
    yield by_commands(url, options, Commands(kill, start))
    asyncio.run(drop_keyspace(url, options))


def by_commands(url: str, options: Mapping[str, object], commands: Commands) -> Killable:
    def run(command: str) -> Callable[[], None]:
        return lambda: commands.run(command)

    return Killable(url, options, run(commands.kill), run(commands.start))


@pytest.fixture(params=["1.2.0", "small server", "of today"])
def killable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Killable]:
    kinds = {"1.2.0": old, "small server": small, "of today": of_today}
    with kinds[request.param](tmp_path) as found:
        yield found


class Writing:
    """The answers that some writers got until they ended."""

    def __init__(self, store: ColumnStore) -> None:
        self._store = store
        self._numbers = count()
        self.is_over = False
        self.kept: set[int] = set()
        self.unknown: dict[int, RowWrite] = {}

    async def write(self) -> None:
        """One mail after another, until one fails."""
        while not self.is_over:
            number = next(self._numbers)
            index = {"all": {number: b""}, f"word-{number % 7}": {number: b""}}
            mail = {"texts": {number: b"mail %d" % number}, "terms": index}
            write = self._store.insert(MAIL, f"user-{number % USERS}", mail)
            try:
                await write
            except WriteUnknown:
                self.unknown[number] = write
                return
            except AWAY:
                return
            self.kept.add(number)

    async def until_it_is_killed(self, killable: Killable) -> None:
        """Write on until nobody answers; or for a while, where others do."""
        self.is_over, goal = False, len(self.kept) + ENOUGH
        writers = [asyncio.create_task(self.write()) for _ in range(WRITERS)]
        await until(lambda: len(self.kept) >= goal)
        await asyncio.to_thread(killable.kill)
        later = len(self.kept) + ENOUGH
        await until(lambda: len(self.kept) >= later or all(each.done() for each in writers))
        self.is_over = True
        await asyncio.gather(*writers)


async def test_what_was_acknowledged_is_there_after_a_kill(killable: Killable) -> None:
    async with opened(killable, MAIL) as store:
        writing = Writing(store)
        for _ in range(KILLS):
            await writing.until_it_is_killed(killable)
            await asyncio.to_thread(killable.start)
            await answering(store)
            found = await mails(store)
            assert writing.kept <= found <= writing.kept | set(writing.unknown)
            for number, write in writing.unknown.items():
                await write.repeat()
                writing.kept.add(number)
            writing.unknown.clear()
            assert await mails(store) == writing.kept


@pytest.mark.parametrize("killable", ["small server"], indirect=True)
async def test_while_nobody_answers_writes_and_reads_fail(killable: Killable) -> None:
    async with opened(killable, MAIL) as store:
        await store.insert(MAIL, "k", {"texts": {1: b"1"}})
        killable.kill()
        with pytest.raises((WriteUnknown, StoreError)):
            await store.insert(MAIL, "k", {"texts": {1: b"2"}})
        with pytest.raises(StoreError):
            await store.get(MAIL, "k", "texts", 1)
        killable.start()
        await answering(store)


@pytest.mark.parametrize("killable", ["small server", "of today"], indirect=True)
async def test_a_former_owner_is_refused_after_a_kill(killable: Killable) -> None:
    async with opened(killable, ROOMS, fence="lwt") as store:
        former = await room(store, 1)
        await former.insert({"state": {"topic": b"tea"}})
        present = await room(store, 2)
        await asyncio.to_thread(killable.kill)
        try:
            await present.insert({"state": {"topic": b"milk"}})
        except (WriteUnknown, *AWAY):
            pass  # the next write repeats it first
        await asyncio.to_thread(killable.start)
        await answering(store, ROOMS)
        with pytest.raises(LeaseLost):
            await former.insert({"state": {"topic": b"late"}})
        await present.insert({"state": {"mood": b"calm"}})
        kept = await store.get(ROOMS, "attic", "state")
        assert [(each.name, each.value) for each in kept] == [("mood", b"calm"), ("topic", b"milk")]


async def room(store: ColumnStore, number: int) -> OwnedRow:
    lease = Lease(hashed_key("attic"), number, 7, "rooms")
    return await OwnedRows(store, ROOMS).load(lease, "attic")


@asynccontextmanager
async def opened(
    killable: Killable, table: Table, fence: Literal["", "lwt"] = ""
) -> AsyncIterator[ColumnStore]:
    """The store, as soon as somebody answers: a command that starts a server does not wait."""
    store = await until(partial(reached, killable, table, fence))
    assert store
    try:
        yield store
    finally:
        await store.close()


async def reached(
    killable: Killable, table: Table, fence: Literal["", "lwt"]
) -> ColumnStore | None:
    url, options = killable.url, killable.options
    try:
        return await open_store(url, table, create=True, fence=fence, driver=options).__aenter__()
    except StoreError:
        return None


async def answering(store: ColumnStore, table: Table = MAIL) -> None:
    """Wait until the store is answered."""

    async def is_answered() -> bool:
        try:
            await store.get(table, "k")
        except AWAY:
            return False
        return True

    await until(is_answered, seconds=START_SECONDS)


async def mails(store: ColumnStore) -> set[int]:
    """Return the mails that are there, each of them whole."""
    found: set[int] = set()
    for user in range(USERS):
        texts = await store.get(MAIL, f"user-{user}", "texts", first=10_000)
        terms = await store.get(MAIL, f"user-{user}", "terms", within=10_000)
        indexed = {each.name: {column.name for column in each.columns} for each in terms}
        numbers = {each.name for each in texts}
        assert indexed.pop("all", set()) == numbers
        assert set().union(*indexed.values()) == numbers
        assert all(each.value == b"mail %d" % each.name for each in texts)
        found |= numbers
    return found
