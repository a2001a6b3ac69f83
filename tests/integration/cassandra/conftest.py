"""One Cassandra for all tests of a process, if there is a Java that can run it."""

from collections.abc import Iterator

import pytest

from tests.integration.cassandra.server import Cassandra, cassandra, why_not


@pytest.fixture(scope="session")
def old_cassandra(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cassandra]:
    """A Cassandra 1.2.0 that answers."""
    if missing := why_not():
        pytest.skip(f"no Cassandra 1.2.0 here: {missing}")
    with cassandra(tmp_path_factory.mktemp("cassandra")) as running:
        yield running
