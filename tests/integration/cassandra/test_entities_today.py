"""The contracts of stores of entities and of owned state over a real Cassandra of today: each test
has a keyspace.
"""

import asyncio
import os
from collections.abc import Iterator
from uuid import uuid4

import pytest

from lab.contracts.entity_items import EntityItemsContract
from lab.contracts.entity_store import EntityStoreContract, OpenEntities
from lab.contracts.stored_state import StoredStateContract
from tenure.columns.opening import driver_named
from tests.integration.cassandra.test_contract import drop_keyspace
from tests.unit.entities.store_urls import opener


@pytest.fixture
def store_url(today: str) -> Iterator[str]:
    url = f"cassandra:{today}_{uuid4().hex[:12]}"
    yield url
    options = driver_named(os.environ.get("TENURE_CASSANDRA_DRIVER"))
    asyncio.run(drop_keyspace(url, options or {}))


@pytest.mark.asyncio
class TestEntitiesOnCassandraOfToday(EntityStoreContract, EntityItemsContract):
    @pytest.fixture
    def open_entities(self, store_url: str) -> OpenEntities:
        return opener(store_url)


@pytest.mark.asyncio
class TestStateOnCassandraOfToday(StoredStateContract):
    knows_later_journals = False
