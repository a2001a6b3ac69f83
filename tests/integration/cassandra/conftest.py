"""One Cassandra of each kind for all tests of a process, if there is a Java that can run it."""

import os
from collections.abc import Iterator

import pytest

from tests.integration.cassandra import of_today
from tests.integration.cassandra.server import Cassandra, cassandra, why_not


@pytest.fixture(scope="session")
def old_cassandra(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cassandra]:
    """A Cassandra 1.2.0 that answers."""
    if missing := why_not():
        pytest.skip(f"no Cassandra 1.2.0 here: {missing}")
    with cassandra(tmp_path_factory.mktemp("cassandra")) as running:
        yield running


@pytest.fixture(scope="session")
def today(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a Cassandra of today is, as host:port/keyspace."""
    if not os.environ.get(of_today.NAMED) and (missing := of_today.why_not()):
        pytest.skip(f"no Cassandra of today here: {missing}")
    with of_today.place_of_today(tmp_path_factory.mktemp("today")) as place:
        yield place
