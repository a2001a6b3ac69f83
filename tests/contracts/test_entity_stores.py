"""Every store of entities passes their contract."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from lab.contracts.entity_items import EntityItemsContract
from lab.contracts.entity_store import EntityStoreContract, OpenEntities
from tenure.base.keys import PoolKind
from tenure.stores.opening import EntityStore
from tests.integration.cassandra.cql_server import small_server
from tests.unit.entities.store_urls import cassandra_url, columns_url, emptied, opener, postgres_url


@pytest.mark.asyncio
class TestEntitiesInSqlite(EntityStoreContract, EntityItemsContract):
    @pytest.fixture
    def open_entities(self, tmp_path: Path) -> OpenEntities:
        return opener(f"sqlite:{tmp_path / 'store'}")


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with postgres_url() as url:
        yield url


@pytest.mark.asyncio
class TestEntitiesInPostgres(EntityStoreContract, EntityItemsContract):
    @pytest.fixture
    def open_entities(self, postgres: str) -> OpenEntities:
        return opener(emptied(postgres))


class Shared:
    """The stores of a directory, which one process has at a time: it closes with the last user."""

    def __init__(self, open_entities: OpenEntities) -> None:
        self._open = open_entities
        self._users: dict[tuple[str, PoolKind], int] = {}
        self._turn = asyncio.Lock()
        self._stores: dict[tuple[str, PoolKind], EntityStore] = {}

    async def open(self, pool: str, kind: PoolKind) -> EntityStore:
        which = pool, kind
        async with self._turn:
            if not self._users.get(which):
                store = self._stores[which] = await self._open(pool, kind)
                self._users[which] = 0
                close = store.close

                async def leave() -> None:
                    self._users[which] -= 1
                    if not self._users[which]:
                        await close()

                store.close = leave  # type: ignore[method-assign]
            self._users[which] += 1
            return self._stores[which]


@pytest.mark.asyncio
class TestEntitiesInADirectory(EntityStoreContract, EntityItemsContract):
    @pytest.fixture
    def open_entities(self, tmp_path: Path) -> OpenEntities:
        return Shared(opener(f"rocksdb:{tmp_path / 'store'}")).open


@pytest.mark.asyncio
class TestEntitiesOnThreeNodes(EntityStoreContract, EntityItemsContract):
    @pytest_asyncio.fixture
    async def open_entities(self, tmp_path: Path) -> AsyncIterator[OpenEntities]:
        async with columns_url(tmp_path) as url:
            yield opener(url)


@pytest.mark.asyncio
class TestEntitiesOnCassandra(EntityStoreContract, EntityItemsContract):
    @pytest.fixture
    def open_entities(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenEntities]:
        with small_server() as server:
            yield opener(cassandra_url(server, monkeypatch))
