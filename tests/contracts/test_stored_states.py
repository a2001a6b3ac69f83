"""An OwnedState keeps its contract in every store."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from lab.contracts.stored_state import StoredStateContract
from tests.integration.cassandra.cql_server import small_server
from tests.unit.entities.store_urls import cassandra_url, columns_url, emptied, postgres_url


@pytest.mark.asyncio
class TestStateInSqlite(StoredStateContract):
    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"sqlite:{tmp_path / 'store'}"


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with postgres_url() as url:
        yield url


@pytest.mark.asyncio
class TestStateInPostgres(StoredStateContract):
    @pytest.fixture
    def store_url(self, postgres: str) -> str:
        return emptied(postgres)


@pytest.mark.asyncio
class TestStateInADirectory(StoredStateContract):
    is_shared = False

    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"rocksdb:{tmp_path / 'store'}"


@pytest.mark.asyncio
class TestStateOnThreeNodes(StoredStateContract):
    knows_later_journals = False

    @pytest_asyncio.fixture
    async def store_url(self, tmp_path: Path) -> AsyncIterator[str]:
        async with columns_url(tmp_path) as url:
            yield url


@pytest.mark.asyncio
class TestStateOnCassandra(StoredStateContract):
    knows_later_journals = False

    @pytest.fixture
    def store_url(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
        with small_server() as server:
            yield cassandra_url(server, monkeypatch)
