"""Reading the log of an etcd journal back, all at one revision.

Etcd keeps, for a while, what every key held at every revision. The first read says which revision
it is of; all further reads are as of that revision, however often the log is appended to, compacted
or swept in the meantime. If etcd forgets the revision before the reading is complete, it begins
anew.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final, Generic

import msgspec

from tenure.errors import JournalError
from tenure.journals.contract import Tail, WholeLog, went_back
from tenure.journals.etcd.errors import RevisionCompacted
from tenure.journals.etcd.store import ATTEMPTS, EtcdStore
from tenure.journals.etcd.values import AppendValue, Head, damaged, opened, unpacked
from tenure.journals.etcd.wire import KeyValue
from tenure.protocol.log.journal import R, S
from tenure.wire.journal_codec import JournalCodec

_PAGE_KEYS: Final = 16
"""The size of the first page. Most appends are small, so pages grow, up to ..."""
_MOST_PAGE_KEYS: Final = 128
_PAGE_BYTES: Final = 1 << 20
"""A page this large is not made larger."""


class Numbered(msgspec.Struct, frozen=True):
    """The bytes of a record, its LSN, and the leadership that wrote it."""

    lsn: int
    leadership: int
    data: bytes


class EtcdLog(Generic[R, S]):
    """The log as others wrote it, and what its records mean."""

    def __init__(self, store: EtcdStore, codec: JournalCodec[R, S]) -> None:
        self._store = store
        self._codec = codec

    async def load(self) -> WholeLog[R, S]:
        """All that was committed, as it is at one revision."""
        found = await self._read(None)
        assert isinstance(found, WholeLog)
        return found

    async def load_after(self, journal: int, lsn: int) -> WholeLog[R, S] | Tail[R]:
        known = (await self._store.identity()).journal == journal
        return await self._read(lsn if known else None)

    async def _read(self, after_lsn: int | None) -> WholeLog[R, S] | Tail[R]:
        for _ in range(ATTEMPTS):
            try:
                return await self._read_at_once(after_lsn)
            except RevisionCompacted:
                continue
        raise JournalError(
            f"etcd forgot what was being read of the journal, {ATTEMPTS} times in a row: compact "
            "etcd less often, or keep more (--auto-compaction-retention=1h)"
        )

    async def _read_at_once(self, after_lsn: int | None) -> WholeLog[R, S] | Tail[R]:
        """The records after an LSN; the whole log, if a snapshot has replaced some of them."""
        front = await self._store.front()
        head, end, revision = front.head, front.end, front.revision
        if after_lsn is not None and after_lsn > end:
            raise went_back(after_lsn, end)
        if after_lsn is not None and after_lsn >= head.lsn:
            return Tail(after_lsn, await self._records(after_lsn, end, revision))
        records = await self._records(head.lsn, end, revision)
        state = await self._state(head, revision)
        identity = await self._store.identity()
        return WholeLog(identity.journal, state, head.lsn, records)

    async def _records(self, lsn: int, end: int, revision: int) -> tuple[R, ...]:
        """The records after `lsn`, which must exist up to `end`."""
        numbered = await read_numbered(self._store, lsn, end, revision) if lsn < end else []
        return await asyncio.to_thread(self._in_order, numbered, lsn, end)

    def _in_order(self, numbered: list[Numbered], lsn: int, end: int) -> tuple[R, ...]:
        records: list[R] = []
        for each in numbered:
            if each.lsn <= lsn:  # one append wrote it, and what comes after
                continue
            last = lsn + len(records)
            if each.lsn != last + 1:
                raise damaged(b"records", f"after LSN {last} comes {each.lsn}")
            where = f"LSN {each.lsn} of the journal in etcd"
            records.append(self._codec.decode_record(each.data, where))
        if lsn + len(records) != end:
            raise damaged(b"front/end", f"it says {end}, the last record is {lsn + len(records)}")
        return tuple(records)

    async def _state(self, head: Head, revision: int) -> S:
        if head.pieces is None:
            return self._codec.empty
        data = await self._store.read_pieces(head.pieces, revision)
        where = f"the snapshot of LSN {head.lsn} in etcd"
        return await asyncio.to_thread(self._codec.decode_state, data, where)


async def read_numbered(store: EtcdStore, lsn: int, up_to: int, revision: int) -> list[Numbered]:
    """The records after `lsn`, as they were at a revision, up to a LSN at least.

    The first may be older, if one append wrote them. Raises JournalDamaged, RevisionCompacted.
    """
    numbered: list[Numbered] = []
    async for kv in _appends(store, lsn, up_to, revision):
        value = opened(kv.key, kv.value, AppendValue)
        body = value.body
        if value.pieces is not None:
            body = await store.read_pieces(value.pieces, revision)
        first = store.keys.lsn_of(kv.key) - value.count + 1
        for each, data in enumerate(unpacked(kv.key, body, value.count), first):
            numbered.append(Numbered(each, value.leadership, data))
    return numbered


async def _appends(
    store: EtcdStore, lsn: int, up_to: int, revision: int
) -> AsyncIterator[KeyValue]:
    next_key, limit, is_more = store.keys.record(lsn + 1), _PAGE_KEYS, True
    while is_more:
        page = await store.range_at(revision, next_key, store.keys.after_records, limit)
        for kv in page.kvs:
            yield kv
        is_more = page.more and store.keys.lsn_of(page.kvs[-1].key) < up_to
        next_key = page.kvs[-1].key + b"\0" if is_more else b""
        if sum(len(kv.value) for kv in page.kvs) < _PAGE_BYTES // 2:
            limit = min(2 * limit, _MOST_PAGE_KEYS)
