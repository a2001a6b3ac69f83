"""The stores that `tenure columns` opens, with their tables, and how users name them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from cyclopts import Parameter

from tenure.base.file_urls import path_in
from tenure.base.names import shown_url
from tenure.cli.waiting import WaitingLine
from tenure.columns.backends.embedded import EmbeddedBackend
from tenure.columns.engines.directory import MARK, read_mark
from tenure.columns.engines.rocksdb import RocksEngine
from tenure.columns.opening import StoreOpening, driver_named, open_store
from tenure.columns.replica import Replica
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Table, table_of
from tenure.errors import ConfigurationError

Json: TypeAlias = Annotated[
    bool, Parameter(name="--json", negative="", help="Print the answer as JSON.")
]
StoreUrl: TypeAlias = Annotated[
    str,
    Parameter(
        help="The store: rocksdb:PATH, columns:URL,URL for nodes, or cassandra:HOST,HOST/KEYSPACE."
    ),
]
Driver = Annotated[
    str | None,
    Parameter(
        env_var="TENURE_CASSANDRA_DRIVER",
        help="Settings for the Cassandra driver, such as passwords and TLS: a dict of arguments "
        "for its Cluster, named as module:name.",
    ),
]


def path_of_url(url: str) -> Path:
    """The directory that a URL names. Raises ConfigurationError for another store."""
    scheme, _, rest = url.partition(":")
    if scheme == "columns":
        raise ConfigurationError(
            f"{shown_url(url)} is a cluster, and this command needs a store in a directory: "
            "rocksdb:PATH. Nodes compact and compare their rows on their own. To keep a copy of "
            f"the rows: tenure columns copy {shown_url(url)[1:-1]} rocksdb:PATH"
        )
    if scheme != "rocksdb" or not rest:
        raise ConfigurationError(
            f"{shown_url(url)} is not a store in a directory: name rocksdb:PATH. Cassandra is "
            "looked after with its own tools, such as nodetool"
        )
    return Path(path_in(url)).expanduser()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[tuple[ColumnStore, EmbeddedBackend]]:
    """A store that is there, with the tables that it has."""
    backend = EmbeddedBackend(_engine_at(url), ())
    store = ColumnStore(backend, {})
    await store.open()
    try:
        records = backend.replica.records
        store.tables = {name: table_of(name, record) for name, record in records.items()}
        yield store, backend
    finally:
        await store.close()


@asynccontextmanager
async def looked_at(url: str) -> AsyncIterator[Replica]:
    """The rows in a directory, also those of a node that does not run: nothing is swept there."""
    engine = await asyncio.to_thread(_engine_at(url))
    try:
        replica = Replica(engine)
        replica.open(())
        yield replica
    finally:
        engine.close()


def _engine_at(url: str) -> Callable[[], RocksEngine]:
    path = path_of_url(url)
    if not path.is_dir():
        raise ConfigurationError(f"there is no store {path}")
    said = read_mark(path)
    return partial(RocksEngine.open, path, Path(said.log) if said.log else None)


def log_of(path: Path) -> Path | None:
    """Return where the store in a directory has its commit log; None if it is in there."""
    if not (path / MARK).exists():
        return None
    said = read_mark(path)
    return Path(said.log) if said.log else None


@asynccontextmanager
async def reached(url: str, driver: str | None) -> AsyncIterator[ColumnStore]:
    """A store in a directory, on nodes or on Cassandra, with the tables that it has."""
    scheme = url.partition(":")[0]
    if scheme not in ("columns", "cassandra"):
        async with opened(url) as (store, _):
            yield store
        return
    async with AsyncExitStack() as stack:
        with WaitingLine(lambda: f"waiting for {url} to answer"):
            opening = open_store(url, driver=_driver_of(scheme, driver))
            store = await stack.enter_async_context(opening)
            records = await store.backend.records()
        store.tables = {name: table_of(name, record) for name, record in records.items()}
        yield store


def _by_clock(table: Table) -> Table:
    return table_of(table.name, msgspec.structs.replace(table.record(), writes="clock"))


def target(url: str, tables: Iterable[Table], driver: str | None) -> StoreOpening:
    """A store to write to. Tables are made where they are missing. Cassandra orders no writes, so
    there they go by their clocks.
    """
    scheme = url.partition(":")[0]
    if scheme == "columns":
        return open_store(url, *tables)
    if scheme == "cassandra":
        by_clock = (each if each.fenced_by else _by_clock(each) for each in tables)
        return open_store(url, *by_clock, create=True, driver=driver_named(driver))
    return open_store(url, *tables, log=log_of(path_of_url(url)))


def _driver_of(scheme: str, place: str | None) -> Mapping[str, Any] | None:
    """The driver's settings, if there is a driver: the environment names them for all commands."""
    return driver_named(place) if scheme == "cassandra" else None


def table_named(store: ColumnStore, name: str) -> Table:
    """The table of that name."""
    return store.tables.get(name) or no_table(name, store.tables)


def no_table(name: str, known: Iterable[str]) -> Table:
    raise ConfigurationError(f"there is no table {name!r}; there are: {', '.join(known) or 'none'}")
