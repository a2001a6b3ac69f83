"""`open_store`: a store by its URL."""

import importlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tenure.base.file_urls import path_in
from tenure.base.names import shown, shown_url
from tenure.client.manager_url import check_plain, checked
from tenure.columns.backends.cluster import STORE_ROLE, ClusterBackend
from tenure.columns.backends.contract import Backend, Fencing
from tenure.columns.backends.embedded import EmbeddedBackend, Sync
from tenure.columns.blocking import BlockingStore
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.engines.rocksdb import EngineOptions, RocksEngine
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Table, by_name
from tenure.errors import ClosedError, ConfigurationError
from tenure.transport.credentials import Credentials
from tenure.transport.websocket import WebSocketTransport


class StoreOpening:
    """A store to be entered once, with `async with` or `with`."""

    def __init__(self, store: ColumnStore) -> None:
        self._store: ColumnStore | None = store
        self._entered: ColumnStore
        self._blocking: BlockingStore

    def _take(self) -> ColumnStore:
        if self._store is None:
            raise ClosedError("this store was opened before: call open_store again")
        store, self._store = self._store, None
        return store

    async def __aenter__(self) -> ColumnStore:
        self._entered = self._take()
        await self._entered.open()
        return self._entered

    async def __aexit__(self, *_: object) -> None:
        await self._entered.close()

    def __enter__(self) -> BlockingStore:
        self._blocking = BlockingStore(self._take())
        self._blocking.open()
        return self._blocking

    def __exit__(self, *_: object) -> None:
        self._blocking.close()


def open_store(
    url: str,
    *tables: Table,
    sync: Sync = "normal",
    log: str | Path | None = None,
    options: EngineOptions | None = None,
    create: bool = False,
    fence: Fencing = "",
    driver: Mapping[str, Any] | None = None,
) -> StoreOpening:
    """The store that `url` names, with these tables: enter it with `async with`, or `with`.

    `columns:URL,URL,...` is a cluster of nodes, of which these are some: others are found by them.
    `rocksdb:PATH` is a directory, which is made where it is missing, and which one process has at a
    time; it needs the extra `columns`. `cassandra:HOST,HOST/KEYSPACE` is an Apache Cassandra or
    ScyllaDB; it needs the extra `cassandra`. `memory:` is gone with the process.

    With `sync="fast"` a write is answered before the disk has it, and the disk has it a second
    later at the latest. `log` is a directory for the commit log, best on a disk of its own.
    `options` says how much memory a directory's engine takes. With `create` what is missing in
    Cassandra is made; `driver` are arguments of its driver's `Cluster`, such as `auth_provider` and
    `ssl_context`. Fenced tables need `fence="lwt"` there: each write of them is a lightweight
    transaction.

    Raises ConfigurationError for another URL, and SchemaError for tables that do not fit together;
    entering raises SchemaError where a table was made otherwise, and StoreError where the store
    cannot be used.
    """
    declared = by_name(tables)
    if fence not in ("", "lwt"):
        raise ConfigurationError(f"fence is 'lwt' or nothing, not {shown(fence)}")
    if type(create) is not bool:
        raise ConfigurationError(f"create is True or False, not {shown(create)}")
    if not isinstance(url, str):
        raise ConfigurationError(f"the URL of a store is a str, not {shown(url)}")
    if sync not in ("normal", "fast"):
        raise ConfigurationError(f"sync is 'normal' or 'fast', not {shown(sync)}")
    if log is not None and not isinstance(log, str | Path):
        raise ConfigurationError(f"log is a directory, not {shown(log)}")
    if options is not None and not isinstance(options, EngineOptions):
        raise ConfigurationError(f"options are EngineOptions(...), not {shown(options)}")
    if driver is not None and not isinstance(driver, Mapping):
        raise ConfigurationError(f"driver is a dict of arguments, not {shown(driver)}")
    backend = _backend(url, tables, sync, log, options, create=create, fence=fence, driver=driver)
    return StoreOpening(ColumnStore(backend, declared))


def _backend(
    url: str,
    tables: tuple[Table, ...],
    sync: Sync,
    log: str | Path | None,
    options: EngineOptions | None,
    *,
    create: bool,
    fence: Fencing,
    driver: Mapping[str, Any] | None,
) -> Backend:
    scheme, _, rest = url.partition(":")
    if scheme == "rocksdb" and rest and "\0" not in rest:
        _check_absent("cassandra:HOST,HOST/KEYSPACE", create=create, fence=fence, driver=driver)
        where = None if log is None else Path(log).expanduser()
        make = partial(RocksEngine.open, Path(path_in(url)).expanduser(), where, options)
        return EmbeddedBackend(make, tables, sync)
    _check_absent("rocksdb:PATH", log=log, options=options)
    if scheme == "cassandra":
        return _cassandra(url, tables, driver or {}, create=create, fence=fence)
    _check_absent("cassandra:HOST,HOST/KEYSPACE", create=create, fence=fence, driver=driver)
    if scheme == "columns":
        if sync != "normal":
            raise ConfigurationError("sync is for a store in this process: leave it out")
        return _cluster(rest, tables)
    if scheme == "memory" and not rest:
        return EmbeddedBackend(MemoryEngine, tables, sync)
    raise ConfigurationError(
        f"no store is called {shown_url(url)}: it is rocksdb:PATH, such as "
        "rocksdb:/var/lib/app/mail, columns:http://HOST:PORT,http://HOST:PORT for nodes of ours, "
        "cassandra:HOST,HOST/KEYSPACE, or memory:, which is gone with its process"
    )


def _cluster(nodes: str, tables: tuple[Table, ...]) -> Backend:
    source, example = "the URL of the store", "columns:http://n1:7500,http://n2:7500"
    check_plain(source, nodes, "a node", example)
    urls = [checked(source, node, "a node", example) for node in nodes.split(",")]
    transport = WebSocketTransport(STORE_ROLE, Credentials.from_environment())
    return ClusterBackend(urls, tables, transport)


def _check_absent(where: str, **arguments: object) -> None:
    """Raise ConfigurationError for an argument that only a store of another kind takes."""
    for name, given in arguments.items():
        if given:
            raise ConfigurationError(f"{name} is for a store {where}: leave it out")


def _cassandra(
    url: str, tables: tuple[Table, ...], driver: Mapping[str, Any], *, create: bool, fence: Fencing
) -> Backend:
    try:
        import cassandra  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        raise ConfigurationError(
            "a store on Cassandra needs its driver, which is not installed: "
            "pip install 'tenure[cassandra]'"
        ) from error
    from tenure.columns.backends.cassandra.address import parse_address  # noqa: PLC0415 - as above
    from tenure.columns.backends.cassandra.backend import CassandraBackend  # noqa: PLC0415 - as above

    return CassandraBackend(parse_address(url), tables, create=create, fence=fence, options=driver)


def driver_named(place: str | None) -> Mapping[str, Any] | None:
    """The arguments for Cassandra's driver that a module has, named as module:name."""
    if place is None:
        return None
    module, _, name = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f"there is nothing at {place!r}: {error}") from None
    if not isinstance(found, Mapping):
        raise ConfigurationError(f"{place} is not a dict of arguments for the driver: {found!r}")
    return found
