"""The same answers as a real Cassandra 1.2.0, for random writes with ties and late times.

TENURE_TEST_WRITES says how many, 600 unless it is set; TENURE_TEST_SEED repeats a run.
"""

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import uuid4

import pytest

from tenure.columns.opening import StoreOpening, open_store
from tests.integration.cassandra.comparing import (
    FAMILIES,
    KEYS,
    TABLE,
    ask_ours,
    ask_theirs,
    drawn_question,
    drawn_write,
    scan_ours,
    scan_theirs,
    write_ours,
    write_theirs,
)
from tests.integration.cassandra.server import DRIVER_OPTIONS, Cassandra
from tests.integration.cassandra.thrift import ThriftClient

WRITES = int(os.environ.get("TENURE_TEST_WRITES", "600"))
SEED = int(os.environ.get("TENURE_TEST_SEED", "0"))
ROUND = 250
"""Writes of the same rows. Times are few, so that after some hundreds no write wins any more."""
FLUSHED = 10
"""Of so many rounds one has a flush in its middle, so that a row is in a file and in memory."""


class Compared(NamedTuple):
    """A kind of store: how an empty one is opened, and how what it has is written into files."""

    opening: Callable[[], StoreOpening]
    flush: Callable[[], None] = lambda: None


@pytest.fixture(params=["memory", "rocksdb", "cassandra"])
def compared(request: pytest.FixtureRequest, tmp_path: Path, old_cassandra: Cassandra) -> Compared:
    """Each kind of store that there is."""
    keyspace = f"k{uuid4().hex}"

    def in_directory() -> StoreOpening:
        return open_store(f"rocksdb:{tmp_path / uuid4().hex}", TABLE, sync="fast")

    def on_cassandra() -> StoreOpening:
        url = f"cassandra:127.0.0.1:{old_cassandra.cql_port}/{keyspace}"
        return open_store(url, TABLE, create=True, driver=DRIVER_OPTIONS)

    return {
        "memory": Compared(lambda: open_store("memory:", TABLE)),
        "rocksdb": Compared(in_directory),
        "cassandra": Compared(on_cassandra, partial(old_cassandra.flush, keyspace)),
    }[request.param]


@pytest.fixture
def thrift(old_cassandra: Cassandra) -> Iterator[ThriftClient]:
    """Asks Cassandra as its own clients did."""
    with ThriftClient(old_cassandra.host, old_cassandra.thrift_port) as client:
        yield client


@pytest.mark.asyncio
async def test_slices_and_ranges_are_as_there(compared: Compared, thrift: ThriftClient) -> None:
    seed = SEED or Random().randrange(1, 1 << 32)
    random = Random(seed)
    keyspace = f"their{uuid4().hex}"
    thrift.add_keyspace(keyspace, FAMILIES)
    thrift.set_keyspace(keyspace)
    async with compared.opening() as store:
        for done in range(0, WRITES, ROUND):
            base = time.time_ns() // 1_000 - 5_000_000
            rows, beyond = (number.to_bytes(4) for number in (done, done + 1))
            flushed = done + ROUND // 2 if done % (FLUSHED * ROUND) == 0 else None
            for each in range(done, min(done + ROUND, WRITES)):
                if each == flushed:
                    compared.flush()
                write = drawn_write(random, base, rows)
                await write_ours(store, write)
                write_theirs(thrift, write)
                question = drawn_question(random, rows)
                assert await ask_ours(store, question) == ask_theirs(thrift, question), (
                    f"seed {seed}, write {each}: {write}, then {question}"
                )
            start, end = (rows + key for key in sorted(random.sample(KEYS, 2)))
            for bounds in ((rows, beyond), (start, beyond), (rows, end), (start, end)):
                assert await scan_ours(store, *bounds) == scan_theirs(thrift, *bounds), (
                    f"seed {seed}, after write {done + ROUND}: rows {bounds}"
                )
