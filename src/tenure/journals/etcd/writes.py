"""The writes of a leader to an etcd journal: appends, and snapshots that replace records."""

from collections.abc import Sequence

from tenure.errors import JournalError
from tenure.journals.contract import wrong_end
from tenure.journals.etcd.log import Numbered, read_numbered
from tenure.journals.etcd.store import ATTEMPTS, EtcdStore
from tenure.journals.etcd.values import (
    PIECE_BYTES,
    AppendValue,
    Front,
    Head,
    Pieces,
    packed,
    sealed,
    to_json,
)
from tenure.journals.etcd.wire import Op, after_prefix, delete, put, value_is
from tenure.protocol.log.journal import AppendResult, Committed, Deposed, Mandate


class AppendCall:
    """One append: what it wants to write, and where."""

    def __init__(
        self, store: EtcdStore, mandate: Mandate, after_lsn: int, records: Sequence[bytes]
    ) -> None:
        self._store = store
        self._mandate = mandate
        self._after = after_lsn
        self._records = list(records)
        self._lsn = after_lsn + len(records)

    async def __call__(self) -> AppendResult:
        """See `Journal.append`. Raises JournalError if the outcome is not known."""
        if not self._records:
            return await self._write_nothing()
        body = packed(self._records)
        if len(body) <= PIECE_BYTES:
            return await self._commit(
                AppendValue(self._mandate.leadership, len(self._records), body)
            )
        return await self._write_ahead(body)

    async def _write_nothing(self) -> AppendResult:
        front = await self._store.front()
        if not front.leads(self._mandate):
            return Deposed()
        if front.end != self._after:
            raise wrong_end(self._after, front.end, self._mandate.leadership)
        return Committed(self._after)

    async def _write_ahead(self, body: bytes) -> AppendResult:
        store = self._store
        front = await store.front()
        if not front.leads(self._mandate):
            return Deposed()
        if front.end != self._after:  # what was committed must not be written a second time
            return await self._judge(front)
        guard = store.leads(self._mandate)
        pieces = await store.write_pieces(guard, store.keys.parts, self._lsn, body)
        if pieces is None:
            return Deposed()
        return await self._commit(
            AppendValue(self._mandate.leadership, len(self._records), b"", pieces)
        )

    async def _commit(self, value: AppendValue) -> AppendResult:
        store, keys = self._store, self._store.keys
        front = await store.write(
            [
                *store.leads(self._mandate),
                value_is(keys.end, to_json(self._after)),
                *([store.still_there(value.pieces)] if value.pieces else []),
            ],
            [put(keys.record(self._lsn), sealed(value)), put(keys.end, to_json(self._lsn))],
        )
        return Committed(self._lsn) if front is None else await self._judge(front)

    async def _judge(self, front: Front) -> AppendResult:
        """The reason why a write was not done, as of the moment when it was refused."""
        if not front.leads(self._mandate):
            return Deposed()
        if front.end == self._after:
            raise JournalError("the pieces of a large append were swept away: append it again")
        if self._after >= front.head.lsn:
            found = await read_numbered(self._store, self._after, self._lsn, front.revision)
            if self._wanted() == [each for each in found if self._after < each.lsn <= self._lsn]:
                return Committed(self._lsn)
        raise wrong_end(self._after, front.end, self._mandate.leadership)

    def _wanted(self) -> list[Numbered]:
        return [
            Numbered(lsn, self._mandate.leadership, data)
            for lsn, data in enumerate(self._records, self._after + 1)
        ]


async def compact(store: EtcdStore, mandate: Mandate, lsn: int, data: bytes) -> bool:
    for _ in range(ATTEMPTS):
        done = await _compact(store, mandate, lsn, data)
        if done is not None:
            return done
    raise JournalError("the snapshot was swept away before it took effect: compact again")


async def _compact(store: EtcdStore, mandate: Mandate, lsn: int, data: bytes) -> bool | None:
    keys = store.keys
    front = await store.front()
    if not front.leads(mandate):
        return False
    if lsn > front.end:
        raise wrong_end(lsn, front.end, mandate.leadership)
    if lsn <= front.head.lsn:
        return True
    pieces = await store.write_pieces(store.leads(mandate), keys.snapshots, lsn, data)
    if pieces is None:
        return False
    refused = await store.write(
        [
            *store.leads(mandate),
            value_is(keys.head, front.raw_head),
            store.still_there(pieces),
        ],
        [put(keys.head, sealed(Head(lsn, pieces))), *sweep(store, lsn, pieces)],
    )
    return True if refused is None else None  # another was quicker, or leads: look again


def sweep(store: EtcdStore, lsn: int, kept: Pieces) -> list[Op]:
    """Delete what the snapshot of `lsn` replaces, and what was left unfinished."""
    keys = store.keys
    return [
        delete(keys.records, keys.record(lsn + 1)),
        delete(keys.parts, keys.parts + b"%016x" % (lsn + 1)),
        delete(keys.snapshots, kept.place),
        delete(after_prefix(kept.place), after_prefix(keys.snapshots)),
    ]
