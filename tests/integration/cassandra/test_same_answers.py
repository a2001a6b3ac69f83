"""Our store gives the same answers as a real Cassandra 1.2.0, for random writes with ties and late
times.

TENURE_TEST_WRITES says how many, 600 by default; TENURE_TEST_SEED repeats a run.

Writes come in rounds, each with its own rows. Some rounds run side by side, each with its own
connection to the real server, so that none of them waits idly for a disk or an answer. The real
server gets its questions first, and its answers are read when ours are there.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from itertools import product
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
    drawn_question,
    drawn_write,
    receive_theirs,
    scan_ours,
    scan_theirs,
    send_theirs,
    write_ours,
)
from tests.integration.cassandra.server import DRIVER_OPTIONS, Cassandra
from tests.integration.cassandra.thrift import ThriftClient
from tests.unit.columns.node.ringed import TablesMade, form_ring, running, settings_of

WRITES = int(os.environ.get("TENURE_TEST_WRITES", "600"))
SEED = int(os.environ.get("TENURE_TEST_SEED", "0"))
ROUND = 250
"""Writes of the same rows. Times are few, so that after some hundreds no write wins any more."""
FLUSHED = 10
"""One round in this many has a flush in its middle, so that a row is in a file and in memory.
Rounds that run beside it see the same at some other place.
"""
AT_ONCE = 8
"""Rounds that run side by side."""


class Compared(NamedTuple):
    """An empty store of one kind, and how what it has is written into files."""

    opening: StoreOpening
    flush: Callable[[ColumnStore], None] = lambda _: None


@pytest_asyncio.fixture(params=["memory", "cassandra", "rocksdb", "three nodes"])
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
def clients(old_cassandra: Cassandra) -> Iterator[list[ThriftClient]]:
    """They ask Cassandra as its own clients did, all in one keyspace."""
    keyspace = f"their{uuid4().hex}"
    with ExitStack() as stack:
        found = [
            stack.enter_context(ThriftClient(old_cassandra.host, old_cassandra.thrift_port))
            for _ in range(AT_ONCE)
        ]
        found[0].add_keyspace(keyspace, FAMILIES)
        for each in found:
            each.set_keyspace(keyspace)
        yield found


@pytest.mark.asyncio
async def test_slices_and_ranges_are_as_there(
    compared: Compared, clients: list[ThriftClient]
) -> None:
    seed = SEED or Random().randrange(1, 1 << 32)
    rounds = iter(range(0, WRITES, ROUND))
    async with compared.opening as store, asyncio.TaskGroup() as tasks:

        async def run_rounds(client: ThriftClient) -> None:
            for first in rounds:
                await compare_round(compared, store, client, seed, first)

        for client in clients:
            tasks.create_task(run_rounds(client))


async def compare_round(
    compared: Compared, store: ColumnStore, client: ThriftClient, seed: int, first: int
) -> None:
    """Some writes of the same few rows, each with a question; at the end ranges of these rows."""
    random = Random(f"{seed} {first}")
    base = time.time_ns() // 1_000 - 5_000_000
    rows, beyond = (number.to_bytes(4) for number in (first, first + 1))
    flushed = first + ROUND // 2 if first % (FLUSHED * ROUND) == 0 else None
    for each in range(first, min(first + ROUND, WRITES)):
        if each == flushed:
            await asyncio.to_thread(compared.flush, store)
        write, question = drawn_write(random, base, rows), drawn_question(random, rows)
        send_theirs(client, write, question)
        await write_ours(store, write)
        ours = await ask_ours(store, question)
        assert ours == receive_theirs(client), (
            f"seed {seed}, write {each}: {write}, then {question}"
        )
    start, end = (rows + key for key in sorted(random.sample(KEYS, 2)))
    bounds = ((rows, beyond), (start, beyond), (rows, end), (start, end))
    for family, asked in product(FAMILIES, bounds):
        assert await scan_ours(store, family, *asked) == scan_theirs(client, family, *asked), (
            f"seed {seed}, after the round of write {first}: {family} of rows {asked}"
        )
