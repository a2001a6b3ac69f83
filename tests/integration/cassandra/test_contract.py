"""The store on a real Cassandra 1.2.0 passes the contract of stores, as far as it promises it."""

from functools import partial
from uuid import uuid4

import pytest

from tenure.columns.opening import open_store
from tenure.errors import Unsupported
from tenure.testing.contracts.store import MAIL, OpenTables, StoreContract
from tests.integration.cassandra.server import DRIVER_OPTIONS, Cassandra


@pytest.mark.asyncio
class TestCassandraStore(StoreContract):
    @pytest.fixture
    def open_tables(self, old_cassandra: Cassandra) -> OpenTables:
        return partial(
            open_store,
            f"cassandra:127.0.0.1:{old_cassandra.cql_port}/k{uuid4().hex}",
            create=True,
            options=DRIVER_OPTIONS,
        )

    async def test_rows_are_scanned_in_the_order_of_their_keys(
        self, open_tables: OpenTables
    ) -> None:
        """Forwards: it has no way to go back."""
        async with open_tables(MAIL) as store:
            for key in ("b", "a", "ab", "c"):
                await store.insert(MAIL, key, {"profile": {"x": b""}})
            await store.delete(MAIL, "c")
            assert [row.key async for row in store.scan(MAIL)] == ["a", "ab", "b"]
            assert [row.key async for row in store.scan(MAIL, start="ab", end="b")] == ["ab"]
            with pytest.raises(Unsupported, match="forwards only"):
                _ = [row async for row in store.scan(MAIL, reverse=True)]
