"""One PostgreSQL server for all tests of a process."""

import os
from collections.abc import Iterator

import pytest

from tests.unit.fencing.databases import POSTGRES_VARIABLE, postgres_programs, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A connection string."""
    if named := os.environ.get(POSTGRES_VARIABLE):
        yield named
    elif postgres_programs() is None:
        pytest.skip(f"no PostgreSQL is installed, and {POSTGRES_VARIABLE} names no server")
    else:
        with postgres_server() as running:
            yield running
