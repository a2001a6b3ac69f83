"""A journal in etcd: several managers on several hosts share it, and it outlives any minority.

Etcd is our Paxos group (Centrifuge 2.1.1 has its own). No safety rests on its leases: etcd has
revoked some early, and their time begins anew when etcd changes its leader (rule P20). The seat is
a few keys that change by compare-and-set only, and each write compares them.

The journal asks nothing of etcd before the first call, so a manager starts, and waits, even while
etcd is down. Calls that concern the seat are carried out in the order made, and so are appends, and
so are compactions; but a beat does not wait behind an append, nor an append behind a snapshot of
many pieces. Each has a guard of its own, so nothing depends on their order.
"""

import asyncio
from typing import Generic

from tenure.errors import JournalError
from tenure.journals.contract import FATAL, Beginning, Tail, WholeLog, check_campaign
from tenure.journals.etcd.gateway import Gateway
from tenure.journals.etcd.health import EtcdHealth, health
from tenure.journals.etcd.log import EtcdLog
from tenure.journals.etcd.restore import restore
from tenure.journals.etcd.store import EtcdStore
from tenure.journals.etcd.url import EtcdOptions, parse_etcd_url
from tenure.journals.etcd.values import to_json
from tenure.journals.etcd.wire import put, value_is
from tenure.journals.etcd.writes import AppendCall, compact
from tenure.protocol.log.journal import AppendResult, Mandate, R, S, Seat, Unknown
from tenure.wire.journal_codec import JournalCodec


class EtcdJournal(Generic[R, S]):
    """A `Journal` in etcd, for one event loop."""

    def __init__(
        self, options: EtcdOptions, codec: JournalCodec[R, S], *, makes: bool = True
    ) -> None:
        """A missing journal is begun if `makes` is given.

        Raises ConfigurationError for certificates that cannot be used.
        """
        self.options = options
        self._codec = codec
        self._gateway = Gateway(options)
        self._store = EtcdStore(self._gateway, options.prefix, makes=makes)
        self._log = EtcdLog(self._store, codec)
        self._seat_turn = asyncio.Lock()
        self._append_turn = asyncio.Lock()
        self._compact_turn = asyncio.Lock()

    @classmethod
    def open(
        cls, url: str, codec: JournalCodec[R, S], *, makes: bool = True
    ) -> "EtcdJournal[R, S]":
        """The journal that `url` names. Raises ConfigurationError; asks etcd nothing yet."""
        return cls(parse_etcd_url(url), codec, makes=makes)

    async def read_seat(self) -> Seat:
        async with self._seat_turn:
            return (await self._store.front()).seat

    async def campaign(self, seen: Seat, taken: Seat) -> Mandate | None:
        check_campaign(seen, taken)
        keys = self._store.keys
        async with self._seat_turn:
            refused = await self._store.write(
                [value_is(key, value) for key, value in keys.seat_values(seen).items()],
                [put(key, value) for key, value in keys.seat_values(taken).items()],
                repeatable=False,  # a second one would find the seat as the first one left it
            )
        journal = (await self._store.identity()).journal
        return Mandate(journal, taken.leadership) if refused is None else None

    async def beat(self, mandate: Mandate, beat: int) -> bool:
        store = self._store
        async with self._seat_turn:
            beaten = [put(store.keys.beat, to_json(beat))]
            return await store.write(store.leads(mandate), beaten) is None

    async def resign(self, mandate: Mandate) -> None:
        store = self._store
        async with self._seat_turn:
            await store.write(store.leads(mandate), [put(store.keys.manager, to_json(""))])

    async def load(self) -> WholeLog[R, S]:
        return await self._log.load()

    async def load_after(self, journal: int, lsn: int) -> WholeLog[R, S] | Tail[R]:
        return await self._log.load_after(journal, lsn)

    async def append(
        self, mandate: Mandate, after_lsn: int, records: tuple[R, ...]
    ) -> AppendResult:
        encoded = [self._codec.encode_record(record) for record in records]
        async with self._append_turn:
            try:
                return await AppendCall(self._store, mandate, after_lsn, encoded)()
            except FATAL:
                raise
            except JournalError as error:
                return Unknown(str(error))

    async def compact(self, mandate: Mandate, lsn: int, state: S) -> bool:
        data = await asyncio.to_thread(self._codec.encode_state, state)
        async with self._compact_turn:
            return await compact(self._store, mandate, lsn, data)

    async def restore(self, seen: Seat, lsn: int, beginning: Beginning[S]) -> bool:
        data = await asyncio.to_thread(self._codec.encode_state, beginning.state)
        identity, seat = beginning.journal, beginning.seat
        async with self._seat_turn, self._append_turn, self._compact_turn:
            return await restore(self._store, seen, lsn, identity, seat, data)

    async def health(self) -> EtcdHealth:
        """How etcd's members are."""
        return await health(self._gateway)

    async def close(self) -> None:
        """Let go of etcd. What is under way is not finished; a second close does nothing."""
        await self._gateway.close()
