"""A journal in etcd: several managers on several hosts share it, and it outlives any minority.

Etcd is our Paxos group (Centrifuge 2.1.1 has its own). No safety rests on its
leases: they have been revoked early, and their time begins anew when etcd changes its leader (rule
P20). The seat is a few keys that change by compare-and-set only, and each write compares them.

Nothing is asked of etcd before the first call, so a manager starts, and waits, also while etcd is
down. Calls that concern the seat are carried out in the order made, and so are appends, and so are
compactions; but a beat does not wait behind an append, nor an append behind a snapshot of many
pieces. Each is guarded by itself, so nothing depends on their order.
"""

import asyncio

from tenure.errors import JournalError
from tenure.journals.contract import FATAL, Beginning, Tail, WholeLog, check_campaign
from tenure.journals.etcd.gateway import Gateway
from tenure.journals.etcd.health import EtcdHealth, health
from tenure.journals.etcd.log import load, load_after
from tenure.journals.etcd.restore import restore
from tenure.journals.etcd.store import EtcdStore
from tenure.journals.etcd.url import EtcdOptions, parse_etcd_url
from tenure.journals.etcd.values import to_json
from tenure.journals.etcd.wire import put, value_is
from tenure.journals.etcd.writes import AppendCall, compact
from tenure.protocol.lease.records import AnyRecord, State
from tenure.protocol.log.journal import AppendResult, Seat, Unknown
from tenure.wire.journal_codec import encode_record


class EtcdJournal:
    """A `Journal` in etcd, for one event loop."""

    def __init__(self, options: EtcdOptions, *, makes: bool = True) -> None:
        """With `makes` a missing journal is begun.

        Raises ConfigurationError for certificates that cannot be used.
        """
        self.options = options
        self._gateway = Gateway(options)
        self._store = EtcdStore(self._gateway, options.prefix, makes=makes)
        self._seat_turn = asyncio.Lock()
        self._append_turn = asyncio.Lock()
        self._compact_turn = asyncio.Lock()

    @classmethod
    def open(cls, url: str, *, makes: bool = True) -> "EtcdJournal":
        """The journal that `url` names. Raises ConfigurationError; asks etcd nothing yet."""
        return cls(parse_etcd_url(url), makes=makes)

    async def read_seat(self) -> Seat:
        """See `Journal.read_seat`."""
        async with self._seat_turn:
            return (await self._store.front()).seat

    async def campaign(self, seen: Seat, taken: Seat) -> bool:
        """See `Journal.campaign`."""
        check_campaign(seen, taken)
        keys = self._store.keys
        async with self._seat_turn:
            refused = await self._store.write(
                [value_is(key, value) for key, value in keys.seat_values(seen).items()],
                [put(key, value) for key, value in keys.seat_values(taken).items()],
                repeatable=False,  # a second one would find the seat as the first one left it
            )
        return refused is None

    async def beat(self, leadership: int, beat: int) -> bool:
        """See `Journal.beat`."""
        store = self._store
        async with self._seat_turn:
            beaten = [put(store.keys.beat, to_json(beat))]
            return await store.write(store.leads(leadership), beaten) is None

    async def resign(self, leadership: int) -> None:
        """See `Journal.resign`."""
        store = self._store
        async with self._seat_turn:
            await store.write(store.leads(leadership), [put(store.keys.manager, to_json(""))])

    async def load(self) -> WholeLog:
        """See `Journal.load`."""
        return await load(self._store)

    async def load_after(self, journal: int, lsn: int) -> WholeLog | Tail:
        """See `Journal.load_after`."""
        return await load_after(self._store, journal, lsn)

    async def append(
        self, leadership: int, after_lsn: int, records: tuple[AnyRecord, ...]
    ) -> AppendResult:
        """See `Journal.append`."""
        encoded = [encode_record(record) for record in records]
        async with self._append_turn:
            try:
                return await AppendCall(self._store, leadership, after_lsn, encoded)()
            except FATAL:
                raise
            except JournalError as error:
                return Unknown(str(error))

    async def compact(self, leadership: int, lsn: int, state: State) -> bool:
        """See `Journal.compact`."""
        async with self._compact_turn:
            return await compact(self._store, leadership, lsn, state)

    async def restore(self, seen: Seat, lsn: int, beginning: Beginning) -> bool:
        """See `Restorable.restore`."""
        async with self._seat_turn, self._append_turn, self._compact_turn:
            return await restore(self._store, seen, lsn, beginning)

    async def health(self) -> EtcdHealth:
        """How etcd's members are."""
        return await health(self._gateway)

    async def close(self) -> None:
        """Let go of etcd. What is under way is not finished; a second close does nothing."""
        await self._gateway.close()
