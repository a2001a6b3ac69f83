"""A Cassandra that is away, goes away, or lacks what is needed; calls that are cancelled; forks."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import islice
from uuid import uuid4

import pytest

from tenure.cli.demo.ports import free_ports
from tenure.columns.backends.cassandra import driver as driver_module
from tenure.columns.backends.cassandra import schema
from tenure.columns.backends.cassandra.address import parse_address
from tenure.columns.backends.cassandra.driver import RECONNECT_SECONDS, CassandraDriver
from tenure.columns.backends.cassandra.statements import Cql, make_keyspace, make_table
from tenure.columns.opening import StoreOpening, open_store
from tenure.columns.requests import Consistency
from tenure.columns.tables import Family, Table
from tenure.errors import (
    ClosedError,
    ConfigurationError,
    ForkedError,
    Overloaded,
    SchemaError,
    StoreError,
    Unsupported,
)
from tests.integration.cassandra.cql_server import DRIVER_OPTIONS as SMALL_OPTIONS
from tests.integration.cassandra.cql_server import small_server
from tests.integration.cassandra.server import DRIVER_OPTIONS, Cassandra
from tests.patience import DEADLINE_SECONDS, until

TABLE = Table("things", writes="clock", simple=Family(columns=str))
BY_TIME = Family(columns=int, order="time")
NODE = Cql("SELECT cluster_name FROM system.local WHERE key = ?", ("local",))
PLENTY = 2_000


def opening(running: Cassandra, *tables: Table, create: bool = True) -> StoreOpening:
    url = f"cassandra:{running.host}:{running.cql_port}/k{uuid4().hex}"
    return open_store(url, *(tables or (TABLE,)), create=create, driver=DRIVER_OPTIONS)


@pytest.mark.asyncio
async def test_where_nobody_answers_it_says_so() -> None:
    (port,) = free_ports(1)
    with pytest.raises(StoreError) as raised:
        await open_store(f"cassandra:127.0.0.1:{port}/k", TABLE).__aenter__()
    place = f"127.0.0.1:{port}"
    assert (
        str(raised.value) == f"no node answers at cassandra:{place}/k: {place}: connection refused"
    )


LEVELS: Mapping[Consistency, int] = {"one": 1, "quorum": 4, "all": 5, "local_quorum": 6}
"""The numbers of levels in the protocol."""


@pytest.mark.parametrize(("level", "number"), [*LEVELS.items(), ("each_quorum", 7)])
def test_a_request_asks_for_as_many_replicas_as_was_said(level: Consistency, number: int) -> None:
    hashed = Table("things", writes="clock", kind="hashed", simple=Family(columns=str), log=BY_TIME)
    with small_server() as server:
        url = f"cassandra:127.0.0.1:{server.port}/k"
        with open_store(url, hashed, create=True, driver=SMALL_OPTIONS) as store:
            server.levels.clear()
            store.insert(hashed, "k", {"simple": {"a": b""}}, consistency=level)
            store.insert(hashed, "k", {"log": {1: b""}}, consistency=level)  # a batch
            if level in LEVELS:
                assert store.get(hashed, "k", consistency=level).families
            assert set(server.levels) == {number}


@pytest.mark.asyncio
async def test_the_loop_runs_while_a_server_says_nothing() -> None:
    """Whatever waits in the driver, connecting first of all, waits in another thread."""
    accepted: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, to: accepted.append(to), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    options = {**DRIVER_OPTIONS, "connect_timeout": 0.2, "control_connection_timeout": 0.2}
    opened = open_store(f"cassandra:127.0.0.1:{port}/k", TABLE, driver=options)
    connecting = asyncio.create_task(opened.__aenter__())
    turns = 0
    while not connecting.done():
        await asyncio.sleep(0.001)
        turns += 1
    silent.close()
    for each in accepted:
        each.transport.abort()
    with pytest.raises(StoreError, match="no node answers"):
        await connecting
    assert turns > 10


@pytest.mark.asyncio
async def test_what_is_missing_is_told_as_cql_that_makes_it(old_cassandra: Cassandra) -> None:
    lacking = opening(old_cassandra, create=False)
    with pytest.raises(SchemaError, match="create=True, or run:\nCREATE KEYSPACE") as raised:
        await lacking.__aenter__()
    told = str(raised.value).partition("run:\n")[2]
    keyspace = told.partition('"')[2].partition('"')[0]
    url = f"cassandra:127.0.0.1:{old_cassandra.cql_port}/{keyspace}"
    driver = CassandraDriver(parse_address(url), DRIVER_OPTIONS)
    await driver.connect()
    for statement in told.split(";\n"):
        if statement.startswith("USE"):
            await driver.use(keyspace)
        else:
            await driver.say(Cql(statement.rstrip(";")))
    await driver.close()
    async with open_store(url, TABLE, driver=DRIVER_OPTIONS) as store:
        await store.insert(TABLE, "k", {"simple": {"x": b""}})


@pytest.mark.asyncio
async def test_connections_that_the_driver_ended_of_a_node_that_is_up_come_again(
    old_cassandra: Cassandra,
) -> None:
    """It does so where a node goes while another connection to it seems to be open."""
    driver = CassandraDriver(
        parse_address(f"cassandra:127.0.0.1:{old_cassandra.cql_port}/k"), DRIVER_OPTIONS
    )
    await driver.connect()
    asking = Cql("SELECT cluster_name FROM system.local")
    assert await driver.execute(asking)
    for pool in driver._session._pools.values():
        pool.shutdown()
    with pytest.raises(StoreError, match="Pool is shutdown"):
        await driver.execute(asking)

    async def is_answered() -> bool:
        with suppress(StoreError):
            return bool(await driver.execute(asking))
        return False

    await until(is_answered)
    await driver.close()


@pytest.mark.asyncio
async def test_processes_that_make_one_store_at_once_agree(old_cassandra: Cassandra) -> None:
    url = f"cassandra:127.0.0.1:{old_cassandra.cql_port}/k{uuid4().hex}"
    openings = [open_store(url, TABLE, create=True, driver=DRIVER_OPTIONS) for _ in range(4)]
    stores = await asyncio.gather(*(each.__aenter__() for each in openings))
    await stores[0].insert(TABLE, "k", {"simple": {"x": b"1"}})
    for store in stores:
        assert (await store.get(TABLE, "k", "simple", "x")).value == b"1"
        await store.close()


@pytest.mark.asyncio
async def test_a_table_whose_maker_was_ended_is_recorded_and_another_is_refused(
    old_cassandra: Cassandra, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "AGAIN_SECONDS", 0.0)
    other = Table("others", writes="clock", simple=Family(columns=str))
    address = parse_address(f"cassandra:127.0.0.1:{old_cassandra.cql_port}/k{uuid4().hex}")
    driver = CassandraDriver(address, DRIVER_OPTIONS)
    await driver.connect()
    await driver.say(make_keyspace(address.keyspace, 1))
    await driver.use(address.keyspace)
    await driver.say(make_table(TABLE))
    await driver.say(Cql("CREATE TABLE others (who text PRIMARY KEY)"))
    await driver.close()
    async with open_store(str(address), TABLE, create=True, driver=DRIVER_OPTIONS) as store:
        await store.insert(TABLE, "k", {"simple": {"x": b""}})
    async with open_store(str(address), TABLE, driver=DRIVER_OPTIONS):
        pass
    with pytest.raises(SchemaError, match="does not take the request"):
        await open_store(str(address), other, create=True, driver=DRIVER_OPTIONS).__aenter__()


@pytest.mark.asyncio
async def test_a_family_may_come_later_and_another_type_may_not(old_cassandra: Cassandra) -> None:
    url = f"cassandra:127.0.0.1:{old_cassandra.cql_port}/k{uuid4().hex}"
    wider = Table(
        "things", writes="clock", simple=Family(columns=str), more=Family(columns=int, order="time")
    )
    other = Table("things", writes="clock", simple=Family(columns=int))
    async with open_store(url, TABLE, create=True, driver=DRIVER_OPTIONS) as store:
        await store.insert(TABLE, "k", {"simple": {"x": b"1"}})
    async with open_store(url, wider, create=True, driver=DRIVER_OPTIONS) as store:
        await store.insert(wider, "k", {"more": {4: b"2"}})
    with pytest.raises(SchemaError, match="was made with columns=str"):
        await open_store(url, other, create=True, driver=DRIVER_OPTIONS).__aenter__()
    async with open_store(url, TABLE, driver=DRIVER_OPTIONS) as store:
        assert (await store.get(TABLE, "k", "simple", "x")).value == b"1"


@pytest.mark.asyncio
async def test_a_fenced_table_is_refused_without_conditions(
    old_cassandra: Cassandra,
) -> None:
    fenced = Table("rooms", fenced_by="rooms", state=Family(columns=str))
    url = f"cassandra:{old_cassandra.host}:{old_cassandra.cql_port}/k{uuid4().hex}"
    with pytest.raises(Unsupported, match="has no lightweight transactions"):
        await open_store(url, fenced, fence="lwt", driver=DRIVER_OPTIONS).__aenter__()


def test_a_missing_driver_is_named_with_the_way_to_install_it() -> None:
    hide = (
        "import sys; sys.modules['cassandra'] = None; from tenure.columns.opening import open_store"
    )
    said = subprocess.run(
        [sys.executable, "-c", f"{hide}; open_store('cassandra:a/k')"],
        check=False,
        capture_output=True,
        text=True,
    ).stderr
    assert "ConfigurationError" in said
    assert "pip install 'tenure[cassandra]'" in said


def test_what_is_for_cassandra_alone_is_refused_elsewhere() -> None:
    with pytest.raises(ConfigurationError, match="create is for a store cassandra:"):
        open_store("memory:", TABLE, create=True)


@pytest.mark.asyncio
async def test_a_node_that_comes_again_is_found_however_long_it_was_away(
    old_cassandra: Cassandra,
) -> None:
    """The driver alone waits up to ten minutes between two attempts, and gives up after 64."""
    driver = await connected(old_cassandra)
    try:
        waits = list(islice(driver._cluster.reconnection_policy.new_schedule(), 1_000))
    finally:
        await driver.close()
    assert len(waits) == 1_000
    assert max(waits) <= RECONNECT_SECONDS


@pytest.mark.asyncio
async def test_answers_come_many_at_a_time_and_the_loop_runs_on(
    old_cassandra: Cassandra, monkeypatch: pytest.MonkeyPatch
) -> None:
    wake_ups = 0
    deliver: Callable[[CassandraDriver], None] = CassandraDriver._deliver

    def counted(driver: CassandraDriver) -> None:
        nonlocal wake_ups
        wake_ups += 1
        deliver(driver)

    monkeypatch.setattr(CassandraDriver, "_deliver", counted)
    driver = await connected(old_cassandra)
    try:
        await asyncio.gather(*(driver.execute(NODE, "one") for _ in range(PLENTY)))
    finally:
        await driver.close()
    assert wake_ups < PLENTY


@pytest.mark.asyncio
async def test_a_cancelled_call_gives_its_place_back(
    old_cassandra: Cassandra, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "UNDER_WAY_FIRST_PROTOCOLS", 2)
    driver = await connected(old_cassandra)
    try:
        for _ in range(20):
            tasks = [asyncio.create_task(driver.execute(NODE, "one")) for _ in range(4)]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert await asyncio.wait_for(driver.execute(NODE, "one"), DEADLINE_SECONDS) == [
            ("Test Cluster",)
        ]
    finally:
        await driver.close()


@pytest.mark.asyncio
async def test_who_comes_when_too_many_wait_is_refused(
    old_cassandra: Cassandra, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "UNDER_WAY_FIRST_PROTOCOLS", 1)
    monkeypatch.setattr(driver_module, "WAITING", 3)
    driver = await connected(old_cassandra)
    try:
        asked = [asyncio.create_task(driver.execute(NODE, "one")) for _ in range(9)]
        came = await asyncio.gather(*asked, return_exceptions=True)
    finally:
        await driver.close()
    refused = [each for each in came if isinstance(each, Overloaded)]
    assert "was not begun" in str(refused[0])
    assert [each for each in came if each not in refused] == [[("Test Cluster",)]] * 4


@pytest.mark.asyncio
async def test_a_forked_child_is_told_and_the_parent_goes_on(old_cassandra: Cassandra) -> None:
    driver = await connected(old_cassandra)
    try:
        with pytest.MonkeyPatch.context() as child:
            child.setattr(os, "getpid", lambda: 1)
            with pytest.raises(ForkedError, match="open stores after forking"):
                await driver.execute(NODE, "one")
        assert await driver.execute(NODE, "one") == [("Test Cluster",)]
    finally:
        await driver.close()
    with pytest.raises(ClosedError):
        await driver.execute(NODE, "one")


FORKING = f"""
import os, sys
from tenure import Family, ForkedError, Table, open_store
table = Table("things", writes="clock", kind="hashed", simple=Family(columns=str))
url, options = sys.argv[1], {SMALL_OPTIONS!r}
with open_store(url, table, create=True, driver=options) as store:
    store.insert(table, "k", {{"simple": {{"x": b""}}}})
    child = os.fork()
    if not child:
        try:
            store.get(table, "k")
        except ForkedError:
            with open_store(url, table, driver=options) as own:
                own.insert(table, "k", {{"simple": {{"y": b""}}}})
            sys.exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert [each.name for each in store.get(table, "k", "simple")] == ["x", "y"]
"""


def test_a_child_that_was_forked_opens_a_store_of_its_own() -> None:
    with small_server() as server:
        url = f"cassandra:127.0.0.1:{server.port}/k"
        found = subprocess.run(
            [sys.executable, "-c", FORKING, url],
            check=False,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
        )
    assert found.returncode == 0, found.stderr


async def connected(running: Cassandra) -> CassandraDriver:
    url = f"cassandra:{running.host}:{running.cql_port}/system"
    driver = CassandraDriver(parse_address(url), DRIVER_OPTIONS)
    await driver.connect()
    return driver
