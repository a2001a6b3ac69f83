"""`open_store`: a store by its URL."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from tenure.base.names import shown
from tenure.columns.backends.contract import Backend
from tenure.columns.backends.embedded import EmbeddedBackend, Sync
from tenure.columns.blocking import BlockingStore
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Table, by_name
from tenure.errors import ClosedError, ConfigurationError


class StoreOpening:
    """What `open_store` returns: enter it with `async with`, or `with`; once."""

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

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._entered.close()

    def __enter__(self) -> BlockingStore:
        self._blocking = BlockingStore(self._take())
        self._blocking.open()
        return self._blocking

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._blocking.close()


def open_store(
    url: str,
    *tables: Table,
    sync: Sync = "normal",
    create: bool = False,
    options: Mapping[str, Any] | None = None,
) -> StoreOpening:
    """The store that `url` names, with these tables: enter it with `async with`, or `with`.

    `memory:` is gone with the process. `cassandra:HOST,HOST/KEYSPACE` is an Apache Cassandra or
    ScyllaDB: with `create` what is missing there is made, and `options` are those of its driver's
    `Cluster`, such as `auth_provider` and `ssl_context`.

    With `sync="fast"` a write is answered before the disk has it, and the disk has it a second
    later at the latest.

    Raises ConfigurationError for another URL, and SchemaError for tables that do not fit together;
    entering raises SchemaError where a table was made otherwise, and StoreError where the store
    cannot be used.
    """
    declared = by_name(tables)
    if not isinstance(url, str):
        raise ConfigurationError(f"the URL of a store is a str, not {shown(url)}")
    if sync not in ("normal", "fast"):
        raise ConfigurationError(f"sync is 'normal' or 'fast', not {shown(sync)}")
    return StoreOpening(ColumnStore(_backend(url, tables, sync, create, options), declared))


def _backend(
    url: str,
    tables: tuple[Table, ...],
    sync: Sync,
    create: bool,  # noqa: FBT001 - as it was given
    options: Mapping[str, Any] | None,
) -> Backend:
    scheme, _, rest = url.partition(":")
    if scheme == "cassandra":
        return _cassandra(url, tables, create, options or {})
    if create or options:
        raise ConfigurationError(
            f"create and options are for cassandra:HOST,HOST/KEYSPACE, not for {shown(url)}: leave "
            "them out"
        )
    if scheme == "memory" and not rest:
        return EmbeddedBackend(MemoryEngine, tables, sync)
    raise ConfigurationError(
        f"no store is called {shown(url)}: it is memory:, which is gone with its process"
    )


def _cassandra(
    url: str,
    tables: tuple[Table, ...],
    create: bool,  # noqa: FBT001 - as it was given
    options: Mapping[str, Any],
) -> Backend:
    try:
        import cassandra  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        raise ConfigurationError(
            "a store on Cassandra needs its driver, which is not installed: "
            "pip install 'tenure[cassandra]'"
        ) from error
    from tenure.columns.backends.cassandra.address import parse_address  # noqa: PLC0415 - needs it
    from tenure.columns.backends.cassandra.backend import CassandraBackend  # noqa: PLC0415 - as above

    return CassandraBackend(parse_address(url), tables, create=create, options=options)
