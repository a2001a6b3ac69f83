"""The contracts of stores of entities over a real Cassandra of today: each test has a keyspace."""

import asyncio
import os
from collections.abc import Iterator
from uuid import uuid4

import pytest

from lab.contracts.entity_items import EntityItemsContract
from lab.contracts.entity_store import EntityStoreContract, OpenEntities
from tenure.columns.opening import driver_named
from tests.integration.cassandra.test_contract import drop_keyspace
from tests.unit.entities.store_urls import opener


@pytest.mark.asyncio
class TestEntitiesOnCassandraOfToday(EntityStoreContract, EntityItemsContract):
    @pytest.fixture
    def open_entities(self, today: str) -> Iterator[OpenEntities]:
        url = f"cassandra:{today}_{uuid4().hex[:12]}"
        yield opener(url)
        options = driver_named(os.environ.get("TENURE_CASSANDRA_DRIVER"))
        asyncio.run(drop_keyspace(url, options or {}))
