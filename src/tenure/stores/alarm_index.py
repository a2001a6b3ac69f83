"""The keys of a column store that have alarms, found by range without reading the rows of keys.

An index is another row than the key's, so the two cannot change together. The rule is: *there is
always an entry that is no later than the key's first alarm.* So an entry is written before the
commit that sets an earlier alarm, and moved or removed after the commit that needs it no longer. An
entry too many, which a crash in between leaves, makes its key ring early: the key is looked up, and
the entry goes.

No fence keeps a former owner from the index, because many keys share a row. So each owner has
entries of its own, which carry the lease, and a former owner that wakes up late removes nothing but
its own. The first commit under a new lease makes the new owner's entry, and then the one of the
lease under which the key was kept before is no longer needed.
"""

import asyncio
import logging
import struct
from collections.abc import Iterable, Mapping
from contextvars import Context
from typing import NamedTuple

import msgspec

from tenure.base.keys import PoolKind, key_function
from tenure.base.ranges import KeyRange
from tenure.client.lease import Lease
from tenure.columns.paths import DELETE
from tenure.columns.results import Page
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Table
from tenure.errors import TenureError
from tenure.fencing.fenced_rows import Key, key_of
from tenure.protocol.entity.envelope import Envelope
from tenure.protocol.replication.row.limits import PAGE_COLUMNS
from tenure.protocol.replication.row.names import escaped, unescaped

FAMILY = "due"
BITS = 6
"""The index of a pool has 64 rows, so that the alarms of many keys are written at many nodes, and
an owner that gains everything reads no more than these.
"""
READS_AT_ONCE = 16
_LEASE = struct.Struct(">QQ")
_TIME = struct.Struct(">d")
_encode = msgspec.msgpack.Encoder().encode
logger = logging.getLogger("tenure.entities")


class IndexEntry(NamedTuple):
    key: Key
    number: int
    """The number of the lease under which it was made."""
    journal: int


class AlarmIndex:
    """The index of one pool, as one process uses it."""

    def __init__(self, table: Table, kind: PoolKind) -> None:
        self.table = table
        self.store: ColumnStore
        self._place = key_function(kind)
        self._listed: dict[Key, set[IndexEntry]] = {}
        """What was found of keys that have not been loaded since."""
        self._after: dict[Key, asyncio.Task[None]] = {}
        """What is still to be written after a commit. The next write of the key waits for it, or
        they could pass each other.
        """

    # --- around a commit ---

    async def before(self, key: Key, lease: Lease, stored: Envelope, new: Envelope) -> None:
        """Make sure that the alarms of `new` are found if it is kept."""
        due = new.next_alarm()
        own = stored.next_alarm() if _of(stored) == _of(lease) else None
        if due is None or (own is not None and own <= due):
            return
        if (writing := self._after.get(key)) is not None:
            await asyncio.wait({writing})
        await self._write(IndexEntry(key, *_of(lease)), due)

    def after(self, key: Key, lease: Lease, stored: Envelope, new: Envelope) -> None:
        """Remove what is no longer needed now that `new` is kept, and wait for nothing."""
        had, due = stored.next_alarm(), new.next_alarm()
        if had is None:
            return
        own, before = IndexEntry(key, *_of(lease)), IndexEntry(key, *_of(stored))
        if before != own:
            self._begin(key, {before: None})
        elif due is None or due > had:
            self._begin(key, {own: due})

    def loaded(self, key: Key, found: Envelope) -> None:
        """This is what is kept of the key: remove the entries beside the one that it needs."""
        listed = self._listed.pop(key, set())
        needed = IndexEntry(key, *_of(found)) if found.next_alarm() is not None else None
        gone = dict.fromkeys(listed - {needed})
        if gone:
            self._begin(key, gone)

    def _begin(self, key: Key, changes: Mapping[IndexEntry, float | None]) -> None:
        before = self._after.get(key)

        async def in_order() -> None:
            if before is not None:
                await asyncio.wait({before})
            try:
                for entry, due in changes.items():
                    await self._write(entry, due)
            except TenureError as error:  # an entry too many does no harm
                logger.debug("the alarm index of %.100r is tidied later: %s", key, error)
            finally:
                if self._after.get(key) is task:
                    del self._after[key]

        self._after[key] = task = asyncio.get_running_loop().create_task(
            in_order(), context=Context()
        )

    async def _write(self, entry: IndexEntry, due: float | None) -> None:
        place = self._place(entry.key)
        value: object = DELETE if due is None else _TIME.pack(due)
        name = escaped(place) + _LEASE.pack(entry.journal, entry.number) + _encode(entry.key)
        await self.store.insert(self.table, row_of(_shelf(place)), {FAMILY: {name: value}})

    # --- found by range ---

    async def within(self, ranges: Iterable[KeyRange]) -> list[tuple[Key, float]]:
        """The keys there, and when their first alarms ring, or earlier."""
        at_once = asyncio.Semaphore(READS_AT_ONCE)

        async def read(shelf: int, part: KeyRange) -> list[tuple[IndexEntry, float]]:
            async with at_once:
                return await self._read(shelf, part)

        reads = [read(shelf, part) for part in ranges for shelf in _shelves(part)]
        first: dict[Key, float] = {}
        for found in await asyncio.gather(*reads):
            for entry, due in found:
                self._listed.setdefault(entry.key, set()).add(entry)
                first[entry.key] = min(due, first.get(entry.key, due))
        return [*first.items()]

    async def _read(self, shelf: int, part: KeyRange) -> list[tuple[IndexEntry, float]]:
        start, end = escaped(part.start), None if part.end is None else escaped(part.end)
        found: list[tuple[IndexEntry, float]] = []
        after: bytes | None = None
        while True:
            page: Page = await self.store.get(
                self.table,
                row_of(shelf),
                FAMILY,
                first=PAGE_COLUMNS,
                start=start,
                end=end,
                next=after,
            )
            found += [(_entry(each.name), _TIME.unpack(each.value)[0]) for each in page]
            after = page.next
            if after is None:
                return found

    async def close(self) -> None:
        """Leave what was to be tidied to whoever loads the keys next."""
        tasks = [*self._after.values()]
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def row_of(shelf: int) -> bytes:
    """The key of a row of the index."""
    return b"shelf" + bytes([shelf])


def _of(kept: Envelope | Lease) -> tuple[int, int]:
    return kept.number, kept.journal


def _shelf(place: bytes) -> int:
    return place[0] >> 8 - BITS if place else 0


def _shelves(part: KeyRange) -> range:
    """The rows that have the places of this part."""
    last = (1 << BITS) - 1 if part.end is None else _shelf(part.end)
    return range(_shelf(part.start), last + 1)


def _entry(name: bytes) -> IndexEntry:
    _, at = unescaped(name)
    journal, number = _LEASE.unpack_from(name, at)
    return IndexEntry(key_of(name[at + _LEASE.size :]), number, journal)
