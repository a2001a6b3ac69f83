"""Entities in the store of rows and columns: in a directory, on nodes of ours, or on Cassandra.

Each entity is one row of a table that is fenced by the pool. A commit is one mutation of that row,
so it is kept whole or not at all, and replicas refuse it once a later lease has loaded the entity.

A mutation of which nobody knows whether it was kept might still arrive when the row was read again.
So the next load writes what it has read over everything that the mutation would have changed,
before anybody is told what it has read: then the mutation counts, or never will.

When many items of collections are in a row, `ItemRows` copies them. To forget collections, a commit
marks them in the row, since what was copied is not in the row: then the copies go, then the marks.
A load that finds marks goes on with that first.
"""

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
from xxhash import xxh3_64_hexdigest

from tenure.base.keys import PoolKind
from tenure.base.ranges import KeyRange
from tenure.client.lease import Lease
from tenure.columns.backends.embedded import EmbeddedBackend
from tenure.columns.opening import StoreOpening, driver_named, open_store
from tenure.columns.requests import RowMutation
from tenure.columns.results import Page, Row
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tenure.columns.writes import NOTHING_SENT, RowWrite, outranking
from tenure.errors import (
    ConfigurationError,
    Fenced,
    SchemaError,
    StoreFailed,
    StoreInUse,
    TenureError,
    UsageError,
)
from tenure.fencing.fenced_rows import EmptyRow, KeptOf, Key, StoredKeys
from tenure.fencing.store_health import StoreHealth
from tenure.protocol.entity.envelope import Envelope
from tenure.protocol.entity.envelope_columns import (
    FAMILIES,
    HEAD,
    ITEMS,
    STATE,
    VERSION,
    Column,
    changed_columns,
    envelope_of,
    item_column,
)
from tenure.protocol.entity.items import GONE, FoundItems, ItemSpan, ItemTable
from tenure.protocol.replication.messages import ReadRows
from tenure.protocol.replication.row.admission import Outranked
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.limits import PAGE_COLUMNS
from tenure.protocol.replication.row.pages import Slice
from tenure.stores import item_rows
from tenure.stores.alarm_index import FAMILY, AlarmIndex
from tenure.stores.item_rows import ItemRows
from tenure.stores.journal_epochs import JournalEpochs

ABOUT = b"pool"
"""The row of the index that says whose entities these are."""
LOOK = b"look"
"""A column there that is written to see whether anything can be."""
SHOWN_OF_POOL = 15
KEYS_AT_ONCE = 100
MOST_COPIED = 256
"""Of how many rows it is remembered what was copied; the items of others are copied once more."""
_encode = msgspec.msgpack.Encoder().encode
_key: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder()


class Unsettled(NamedTuple):
    """A write of which nobody knows whether it was kept."""

    lease: tuple[int, int]
    write: RowWrite
    columns: set[Column]
    """The columns that this write, and others before it, would have changed."""


class ColumnEntityStore:
    """The entities of one pool, as an `EntityStore`, at any URL that `open_store` takes."""

    def __init__(self, url: str, pool: str, kind: PoolKind, state: str | None = None) -> None:
        self._url = url
        self._of = KeptOf(pool, state)
        self._about = f"{kind}, layout {VERSION}".encode()
        self._rows, index, items = tables_of(pool, state, is_by_clock=url.startswith("cassandra:"))
        self.index = AlarmIndex(index, kind)
        self.items = ItemRows(items)
        self._copied: dict[bytes, Envelope] = {}
        """What the next commit of these rows may leave out of them. Some never have another."""
        self._health = StoreHealth(pool, url)
        self._unsettled: dict[bytes, Unsettled] = {}
        self._opening: StoreOpening | None = None
        self._store: ColumnStore
        self._epochs: JournalEpochs | None = None
        """The order of journals, where no other process can have the store."""

    @property
    def is_away(self) -> bool:
        """Whether a request failed, and none was answered since."""
        return self._health.is_away

    # --- opening ---

    async def open(self) -> None:
        """Open the store, and make the pool's tables where they are missing. Raises as
        `EntityStore.open` does.
        """
        opening = opening_of(self._url, self._rows, self.index.table, self.items.table)
        try:
            self._store = self.index.store = self.items.store = await opening.__aenter__()
            self._opening = opening
            await self._check_pool()
            if isinstance(self._store.backend, EmbeddedBackend):
                self._epochs = JournalEpochs(self._store, self.index.table)
                await self._epochs.read()
        except StoreInUse as error:
            raise ConfigurationError(
                f"{self._url} is open already, and one process has a directory at a time: for "
                'several processes let nodes have the rows, with store="columns:URL,URL", or use '
                f'"sqlite:FILE" on one host ({error})'
            ) from None
        except SchemaError as error:
            raise ConfigurationError(
                f"the store {self._url} cannot keep {self._of}: {error}"
            ) from None
        except UsageError:
            raise
        except TenureError as error:
            raise self._health.not_opened(error) from error

    async def _check_pool(self) -> None:
        """Raise ConfigurationError for entities of a pool of another kind, whose alarms would not
        be found, or in another layout.
        """
        table = self.index.table
        found = await self._store.get(table, ABOUT, FAMILY, ABOUT)
        if found is None:
            await self._store.insert(table, ABOUT, {FAMILY: {ABOUT: self._about}})
        elif found.value != self._about:
            raise ConfigurationError(
                f"the store {self._url} has {self._of}, which is "
                f"{found.value.decode()}, and cannot keep those of one that is "
                f"{self._about.decode()}: give the pool another name, or another store"
            )

    async def close(self) -> None:
        """Wait for no node, and leave the index to be tidied by others."""
        await self.index.close()
        opening, self._opening = self._opening, None
        if opening is not None:
            await opening.__aexit__(None, None, None)

    # --- rows ---

    async def look(self, key: Key, /) -> None:
        """Read one column of the key's row, as other rows are on other nodes, and write one of the
        pool's: disks that are full are read as ever. Raises StoreAway.
        """
        try:
            await self._store.get(self._rows, _encode(key), STATE, HEAD)
            await self._store.insert(self.index.table, ABOUT, {FAMILY: {LOOK: b""}})
        except TenureError as error:
            raise self._health.away(error) from error
        self._health.answered()

    async def load(self, key: Key, lease: Lease) -> Envelope:
        """Adopt the row under `lease`, and then read it. Raises as `EntityStore.load` does."""
        self._copied.pop(_encode(key), None)  # somebody else may have had it since
        try:
            step, columns = await self._adopt(_encode(key), lease)
            if marks := [each for each in columns if _is_mark(each)]:
                columns = {each: data for each, data in columns.items() if each not in marks}
                step = await self._write(_encode(key), lease, dict.fromkeys(marks, GONE), step)
                step = await self._clear(key, lease, marks, step)
        except Fenced:
            raise
        except TenureError as error:
            raise self._health.away(error) from error
        self._health.answered()
        try:
            found = envelope_of(columns, step)
        except ValueError as error:
            raise StoreFailed(f"the stored state of {key!r:.100} cannot be read: {error}") from None
        self.index.loaded(key, found)
        return found

    async def _adopt(self, key: bytes, lease: Lease) -> tuple[int, dict[Column, bytes]]:
        number = await self._number_of(lease)
        adopted = await self._store.backend.adopt(self._rows, key, number, lease.journal)
        if isinstance(adopted, Outranked):
            raise self._outranked(lease, adopted, number)
        unsettled = self._unsettled.pop(key, None)
        if unsettled is None or unsettled.lease != (lease.number, lease.journal):
            return adopted.time, (await self._read(key))[0]  # the fence keeps out what is late
        self._unsettled[key] = unsettled
        columns, is_long = await self._read(key)
        if is_long:  # it was read in several steps, and the write may have come between them
            await unsettled.write.repeat()
            columns, _ = await self._read(key)
        over = {each: columns.get(each) for each in unsettled.columns}
        step = await self._write(key, lease, over, adopted.time)
        del self._unsettled[key]
        return step, columns

    def _outranked(self, lease: Lease, adopted: Outranked, number: int) -> Fenced:
        if adopted.journal == lease.journal:
            return Fenced(f"the store has seen a newer owner: {outranking(adopted, number)}")
        return Fenced(
            f"the store {self._url} refuses the lease number {number} of the managers' present "
            f"journal, since it has seen number {adopted.fence} of another one, "
            f"{adopted.journal:016x}. If that one was lost, let the managers go on above: "
            f"tenure columns refence {self._url} {self._rows.name}"
        )

    async def _number_of(self, lease: Lease) -> int:
        """The number of the lease, as the fences of rows have it."""
        return lease.number if self._epochs is None else await self._epochs.number_of(lease)

    async def _read(self, key: bytes) -> tuple[dict[Column, bytes], bool]:
        """The columns of a row, and whether they did not fit into one page."""
        row: Row = await self._store.get(self._rows, key, within=PAGE_COLUMNS)
        columns: dict[Column, bytes] = {}
        is_long = False
        for family, first in row.families.items():
            page: Page = first
            columns |= {(family, each.name): each.value for each in page}
            while page.next is not None:
                is_long = True
                page = await self._store.get(
                    self._rows, key, family, first=PAGE_COLUMNS, next=page.next
                )
                columns |= {(family, each.name): each.value for each in page}
        return columns, is_long

    async def save(self, key: Key, lease: Lease, stored: Envelope, new: Envelope) -> Envelope:
        """Write the columns that differ, in one mutation, between two writes of the index. Raises
        as `EntityStore.save` does.
        """
        try:
            await self.index.before(key, lease, stored, new)
        except TenureError as error:
            raise self._health.not_sent(error) from error
        new = self._without_copied(_encode(key), new)
        changed = changed_columns(stored, new)
        marks = [_mark(name) for name in stored.collections if name not in new.collections]
        changed |= dict.fromkeys(marks, GONE)
        try:
            step = await self._write(_encode(key), lease, changed, stored.step)
        except NOTHING_SENT as error:
            raise self._health.not_sent(error) from error
        except Fenced:
            raise
        except TenureError as error:
            raise self._health.failed(error) from error
        try:
            if marks:
                step = await self._clear(key, lease, marks, step)
        except TenureError as error:  # the commit is kept: nobody may be told that it was not begun
            raise self._health.failed(error) from error
        self._health.answered()
        self.index.after(key, lease, stored, new)
        kept = msgspec.structs.replace(new, step=step)
        await self._copy(key, kept)
        return kept

    # --- items ---

    async def page(self, key: Key, name: str, span: ItemSpan, most: int, /) -> FoundItems:
        """Read some of the collection's row. Raises StoreAway."""
        try:
            found = await self.items.page(key, name, span, most)
        except TenureError as error:
            raise self._health.away(error) from error
        self._health.answered()
        return found

    async def _copy(self, key: Key, kept: Envelope) -> None:
        """Copy items where there are many. If that fails, the commit is kept all the same, and the
        next one tries again.
        """
        with suppress(TenureError):
            if await self.items.copy(key, kept):
                self._copied[_encode(key)] = kept
                if len(self._copied) > MOST_COPIED:
                    del self._copied[next(iter(self._copied))]

    def _without_copied(self, key: bytes, new: Envelope) -> Envelope:
        copied = self._copied.pop(key, None)
        if copied is None:
            return new
        items = {
            name: ItemTable.of(each).without(copied.items.get(name, {}))
            for name, each in new.items.items()
        }
        return msgspec.structs.replace(new, items=items)

    async def _clear(self, key: Key, lease: Lease, marks: list[Column], time: int) -> int:
        """Drop the copies of collections that are marked, and then the marks. Returns the time of
        the row's version.
        """
        names = [column[:-1].decode() for _, column in marks]
        await self.items.clear(key, names, time)
        return await self._write(_encode(key), lease, dict.fromkeys(marks), time)

    # --- writes ---

    async def _write(
        self, key: bytes, lease: Lease, changed: dict[Column, bytes | None], above: int
    ) -> int:
        """Write the columns as a whole. Returns the time of the version that they have."""
        edits = [Edit(family, None, name, value) for (family, name), value in changed.items()]
        of, number = (lease.number, lease.journal), await self._number_of(lease)
        write = self._store.write(
            RowMutation(self._rows, key, edits, number=number, journal=lease.journal, above=above)
        )
        try:
            return (await write).time
        except (Fenced, *NOTHING_SENT):
            raise
        except BaseException:  # also where it is cancelled
            before = self._unsettled.get(key)
            columns = {*changed}
            if before is not None and before.lease == of:
                columns |= before.columns
            self._unsettled[key] = Unsettled(of, write, columns)
            raise

    async def keys(self, after: bytes, most: int, /) -> StoredKeys:
        """The keys of rows that have columns, in the order of the table. Raises StoreAway."""
        part = Slice(min(most, KEYS_AT_ONCE), after=after or None)
        try:
            found = await self._store.backend.read(
                ReadRows(table=self._rows.name, part=part, within=1)
            )
        except TenureError as error:
            raise self._health.away(error) from error
        self._health.answered()
        return StoredKeys([_key.decode(each.key) for each in found.rows], found.next)

    async def forget(self, _: Iterable[EmptyRow], /) -> None:
        """Do nothing: a row without columns is only its fence, and that must stay."""

    async def due_within(self, ranges: Iterable[KeyRange]) -> list[tuple[Key, float]]:
        """What the index has there, without reading rows. Raises StoreAway."""
        try:
            found = await self.index.within(ranges)
        except TenureError as error:
            raise self._health.away(error) from error
        self._health.answered()
        return found


def column_store(
    url: str, state: str | None = None
) -> Callable[[str, PoolKind], ColumnEntityStore]:
    """A function that makes the store of a pool at this URL. Raises ConfigurationError if it is not
    the URL of a store.
    """
    opening_of(url, *tables_of("a", state, is_by_clock=url.startswith("cassandra:")))
    return lambda pool, kind: ColumnEntityStore(url, pool, kind, state)


def _mark(name: str) -> Column:
    """Says that nothing is left of a collection: no item is at this place."""
    return ITEMS, item_column(name, b"")


def _is_mark(column: Column) -> bool:
    family, name = column
    return family == ITEMS and name.index(b"\0") == len(name) - 1


def tables_of(
    pool: str, state: str | None = None, *, is_by_clock: bool
) -> tuple[Table, Table, Table]:
    """The tables of a pool: its entities, or an OwnedState's values, the index of their alarms, and
    the items that were copied. Cassandra orders no writes, so there those of the index go by the
    clocks.
    """
    # Names of pools have more characters than those of tables, and may be longer.
    shown = re.sub("[^A-Za-z0-9]", "_", pool)[:SHOWN_OF_POOL]
    what = "entities" if state is None else "state"
    name = f"{what}_{shown}_{xxh3_64_hexdigest(KeptOf(pool, state).name.encode())}"
    rows = Table(name, kind="hashed", keys=bytes, fenced_by=pool, **_families(*FAMILIES))
    index = Table(
        f"{name}_alarms",
        kind="hashed",
        keys=bytes,
        writes="clock" if is_by_clock else "ordered",
        **_families(FAMILY),
    )
    items = Table(
        f"{name}_items", kind="hashed", keys=bytes, writes="clock", **_families(item_rows.FAMILY)
    )
    return rows, index, items


def _families(*names: str) -> Any:  # noqa: ANN401  # mypy takes them for the other arguments
    return {name: Family(columns=bytes) for name in names}


def opening_of(url: str, *tables: Table) -> StoreOpening:
    """The opening of the store at this URL. Raises ConfigurationError for what is none."""
    if not url.startswith("cassandra:"):
        return open_store(url, *tables)
    driver = driver_named(os.environ.get("TENURE_CASSANDRA_DRIVER"))
    return open_store(url, *tables, create=True, fence="lwt", driver=driver)
