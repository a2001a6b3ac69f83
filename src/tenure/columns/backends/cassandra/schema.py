"""The tables on Cassandra: the store makes them if asked to, and otherwise says how to make
them.
"""

import asyncio
from collections.abc import Sequence

import msgspec
from cassandra import AlreadyExists

from tenure.columns.backends.cassandra.driver import CassandraDriver
from tenure.columns.backends.cassandra.statements import (
    ColumnPlace,
    Cql,
    keep_record,
    make_keyspace,
    make_records,
    make_table,
    one,
    read_records,
    to_run,
)
from tenure.columns.backends.contract import Fencing
from tenure.columns.tables import Table, check_same
from tenure.errors import SchemaError, Unsupported
from tenure.protocol.topology.tables import TableRecord

MOST_REPLICAS = 3
"""The most replicas of a keyspace that is made here; fewer if there are fewer nodes."""
ATTEMPTS = 20
AGAIN_SECONDS = 0.25
"""How long to wait for another process to record a table. Processes that start together make the
same tables: one of them makes a table and records it within moments, and the others wait for that.
"""
_ORDERED = "ByteOrderedPartitioner"


async def prepare_schema(
    driver: CassandraDriver, tables: Sequence[Table], *, create: bool, fence: Fencing
) -> None:
    """Make sure that the keyspace and the tables exist as declared.

    Raises SchemaError if something is missing that the store may not make (the error has the
    statements to run), or was made differently; Unsupported if this cluster cannot do it.
    """
    await _check_supported(driver, tables, fence)
    for _ in range(ATTEMPTS):
        missing = await _missing(driver, tables)
        if missing and not create:
            raise SchemaError(
                f"{driver.address} does not have what these tables need. Open the store once with "
                f"create=True, or run:\n{to_run(missing, driver.address)}"
            )
        if await _make(driver, missing):
            return
        await asyncio.sleep(AGAIN_SECONDS)
    await _record(driver, tables)


async def _missing(driver: CassandraDriver, tables: Sequence[Table]) -> list[Cql]:
    found: list[Cql] = []
    records = None
    if await _has_keyspace(driver):
        records = await kept_records(driver)
    else:
        found.append(make_keyspace(driver.address.keyspace, await _replicas(driver)))
    if records is None:
        found.append(make_records())
    for table in tables:
        found += _missing_of(table, (records or {}).get(table.name))
    return found


async def _make(driver: CassandraDriver, missing: Sequence[Cql]) -> bool:
    """Run these statements. False if something exists by now: another process is making it, or was
    killed while it did. Then the rest is left out, because a table counts only once it is recorded.
    """
    for statement in missing:
        try:
            await driver.say(statement)
        except SchemaError as error:
            if isinstance(error.__cause__, AlreadyExists):
                return False
            raise
        if statement.text.startswith("CREATE KEYSPACE"):
            await driver.use(driver.address.keyspace)
    return True


async def _record(driver: CassandraDriver, tables: Sequence[Table]) -> None:
    """Record the tables that exist and that nobody has recorded in all that time; make the others.
    Raises SchemaError for a table that differs from what a store makes.
    """
    records = await kept_records(driver) or {}
    for table in tables:
        missing = _missing_of(table, records.get(table.name))
        if not await _make(driver, missing):
            await driver.say(one(table, ColumnPlace(b"k", "", b"", b"")))
            await driver.say(missing[-1])


async def _check_supported(
    driver: CassandraDriver, tables: Sequence[Table], fence: Fencing
) -> None:
    ((partitioner,),) = await driver.say(
        Cql("SELECT partitioner FROM system.local WHERE key = ?", ("local",))
    )
    for table in tables:
        if table.kind == "ordered" and not partitioner.endswith(_ORDERED):
            raise Unsupported(
                f"the table {table.name!r} is ordered, and this cluster spreads rows by a hash "
                f"({partitioner.rpartition('.')[2]}): declare it with kind='hashed', and do "
                "without scans in the order of keys"
            )
        if table.fenced_by:
            _check_fence(driver, table, fence)
        elif table.writes == "ordered":
            raise Unsupported(
                f"the writes of the table {table.name!r} are ordered, and Cassandra lets the "
                "greater time win, whichever write began first: declare it with writes='clock' if "
                "that will do, fence it by a pool, or keep it in rocksdb:DIRECTORY or columns:URL"
            )


def _check_fence(driver: CassandraDriver, table: Table, fence: Fencing) -> None:
    """Raise Unsupported if this store would not refuse a former owner's writes."""
    told = f"the table {table.name!r} is fenced by the pool {table.fenced_by!r}"
    if fence != "lwt":
        raise Unsupported(
            f"{told}, and Cassandra refuses a former owner's write only by a lightweight "
            "transaction for each write: open the store with fence='lwt', or keep the table in "
            "rocksdb:DIRECTORY"
        )
    if driver.speaks_in_full:
        raise Unsupported(f"{told}, and {driver.address} has no lightweight transactions")
    by_time = [name for name, family in table.families.items() if family.order == "time"]
    if by_time:
        raise Unsupported(
            f"{told}, and its family {by_time[0]!r} is in the order of time: the server draws the "
            "times of lightweight transactions, so declare it by name, or keep the table in "
            "rocksdb:DIRECTORY"
        )


async def _has_keyspace(driver: CassandraDriver) -> bool:
    try:
        await driver.use(driver.address.keyspace)
    except SchemaError:
        return False
    return True


async def _replicas(driver: CassandraDriver) -> int:
    others = await driver.say(Cql("SELECT peer FROM system.peers"))
    return min(1 + len(others), MOST_REPLICAS)


def _as_here(record: TableRecord) -> TableRecord:
    """The record as Cassandra keeps it, also for those that were made before it said how writes are
    ordered: by their clocks, unless leases order them.
    """
    return msgspec.structs.replace(record, writes="ordered" if record.fenced_by else "clock")


async def kept_records(driver: CassandraDriver) -> dict[str, TableRecord] | None:
    """The records of how the tables were made; None if nothing was ever made."""
    try:
        found = await driver.say(read_records())
    except SchemaError:
        return None
    return {name: msgspec.json.decode(record, type=TableRecord) for name, record in found}


def _missing_of(table: Table, kept: TableRecord | None) -> list[Cql]:
    """The statements that make the table, if it is missing. Raises SchemaError if it was made
    differently.
    """
    declared = table.record()
    if kept is None:
        return [make_table(table), keep_record(table.name, _as_text(declared))]
    check_same(table.name, _as_here(kept), _as_here(declared))
    families = {**kept.families, **declared.families}
    if families == kept.families:
        return []
    wider = msgspec.structs.replace(declared, families=families)
    return [keep_record(table.name, _as_text(wider))]


def _as_text(record: TableRecord) -> str:
    return msgspec.json.encode(record).decode()
