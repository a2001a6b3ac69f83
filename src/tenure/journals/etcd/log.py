"""Reading the log of an etcd journal back, all at one revision.

Etcd keeps, for a while, what every key held at every revision. The first read says which revision
it is of; whatever else is read then is read as of that revision, however often the log is appended
to, compacted or swept in the meantime. If etcd forgets the revision before all is read, the reading
begins anew.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from tenure.errors import JournalError
from tenure.journals.contract import Tail, WholeLog, went_back
from tenure.journals.etcd.errors import RevisionCompacted
from tenure.journals.etcd.store import ATTEMPTS, EtcdStore
from tenure.journals.etcd.values import (
    AppendValue,
    Head,
    damaged,
    opened,
    unpacked,
)
from tenure.journals.etcd.wire import KeyValue
from tenure.protocol.lease.records import AnyRecord, State
from tenure.wire.journal_codec import decode_record, decode_state

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


async def load(store: EtcdStore) -> WholeLog:
    """All that was committed, as it is at one revision."""
    found, _ = await catch_up(store, None)
    assert isinstance(found, WholeLog)
    return found


async def load_after(store: EtcdStore, journal: int, lsn: int) -> WholeLog | Tail:
    """See `Journal.load_after`."""
    known = (await store.identity()).journal == journal
    found, _ = await catch_up(store, lsn if known else None)
    return found


async def catch_up(store: EtcdStore, after_lsn: int | None) -> tuple[WholeLog | Tail, int]:
    """What comes after an LSN, and as of which revision; all, where a snapshot has replaced it.

    Raises JournalWentBack where the log ends before `after_lsn`.
    """
    for _ in range(ATTEMPTS):
        try:
            return await _catch_up(store, after_lsn)
        except RevisionCompacted:
            continue
    raise JournalError(
        f"etcd forgot what was being read of the journal, {ATTEMPTS} times in a row: compact etcd "
        "less often, or keep more (--auto-compaction-retention=1h)"
    )


async def _catch_up(store: EtcdStore, after_lsn: int | None) -> tuple[WholeLog | Tail, int]:
    front = await store.front()
    head, end, revision = front.head, front.end, front.revision
    if after_lsn is not None and after_lsn > end:
        raise went_back(after_lsn, end)
    if after_lsn is not None and after_lsn >= head.lsn:
        return Tail(after_lsn, await _records(store, after_lsn, end, revision)), revision
    records = await _records(store, head.lsn, end, revision)
    state = await _state(store, head, revision)
    identity = await store.identity()
    return WholeLog(identity.journal, state, head.lsn, records), revision


async def _records(store: EtcdStore, lsn: int, end: int, revision: int) -> tuple[AnyRecord, ...]:
    """The records after `lsn`, which there must be up to `end`."""
    numbered = await read_numbered(store, lsn, end, revision) if lsn < end else []
    return await asyncio.to_thread(_in_order, numbered, lsn, end)


async def read_numbered(store: EtcdStore, lsn: int, up_to: int, revision: int) -> list[Numbered]:
    """The records after `lsn`, as they were at a revision, up to a LSN at least.

    The first may be of before, where one append wrote them.
    """
    kvs: list[KeyValue] = []
    next_key, limit, is_more = store.keys.record(lsn + 1), _PAGE_KEYS, True
    while is_more:
        page = await store.range_at(revision, next_key, store.keys.after_records, limit)
        kvs += page.kvs
        is_more = page.more and store.keys.lsn_of(kvs[-1].key) < up_to
        next_key = kvs[-1].key + b"\0" if is_more else b""
        if sum(len(kv.value) for kv in page.kvs) < _PAGE_BYTES // 2:
            limit = min(2 * limit, _MOST_PAGE_KEYS)
    return await read_appends(store, kvs, revision)


async def read_appends(store: EtcdStore, kvs: Sequence[KeyValue], revision: int) -> list[Numbered]:
    """The records of these appends. Raises JournalDamaged, RevisionCompacted."""
    numbered: list[Numbered] = []
    for kv in kvs:
        value = opened(kv.key, kv.value, AppendValue)
        body = value.body
        if value.pieces is not None:
            body = await store.read_pieces(value.pieces, revision)
        first = store.keys.lsn_of(kv.key) - value.count + 1
        for lsn, data in enumerate(unpacked(kv.key, body, value.count), first):
            numbered.append(Numbered(lsn, value.leadership, data))
    return numbered


def records_after(numbered: Sequence[Numbered], lsn: int) -> Iterator[AnyRecord]:
    """The records after `lsn`; an append may begin before it. Raises JournalDamaged for a gap."""
    for each in numbered:
        if each.lsn <= lsn:
            continue
        if each.lsn != lsn + 1:
            raise damaged(b"records", f"after LSN {lsn} comes {each.lsn}")
        lsn = each.lsn
        yield decode_record(each.data, f"LSN {lsn} of the journal in etcd")


def _in_order(numbered: list[Numbered], state_lsn: int, end: int) -> tuple[AnyRecord, ...]:
    records = tuple(records_after(numbered, state_lsn))
    if state_lsn + len(records) != end:
        raise damaged(b"front/end", f"it says {end}, the last record is {state_lsn + len(records)}")
    return records


async def _state(store: EtcdStore, head: Head, revision: int) -> State:
    if head.pieces is None:
        return State()
    data = await store.read_pieces(head.pieces, revision)
    where = f"the snapshot of LSN {head.lsn} in etcd"
    return await asyncio.to_thread(decode_state, data, where)
