"""The store on Cassandra passes the contract of stores, as far as it promises it: on a real 1.2.0,
and on a small server that speaks what servers of today speak.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from uuid import uuid4

import pytest

from tenure.columns.opening import open_store
from tenure.errors import Unsupported
from tenure.testing.contracts.store import MAIL, OpenTables, StoreContract
from tests.integration.cassandra import cql_server, server
from tests.integration.cassandra.server import Cassandra
from tests.repo.reading import ROOT


class OnCassandra(StoreContract):
    """The contract, but for what no Cassandra does."""

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
