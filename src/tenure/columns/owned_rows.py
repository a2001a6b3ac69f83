"""`OwnedRows`: rows that only the holder of a lease changes, in memory and in the store.

    rooms = Table("rooms", fenced_by="rooms", state=Family(columns=str))
    kept = OwnedRows(store, rooms)
    async with owner.guard("room-42") as lease:
        room = await kept.load(lease, "room-42")
        await room.insert({"state": {"topic": b"tea"}})

Loading *adopts* the row: the store promises to refuse every lower lease number from then on,
durably, and only then is the row read. So whatever a former owner still sends is refused, and the
row stays what was read until this owner changes it (D6). No clock is involved.

Memory must not differ from the store. So a row has one write under way at a time, and the write is
applied in memory when the store has it. A write whose outcome nobody knows, because it was
cancelled or the disk did not answer, is repeated before anything else is written (R22).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Protocol
from weakref import WeakValueDictionary

from tenure.base.keys import hashed_key, ordered_key
from tenure.base.names import shown
from tenure.columns.backends.contract import pages_of_family
from tenure.columns.paths import edits_of, key_of, path_of
from tenure.columns.requests import RowMutation
from tenure.columns.results import Page, SuperColumn, column_of, page_of
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Table
from tenure.columns.writes import RowWrite, outranking
from tenure.errors import ConfigurationError, Fenced, Full, LeaseLost
from tenure.protocol.replication.messages import ReadRow
from tenure.protocol.replication.row.admission import Outranked
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.limits import PAGE_COLUMNS
from tenure.protocol.replication.row.memory_row import MemoryRow
from tenure.protocol.replication.row.pages import CellPage
from tenure.protocol.replication.row.versions import Version

ROW_BYTES = 16 << 20
"""The most bytes of a row, because a row is in memory whole. Larger data belongs in another table,
under keys of its own.
"""
ROWS = 10_000
"""How many rows are kept in memory by default."""


class HeldLease(Protocol):
    """The part of a lease that a row needs; that of `owner.check` or `owner.guard` has it."""

    @property
    def key(self) -> bytes:
        """The key in the pool's key space."""
        ...

    @property
    def number(self) -> int:
        """The lease number."""
        ...

    @property
    def journal(self) -> int:
        """The identity of the journal from which the number is."""
        ...

    @property
    def pool(self) -> str:
        """The pool's name."""
        ...


class OwnedRows:
    """The rows of a table that is `fenced_by` a pool, for owners of that pool.

    At most `limit` rows are kept in memory. Raises ConfigurationError for a table without a fence.
    """

    def __init__(self, store: ColumnStore, table: Table, *, limit: int = ROWS) -> None:
        if not isinstance(store, ColumnStore):
            raise ConfigurationError(
                f"OwnedRows take a store that was entered with `async with`, not {shown(store)}; "
                "with `with` there are BlockingOwnedRows"
            )
        if not isinstance(table, Table):
            raise ConfigurationError(f"{shown(table)} is not a Table")
        if not table.fenced_by:
            raise ConfigurationError(
                f"the table {table.name!r} is not fenced: declare it with fenced_by=POOL, or use "
                "the store itself"
            )
        if type(limit) is not int or limit < 1:
            raise ConfigurationError(f"limit is a number of rows, not {shown(limit)}")
        self._store = store
        self._table = table
        self._limit = limit
        self._alive: WeakValueDictionary[bytes, OwnedRow] = WeakValueDictionary()
        """Includes rows that were dropped but that somebody still has, so that each row exists
        once.
        """
        self._recent: OrderedDict[bytes, OwnedRow] = OrderedDict()

    async def load(self, lease: HeldLease, key: str | bytes | int) -> "OwnedRow":
        """The row of `key`, adopted under `lease`: once for each lease number.

        Raises LeaseLost if a newer owner of the key has been here, Full for a row that is larger
        than 16 MiB, and ConfigurationError for the lease of another key or pool.
        """
        encoded = key_of(self._table, key)
        self._check(lease, key)
        row = self._alive.get(encoded)
        if row is None or (row.number, row.journal) != (lease.number, lease.journal):
            row = self._alive[encoded] = OwnedRow(self._store, self._table, encoded, lease)
        await row.adopt()
        self._recent[encoded] = row
        self._recent.move_to_end(encoded)
        while len(self._recent) > self._limit:
            self._recent.popitem(last=False)
        return row

    def _check(self, lease: HeldLease, key: str | bytes | int) -> None:
        if not all(hasattr(lease, each) for each in ("key", "number", "journal", "pool")):
            raise ConfigurationError(
                f"load takes the lease of owner.guard or owner.check, not {shown(lease)}; check "
                "returns None where this process does not own the key"
            )
        for what, given in (("number", lease.number), ("journal", lease.journal)):
            if type(given) is not int or not 0 < given < 1 << 63:  # it would be kept with the row
                raise ConfigurationError(
                    f"the {what} of a lease is a number from 1, of 63 bits, not {shown(given)}: "
                    "pass the lease as owner.guard or owner.check returned it"
                )
        if lease.pool != self._table.fenced_by:
            raise ConfigurationError(
                f"the lease is of the pool {lease.pool!r}, and the table {self._table.name!r} is "
                f"fenced by {self._table.fenced_by!r}"
            )
        forms = [hashed_key(key)] if isinstance(key, int) else [hashed_key(key), ordered_key(key)]
        if lease.key not in forms:
            raise ConfigurationError(
                f"the lease is of another key than {shown(key)}: pass the key that was checked"
            )


class OwnedRow:
    """One row under one lease. Reading it sends no requests."""

    def __init__(self, store: ColumnStore, table: Table, key: bytes, lease: HeldLease) -> None:
        self.number = lease.number
        self.journal = lease.journal
        self._store = store
        self._table = table
        self._key = key
        self._memory: MemoryRow | None = None
        self._newest = 0
        """The time of the newest version that the row has."""
        self._turn = asyncio.Lock()
        self._unknown: RowWrite | None = None

    # --- for the application ---

    def get(self, *path: object) -> Any:  # noqa: ANN401 - what the path names
        """What is at a path: a Column or None; a Page of columns, or of super columns; without a
        path a Page for each family.
        """
        memory = self._loaded
        place = path_of(self._table, path)
        if place.shape is None:
            return {name: self.get(name) for name in self._table.families}
        shape, family = place.shape, self._table.families[place.shape.name]
        if place.name is not None:
            cell = memory.column(shape.name, place.super, place.name)
            return None if cell is None else column_of(family, cell)

        def columns(super_column: bytes | None) -> Page:
            return page_of(family, CellPage(tuple(memory.columns(shape.name, super_column))))

        if family.supers is None or place.super is not None:
            return columns(place.super)
        names = memory.supers(shape.name)
        decode = family.supers.decode
        return Page(tuple(SuperColumn(decode(name), columns(name).columns) for name in names))

    async def insert(self, mutation: Mapping[str, Any]) -> Version:
        """Write a row mutation, as `ColumnStore.insert`. It is in memory when the store has it.

        Raises LeaseLost if a newer owner of the key has been here: nothing was written. Raises
        Full, before anything is sent, if the row would become larger than 16 MiB.
        """
        return await self._write(edits_of(self._table, mutation))

    async def delete(self, *path: object) -> Version:
        """Delete what a path names, as `ColumnStore.delete`; raises as `insert`."""
        return await self._write([path_of(self._table, path).edit()])

    # --- inside ---

    @property
    def _loaded(self) -> MemoryRow:
        assert self._memory is not None, "load returns it when it is adopted"
        return self._memory

    async def adopt(self) -> None:
        """Promise and read, unless that was done already."""
        async with self._turn:
            if self._memory is not None:
                return
            adopted = await self._store.backend.adopt(
                self._table, self._key, self.number, self.journal
            )
            if isinstance(adopted, Outranked):
                raise LeaseLost(
                    f"a newer owner of the key has been here: {outranking(adopted, self.number)}. "
                    "If the managers lost their journal, run: tenure columns refence"
                )
            self._newest = adopted.time
            self._memory = await self._read()

    async def _read(self) -> MemoryRow:
        memory = MemoryRow(self._table.shapes)
        whole = ReadRow(table=self._table.name, key=self._key, within=PAGE_COLUMNS)
        for shape in self._table.shapes.values():
            async for inner, page in pages_of_family(self._store.backend, whole, shape):
                for cell in page.cells:
                    memory.put(shape.name, inner, cell)
                self._check_size(memory.size)
        return memory

    def _check_size(self, size: int) -> None:
        if size > ROW_BYTES:
            raise Full(
                f"the row has {size} bytes; an owned row has at most {ROW_BYTES}, because memory "
                "holds all of it: keep large values in another table"
            )

    async def _write(self, edits: list[Edit]) -> Version:
        async with self._turn:
            if self._unknown is not None:
                await self._send(self._unknown)
            self._check_size(self._loaded.size + sum(each.size for each in edits))
            mutation = RowMutation(
                self._table,
                self._key,
                edits,
                number=self.number,
                journal=self.journal,
                above=self._newest,  # seals go by time: a delete must be above all that it hides
            )
            return await self._send(self._store.write(mutation))

    async def _send(self, write: RowWrite) -> Version:
        """Send the write. Until the store has reported its outcome, no other write is sent."""
        self._unknown = write
        try:
            version = await write.repeat()
        except Fenced as error:
            raise LeaseLost(f"a newer owner of the key has been here: {error}") from error
        self._unknown = None
        self._newest = version.time
        self._loaded.apply(version, write.mutation.edits)
        return version
