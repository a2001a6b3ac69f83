"""Stores of entities for tests, by their URLs: each kind of them, and real as far as it goes."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from lab.contracts.entity_store import OpenEntities
from tenure.base.keys import PoolKind
from tenure.stores.column_store import tables_of
from tenure.stores.opening import EntityStore, store_for
from tests.integration.cassandra.cql_server import SmallServer
from tests.unit.columns.node.ringed import TablesMade, form_ring, running, settings_of
from tests.unit.fencing.databases import postgres_programs, postgres_server

POOLS = ("counters", "names", "rooms", "documents", "queues", "pubsub")
STATES = ("", "users")
CASSANDRA_DRIVER = "tests.integration.cassandra.cql_server:DRIVER_OPTIONS"


def opener(url: str) -> OpenEntities:
    """Opens the store at the URL as often as it is asked to."""

    async def open_entities(pool: str, kind: PoolKind) -> EntityStore:
        return await store_for(url)(pool, kind)

    return open_entities


@contextmanager
def postgres_url() -> Iterator[str]:
    """A server."""
    if postgres_programs() is None:
        pytest.skip("no PostgreSQL is installed")
    with postgres_server() as running_server:
        parts = dict(each.split("=") for each in running_server.split())
        yield "postgresql://{user}@/{dbname}?host={host}".format(**parts)


def emptied(postgres: str) -> str:
    """The URL of the server, when nothing is kept there any more."""
    import psycopg  # noqa: PLC0415  # only where there is a server

    with psycopg.connect(postgres, autocommit=True) as connection:
        for each in ("", "_pool", "_item"):
            connection.execute(f"DROP TABLE IF EXISTS tenure_entity{each}")
    return postgres


@asynccontextmanager
async def columns_url(place: Path) -> AsyncIterator[str]:
    """The store of three nodes, which know the tables that managers would tell them of."""
    nodes = settings_of(place)
    form_ring(nodes)
    kept = [*((pool, None) for pool in POOLS), *(("counters", each) for each in STATES)]
    tables = [each for of in kept for each in tables_of(*of, is_by_clock=False)]
    async with running(nodes) as services:
        async with TablesMade(services, tables, asyncio.get_running_loop()):
            pass
        yield "columns:" + ",".join(each.url for each in services)


def cassandra_url(server: SmallServer, patched: pytest.MonkeyPatch) -> str:
    """An empty keyspace."""
    patched.setenv("TENURE_CASSANDRA_DRIVER", CASSANDRA_DRIVER)
    server.keyspace = f"k{uuid4().hex}"
    return f"cassandra:127.0.0.1:{server.port}/{server.keyspace}"
