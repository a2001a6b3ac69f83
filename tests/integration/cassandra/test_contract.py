"""The store on Cassandra passes the contract of stores, as far as it promises it: on a real 1.2.0,
and on a small server that speaks what servers of today speak.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from lab.contracts.store import OpenTables, StoreContract, names
from lab.contracts.tables import mail
from tenure.base.keys import hashed_key
from tenure.client.lease import Lease
from tenure.columns.backends.cassandra import reading
from tenure.columns.backends.cassandra.address import parse_address
from tenure.columns.backends.cassandra.backend import CassandraBackend
from tenure.columns.backends.cassandra.driver import CassandraDriver
from tenure.columns.backends.cassandra.statements import NAMES_BYTES, Cql
from tenure.columns.opening import StoreOpening, driver_named, open_store
from tenure.columns.owned_rows import OwnedRows
from tenure.columns.tables import Family, Table
from tenure.errors import LeaseLost, SchemaError, Unsupported
from tests.integration.cassandra import cql_server, server
from tests.integration.cassandra.server import Cassandra
from tests.repo.reading import ROOT


class OnCassandra(StoreContract):
    """The contract, but for what no Cassandra does."""

    writes = "clock"
    mail = mail("clock")

    async def test_writes_are_ordered_by_their_clocks_and_nothing_else_is_promised(
        self, open_tables: OpenTables
    ) -> None:
        with pytest.raises(Unsupported, match="writes='clock'"):
            await open_tables(mail("ordered")).__aenter__()

    async def test_rows_are_scanned_in_the_order_of_their_keys(
        self, open_tables: OpenTables
    ) -> None:
        """Forwards: it has no way to go back."""
        async with open_tables(self.mail) as store:
            for key in ("b", "a", "ab", "c"):
                await store.insert(self.mail, key, {"profile": {"x": b""}})
            await store.delete(self.mail, "c")
            assert [row.key async for row in store.scan(self.mail)] == ["a", "ab", "b"]
            assert [row.key async for row in store.scan(self.mail, start="ab", end="b")] == ["ab"]
            with pytest.raises(Unsupported, match="forwards only"):
                _ = [row async for row in store.scan(self.mail, reverse=True)]

    async def test_nothing_is_read_at_each_quorum(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail) as store:
            for path in ((), ("profile",), ("profile", "x"), ("terms",)):
                with pytest.raises(Unsupported, match="use local_quorum or quorum"):
                    await store.get(self.mail, "ann", *path, consistency="each_quorum")

    async def test_names_have_a_limit_together(self, open_tables: OpenTables) -> None:
        """It keeps them as one. Those above the limit are refused before they are sent."""
        long = Table(
            "long",
            writes="clock",
            plain=Family(columns=bytes),
            log=Family(columns=bytes, order="time"),
            deep=Family(supers=bytes, columns=bytes, order="time"),
        )
        said = f"at most {NAMES_BYTES} are allowed on Cassandra"
        async with open_tables(long) as store:
            for path in (("plain",), ("log",), ("deep", b"s" * 40_000)):
                name = b"n" * (NAMES_BYTES - sum(map(len, path)))
                await store.insert(long, "k", mutation(*path, name))
                assert (await store.get(long, "k", *path, name)).value == b""
                assert names(await store.get(long, "k", *path)) == [name]
                await store.delete(long, "k", *path, name)
                assert names(await store.get(long, "k", *path)) == []
                with pytest.raises(SchemaError, match=said):
                    await store.insert(long, "k", mutation(*path, name + b"n"))
                with pytest.raises(SchemaError, match=said):
                    await store.delete(long, "k", *path, name + b"n")
                with pytest.raises(SchemaError, match=said):
                    await store.get(long, "k", *path, name + b"n")
            too_long = b"s" * (NAMES_BYTES - len("deep") + 1)
            for call in (store.get, store.delete):
                await call(long, "k", "deep", too_long[1:])
                with pytest.raises(SchemaError, match=said):
                    await call(long, "k", "deep", too_long)


def mutation(family: str, *names: Any) -> dict[str, Any]:  # noqa: ANN401 - names as they are
    """A mutation that writes one column, without a value."""
    found: Any = b""
    for each in reversed(names):
        found = {each: found}
    return {family: found}


def tables_at(port: int, options: Mapping[str, object]) -> OpenTables:
    url = f"cassandra:127.0.0.1:{port}/k{uuid4().hex}"
    return partial(open_store, url, create=True, driver=options)


@pytest.mark.asyncio
class TestOldCassandra(OnCassandra):
    @pytest.fixture
    def open_tables(self, old_cassandra: Cassandra) -> OpenTables:
        return tables_at(old_cassandra.cql_port, server.DRIVER_OPTIONS)


@pytest.mark.asyncio
class TestSmallServer(OnCassandra):
    """Statements are prepared here, and batches are frames."""

    @pytest.fixture
    def open_tables(self) -> Iterator[OpenTables]:
        with cql_server.small_server(cql_server.ORDERED) as running:
            yield tables_at(running.port, cql_server.DRIVER_OPTIONS)

    async def test_super_columns_are_listed_in_as_many_answers_as_they_take(
        self, open_tables: OpenTables, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "MOST_ROWS", 3)
        words = [f"word-{n}" for n in range(7)]
        async with open_tables(self.mail) as store:
            await store.insert(self.mail, "ann", {"terms": {word: {1: b""} for word in words}})
            page = await store.get(self.mail, "ann", "terms")
            assert ([each.name for each in page], page.next) == (words, None)


@pytest.mark.asyncio
class TestServerOfToday(OnCassandra):
    """It spreads rows by a hash, so that all tables here are hashed. One server is for all of these
    tests.
    """

    @pytest.fixture
    def open_tables(self, today: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenTables]:
        url = f"cassandra:{today}_{uuid4().hex[:12]}"
        options = driver_named(os.environ.get("TENURE_CASSANDRA_DRIVER"))

        def opening(*tables: Table) -> StoreOpening:
            for table in tables:
                monkeypatch.setattr(table, "kind", "hashed")
            return open_store(url, *tables, create=True, driver=options)

        yield opening
        asyncio.run(drop_keyspace(url, options or {}))

    async def test_rows_are_scanned_in_the_order_of_their_keys(
        self, open_tables: OpenTables
    ) -> None:
        """All of them, in any order."""
        async with open_tables(self.mail) as store:
            for key in ("b", "a", "ab", "c"):
                await store.insert(self.mail, key, {"profile": {"x": b""}})
            await store.delete(self.mail, "c")
            assert {row.key async for row in store.scan(self.mail)} == {"a", "ab", "b"}

    async def test_names_of_every_type_keep_their_order(self, open_tables: OpenTables) -> None:
        """These are names of columns; rows have none."""
        table = Table("ints", writes="clock", plain=Family(columns=int))
        ordered = [-(1 << 63), -256, -1, 0, 1, 255, (1 << 63) - 1]
        async with open_tables(table) as store:
            columns = dict.fromkeys(reversed(ordered), b"")
            await store.insert(table, "k", {"plain": columns})
            assert [each.name for each in await store.get(table, "k", "plain")] == ordered

    async def test_a_table_cannot_become_another(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail):
            pass
        with pytest.raises(SchemaError, match="columns="):
            await open_tables(Table("mail", writes="clock", log=Family(columns=str))).__aenter__()

    async def test_what_a_former_owner_writes_is_refused(self, open_tables: OpenTables) -> None:
        rooms = Table("rooms", kind="hashed", fenced_by="rooms", state=Family(columns=str))
        opening = open_tables(self.mail)
        async with opening as plain:
            backend = plain.backend
            assert isinstance(backend, CassandraBackend)
            url = str(backend.address)
        options = driver_named(os.environ.get("TENURE_CASSANDRA_DRIVER"))
        async with open_store(url, rooms, create=True, fence="lwt", driver=options) as store:
            former = await OwnedRows(store, rooms).load(lease(1), "attic")
            await former.insert({"state": {"topic": b"tea"}})
            present = await OwnedRows(store, rooms).load(lease(2), "attic")
            with pytest.raises(LeaseLost):
                await former.insert({"state": {"topic": b"late"}})
            assert present.get("state", "topic").value == b"tea"


def lease(number: int) -> Lease:
    return Lease(hashed_key("attic"), number, 7, "rooms")


async def drop_keyspace(url: str, options: Mapping[str, object]) -> None:
    driver = CassandraDriver(parse_address(url), options)
    await driver.connect()
    try:
        await driver.say(Cql(f'DROP KEYSPACE IF EXISTS "{driver.address.keyspace}"'))
    finally:
        await driver.close()


def test_the_program_of_the_page_runs() -> None:
    page = (ROOT / "docs" / "operating" / "cassandra.md").read_text("utf-8")
    program = page.partition("```python\n")[2].partition("```")[0]
    with cql_server.small_server() as running:
        url = f"cassandra:127.0.0.1:{running.port}/mail"
        told = f"driver={cql_server.DRIVER_OPTIONS!r}, create=True"  # what is small about it
        said = subprocess.run(
            [sys.executable, "-c", program.replace("create=True", told), url],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    assert "value=b'Ann'" in said
