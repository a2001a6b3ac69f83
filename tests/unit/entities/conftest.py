from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.fencing.databases import postgres_programs, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a server."""
    if postgres_programs() is None:
        pytest.skip("no PostgreSQL is installed")
    with postgres_server() as running:
        parts = dict(each.split("=") for each in running.split())
        yield "postgresql://{user}@/{dbname}?host={host}".format(**parts)


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'store'}"
    import psycopg  # noqa: PLC0415  # only where there is a server

    url: str = request.getfixturevalue("postgres")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS tenure_entity, tenure_entity_pool")
    return url
