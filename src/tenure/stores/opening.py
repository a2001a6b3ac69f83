"""Stores, which keep entities beyond the life of their process: a row for each, fenced by the
number of the lease under which it was loaded or saved last.
"""

import os
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, TypeAlias

from tenure.base.file_urls import path_in
from tenure.base.keys import PoolKind
from tenure.base.names import shown_url
from tenure.base.ranges import KeyRange
from tenure.client.lease import Lease
from tenure.errors import ConfigurationError
from tenure.fencing.fenced_rows import EmptyRow, Key, StoredKeys
from tenure.protocol.entity.envelope import Envelope
from tenure.protocol.entity.items import FoundItems, ItemSpan

KINDS = (
    '"sqlite:FILE", "postgresql://HOST/DATABASE", "rocksdb:DIRECTORY", "columns:URL,URL" or '
    '"cassandra:HOST,HOST/KEYSPACE"'
)

STORE_VARIABLE = "TENURE_STORE"
"""The environment variable that tells of the store that `columns:` alone means."""


class EntityStore(Protocol):
    """The store of one pool's entities."""

    @property
    def is_away(self) -> bool:
        """Whether the store failed the last time that it was asked."""
        ...

    async def open(self) -> None:
        """Create what is missing. Raises ConfigurationError if the store is another pool's, and
        StoreFailed if it cannot be opened.
        """
        ...

    async def close(self) -> None:
        """Let go of everything; a store that hangs is not waited for."""
        ...

    async def look(self, key: Key, /) -> None:
        """Look whether the store answers for this key. Raises StoreAway."""
        ...

    async def load(self, key: Key, lease: Lease) -> Envelope:
        """What is kept of the key; from here on no older lease can change it. Raises Fenced if
        `lease` itself is older, StoreAway if the store cannot be asked, and StoreFailed if what it
        has cannot be read.
        """
        ...

    async def save(self, key: Key, lease: Lease, stored: Envelope, new: Envelope) -> Envelope:
        """Keep `new` in place of `stored`, which is what the store had last, whole or not at all:
        durable when this returns what the store has from here on. Items need not be in that any
        more: then `page` finds them. Raises Fenced, and StoreFailed.
        """
        ...

    async def page(self, key: Key, name: str, span: ItemSpan, most: int, /) -> FoundItems:
        """The first items of a collection of the key in a span, `most` of them at most, without
        those that lie over them in an envelope. Raises StoreAway.
        """
        ...

    async def keys(self, after: bytes, most: int, /) -> StoredKeys:
        """Keys of the pool, `most` of them at most, after the place where a list before ended, or
        from the first on. Raises StoreAway.
        """
        ...

    async def forget(self, rows: Iterable[EmptyRow], /) -> None:
        """Drop the rows of these keys, of which nothing is kept, unless somebody has used them
        since. Raises StoreFailed.
        """
        ...

    async def due_within(self, ranges: Iterable[KeyRange]) -> list[tuple[Key, float]]:
        """The keys with alarms, and when the first of each rings, or earlier. Raises StoreAway."""
        ...


MakeStore: TypeAlias = Callable[[str, PoolKind], Awaitable[EntityStore]]


def store_for(url: str, state: str | None = None) -> MakeStore:
    """A function that opens the store at this URL: for the entities of a pool, or for the values of
    the OwnedState of this name. Raises ConfigurationError if it is not the URL of a store.
    """
    make = _maker(_told(url), state)

    async def opened(pool: str, kind: PoolKind) -> EntityStore:
        store = make(pool, kind)
        try:
            await store.open()
        except BaseException:
            await store.close()
            raise
        return store

    return opened


def _told(url: str) -> str:
    """The URL, in full: `columns:` alone is the store of which this process was told."""
    if url != "columns:":
        return url
    told = os.environ.get(STORE_VARIABLE, "")
    if not told:
        raise ConfigurationError(
            'store="columns:" is the store of which TENURE_STORE tells, and TENURE_STORE is not '
            'set: set it to columns:http://HOST:PORT, or name the nodes in store="columns:URL,URL"'
        )
    return told if told.startswith("columns:") else f"columns:{told}"


def _maker(url: str, state: str | None) -> Callable[[str, PoolKind], EntityStore]:
    # Only who stores loads a driver, or the store of columns.
    if url in ("sqlite::memory:", "memory:"):
        raise ConfigurationError(
            f"store cannot be {url!r}, which each process has for itself and loses: name a file, "
            "or leave out store=, and state moves from process to process"
        )
    is_text = isinstance(url, str) and "\0" not in url
    scheme, _, rest = url.partition(":") if is_text else ("", "", "")
    if scheme in ("columns", "rocksdb", "cassandra") and rest:
        from tenure.stores.column_store import column_store  # noqa: PLC0415  # as above

        return column_store(url, state)
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        from tenure.fencing.databases import PostgresDatabase  # noqa: PLC0415  # as above
        from tenure.stores.sql_store import SqlEntityStore  # noqa: PLC0415  # as above

        postgres = PostgresDatabase(url)
        return lambda pool, kind: SqlEntityStore(postgres, pool, kind, state)
    if scheme == "sqlite" and rest:
        from tenure.fencing.databases import SqliteDatabase  # noqa: PLC0415  # as above
        from tenure.stores.sql_store import SqlEntityStore  # noqa: PLC0415  # as above

        sqlite = SqliteDatabase(path_in(url))
        return lambda pool, kind: SqlEntityStore(sqlite, pool, kind, state)
    raise ConfigurationError(f"store is {KINDS}, not {shown_url(url)}")
