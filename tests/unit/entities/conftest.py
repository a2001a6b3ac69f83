from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from tests.integration.cassandra.cql_server import SmallServer, small_server
from tests.unit.entities.store_urls import cassandra_url, columns_url, emptied, postgres_url


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a server."""
    with postgres_url() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store in a database of SQL."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'store'}"
    return emptied(request.getfixturevalue("postgres"))


@pytest.fixture
def cql() -> Iterator[SmallServer]:
    """What speaks as Cassandra does."""
    with small_server() as server:
        yield server


@asynccontextmanager
async def empty_store(
    kind: str, request: pytest.FixtureRequest, place: Path, patched: pytest.MonkeyPatch
) -> AsyncIterator[str]:
    match kind:
        case "postgresql":
            yield emptied(request.getfixturevalue("postgres"))
        case "columns":
            async with columns_url(place) as url:
                yield url
        case "cassandra":
            yield cassandra_url(request.getfixturevalue("cql"), patched)
        case _:
            yield f"{kind}:{place / 'store'}"


@pytest_asyncio.fixture(params=["sqlite", "postgresql", "rocksdb", "columns", "cassandra"])
async def any_store_url(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cql: SmallServer,
) -> AsyncIterator[str]:
    """An empty store of any kind."""
    async with empty_store(request.param, request, tmp_path, monkeypatch) as url:
        yield url


@pytest_asyncio.fixture(params=["sqlite", "postgresql", "columns", "cassandra"])
async def shared_store_url(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cql: SmallServer,
) -> AsyncIterator[str]:
    """An empty store that several processes can have at once."""
    async with empty_store(request.param, request, tmp_path, monkeypatch) as url:
        yield url
