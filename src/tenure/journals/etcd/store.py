"""The transactions of an etcd journal.

A write is one transaction: it compares what its guard says, and writes only if all of that holds.
So nothing depends on when a request arrives, whether it arrives twice, or how long a lease of
etcd's is believed to last (rule P20); there is no lease.

A value that is too large for one request is written ahead, in pieces under a name that nobody has
used; the transaction that counts then puts a reference to them. Until then they are only garbage,
which the next snapshot sweeps away in the very transaction in which it takes effect. Since that
might sweep pieces that another transaction is about to refer to, a transaction with a reference
also compares that its pieces still exist: a piece is never deleted without the others.

Every transaction compares the journal's identity too: if somebody deletes the keys and begins anew,
that is another journal.
"""

import asyncio
import secrets
from collections.abc import Sequence
from typing import Final

import msgspec

from tenure.errors import JournalDamaged
from tenure.journals.contract import draw_identity
from tenure.journals.etcd.gateway import Gateway
from tenure.journals.etcd.values import (
    FORMAT,
    Front,
    Head,
    JournalIdentity,
    Keys,
    Pieces,
    damaged,
    identity_in,
    in_pieces,
    sealed,
    to_json,
)
from tenure.journals.etcd.wire import (
    RANGE,
    TXN,
    Compare,
    Op,
    Range,
    RangeAnswer,
    Txn,
    TxnAnswer,
    after_prefix,
    exists,
    nothing_under,
    put,
    read,
    value_is,
    value_is_not,
)
from tenure.protocol.log.journal import Mandate, Seat

ATTEMPTS: Final = 5
"""How often something is begun anew because somebody was quicker."""

_PIECES_AT_ONCE: Final = 8

_txns = msgspec.json.Decoder(TxnAnswer, strict=False)
_ranges = msgspec.json.Decoder(RangeAnswer, strict=False)


class EtcdStore:
    """The keys of one journal, and transactions on them."""

    def __init__(self, gateway: Gateway, prefix: str, *, makes: bool = True) -> None:
        """Begin a missing journal only with `makes`."""
        self.gateway = gateway
        self._makes = makes
        self.keys = Keys(prefix)
        self._identity: tuple[bytes, JournalIdentity] | None = None
        self._meeting = asyncio.Lock()

    async def identity(self) -> JournalIdentity:
        """The identity of this journal; a missing journal is begun. Raises JournalError."""
        return (await self._known())[1]

    def forget_identity(self) -> None:
        """Forget the journal's identity, because it was made another journal: the next call asks
        for it.
        """
        self._identity = None

    async def write(
        self,
        compare: Sequence[Compare],
        success: Sequence[Op],
        *,
        repeatable: bool = True,
    ) -> Front | None:
        """One transaction on this journal: `success` if all of `compare` holds.

        None where that was written. Otherwise nothing was, and this is the front as it stood at
        that moment. Raises JournalDamaged where this is not the journal that it was.
        """
        raw, _ = await self._known()
        answer = await self._txn(
            [value_is(self.keys.identity, raw), *compare],
            success,
            repeatable=repeatable,
        )
        if answer.succeeded:
            return None
        front = self._front_of(answer)
        self._check(front)
        return front

    async def front(self) -> Front:
        """All that is small and changes. Raises as `write`."""
        await self._known()
        front = await self._front()
        self._check(front)
        return front

    async def range_at(self, revision: int, key: bytes, end: bytes, limit: int = 0) -> RangeAnswer:
        """A range as it was at a revision. Raises RevisionCompacted where that is forgotten."""
        request = Range(key, end, limit, revision)
        return await self.gateway.call(RANGE, request, _ranges, is_large=True)

    def leads(self, mandate: Mandate) -> list[Compare]:
        """The guard: the mandate is of this journal, and has the seat."""
        keys = self.keys
        return [
            value_is(keys.identity, to_json(JournalIdentity(FORMAT, mandate.journal))),
            value_is(keys.leadership, to_json(mandate.leadership)),
            value_is_not(keys.manager, to_json("")),
        ]

    # --- pieces ---

    async def write_pieces(
        self, guard: Sequence[Compare], under: bytes, lsn: int, data: bytes
    ) -> Pieces | None:
        """Write `data` ahead, under a name that is used only once; None if `guard` fails."""
        place = under + b"%016x-%s/" % (lsn, secrets.token_hex(8).encode())
        cut = in_pieces(data)
        for number, piece in enumerate(cut):
            put_piece = put(place + b"%08x" % number, piece)
            # Not repeated: one that arrives late must be of a name that was given up.
            if await self.write(guard, [put_piece], repeatable=False) is not None:
                return None
        return Pieces(place, len(cut), len(data))

    def still_there(self, pieces: Pieces) -> Compare:
        """The condition that nobody has swept the pieces away."""
        return exists(pieces.place + b"%08x" % 0)

    async def read_pieces(self, pieces: Pieces, revision: int) -> bytes:
        """The value that was written in pieces. Raises JournalDamaged, RevisionCompacted."""
        data = bytearray()
        place, end = pieces.place, after_prefix(pieces.place)
        for number in range(0, pieces.count, _PIECES_AT_ONCE):
            start = place + b"%08x" % number
            found = await self.range_at(revision, start, end, _PIECES_AT_ONCE)
            for kv in found.kvs:
                data += kv.value
        if len(data) != pieces.size:
            raise damaged(place, f"{pieces.size} bytes were written, {len(data)} are there")
        return bytes(data)

    # --- the beginning ---

    async def _known(self) -> tuple[bytes, JournalIdentity]:
        if self._identity is None:
            async with self._meeting:
                if self._identity is None:
                    self._identity = await self._meet()
        return self._identity

    async def _meet(self) -> tuple[bytes, JournalIdentity]:
        # Read first: an etcd without space refuses a transaction, whether it writes or not.
        raw = (await self._front()).identity
        if raw is None and not self._makes:
            raise self._none()
        if raw is None:
            raw = await self._begin()
        return raw, identity_in(self.keys.identity, raw)

    async def _front(self) -> Front:
        keys = self.keys
        found = await self.gateway.call(RANGE, Range(keys.front, keys.after_front), _ranges)
        return Front(keys, found, found.header.revision)

    def _front_of(self, answer: TxnAnswer) -> Front:
        return Front(self.keys, answer.found(0), answer.header.revision)

    def _check(self, front: Front) -> None:
        assert self._identity
        if front.identity != self._identity[0]:
            raise self._replaced(self._identity[1])

    async def _begin(self) -> bytes:
        keys = self.keys
        raw = to_json(JournalIdentity(FORMAT, draw_identity()))
        first = {
            keys.identity: raw,
            keys.end: to_json(0),
            keys.head: sealed(Head(0)),
            **keys.seat_values(Seat()),
        }
        puts = [put(key, value) for key, value in first.items()]
        answer = await self._txn([nothing_under(keys.prefix)], puts)
        if answer.succeeded:
            return raw
        # Another manager's, or ours if the answer to it was lost.
        found = self._front_of(answer).identity
        if found is None:
            raise self._none()
        return found

    async def _txn(
        self,
        compare: Sequence[Compare],
        success: Sequence[Op],
        *,
        repeatable: bool = True,
    ) -> TxnAnswer:
        failure = [read(self.keys.front, self.keys.after_front)]
        request = Txn(list(compare), list(success), failure)
        return await self.gateway.call(TXN, request, _txns, repeatable=repeatable)

    def _none(self) -> JournalDamaged:
        prefix = self.keys.prefix.decode()
        what = "something" if self._makes else "nothing, or something"
        return JournalDamaged(
            f"in etcd there is {what} under {prefix}, but no journal of tenure, or no longer "
            "one; nothing was touched. Name another prefix, or see with "
            f"`etcdctl get --prefix --keys-only {prefix}` what it is"
        )

    def _replaced(self, identity: JournalIdentity) -> JournalDamaged:
        return JournalDamaged(
            f"the journal {identity.journal} under {self.keys.prefix.decode()} in etcd was deleted "
            "or replaced while it was in use. Stop every manager of it, and see what is there. If "
            "there is a backup of etcd, put it back and go on from it with `tenure restore`. "
            "Otherwise start the managers again: they begin a new journal, grant nothing for 65 "
            "seconds, and every key is lost once. See `tenure docs operating/etcd`"
        )
