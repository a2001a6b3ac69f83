"""The same answers as a real Cassandra 1.2.0, for random writes with ties and late times.

TENURE_TEST_WRITES says how many, 600 unless it is set; TENURE_TEST_SEED repeats a run.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import uuid4

import pytest
import pytest_asyncio

from tenure.columns.backends.embedded import EmbeddedBackend
from tenure.columns.opening import StoreOpening, open_store
from tenure.columns.store import ColumnStore
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
from tests.unit.columns.node.ringed import TablesMade, form_ring, running, settings_of

WRITES = int(os.environ.get("TENURE_TEST_WRITES", "600"))
SEED = int(os.environ.get("TENURE_TEST_SEED", "0"))
ROUND = 250
"""Writes of the same rows. Times are few, so that after some hundreds no write wins any more."""
FLUSHED = 10
"""Of so many rounds one has a flush in its middle, so that a row is in a file and in memory."""


class Compared(NamedTuple):
    """An empty store of one kind, and how what it has is written into files."""

    opening: StoreOpening
    flush: Callable[[ColumnStore], None] = lambda _: None


@pytest_asyncio.fixture(params=["memory", "rocksdb", "three nodes", "cassandra"])
async def compared(
    request: pytest.FixtureRequest, tmp_path: Path, old_cassandra: Cassandra
) -> AsyncIterator[Compared]:
    """Each kind of store that there is."""
    if request.param == "memory":
        yield Compared(open_store("memory:", TABLE))
    elif request.param == "rocksdb":
        yield Compared(open_store(f"rocksdb:{tmp_path / 'store'}", TABLE, sync="fast"), flush)
    elif request.param == "three nodes":  # at quorum
        nodes = settings_of(tmp_path)
        form_ring(nodes)
        async with running(nodes) as services:
            made = TablesMade(services, [TABLE], asyncio.get_running_loop())
            yield Compared(made, lambda _: services[0].store.replica.engine.flush())
    else:
        keyspace = f"k{uuid4().hex}"
        url = f"cassandra:127.0.0.1:{old_cassandra.cql_port}/{keyspace}"
        opening = open_store(url, TABLE, create=True, driver=DRIVER_OPTIONS)
        yield Compared(opening, lambda _: old_cassandra.flush(keyspace))


def flush(store: ColumnStore) -> None:
    assert isinstance(store.backend, EmbeddedBackend)
    store.backend.replica.engine.flush()


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
    async with compared.opening as store:
        for done in range(0, WRITES, ROUND):
            base = time.time_ns() // 1_000 - 5_000_000
            rows, beyond = (number.to_bytes(4) for number in (done, done + 1))
            flushed = done + ROUND // 2 if done % (FLUSHED * ROUND) == 0 else None
            for each in range(done, min(done + ROUND, WRITES)):
                if each == flushed:
                    compared.flush(store)
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
