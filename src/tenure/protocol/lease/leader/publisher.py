"""Telling lookups about one pool: changes as they commit, or the whole table (Centrifuge 2.2).

Lookups ask every few seconds with the LSN they are at, as in the paper; in between, changes are
gathered over some milliseconds, encoded once, and pushed to all lookups that asked lately. A push
that is lost, late or doubled does no harm: each says which LSN it follows, and the answer to the
next question brings what is missing.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.protocol.lease.answers import Connection
from tenure.protocol.lease.leader.change_log import ChangeLog, said_last_of_each
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.port_proofs import PortProofs
from tenure.protocol.lease.messages import Changes, Entry, OwnerInfo, Sync, SyncResponse
from tenure.protocol.lease.table import LeaseTable, Right
from tenure.protocol.lease.table_columns import TableColumns

UNLIMITED = 1 << 62
MOST_CHANGES = 1 << 14
"""A lookup that has missed more changes than this is given the whole table: that is made once for
all who ask, and each lookup's changes are made for it alone.
"""


class WholeTable(NamedTuple):
    """A table as it was at an LSN, with its owners: the same objects for all who are given it, so
    that it is encoded once.
    """

    lsn: int
    entries: tuple[Entry, ...]
    columns: TableColumns | None
    owners: tuple[OwnerInfo, ...]


NEVER_MADE = WholeTable(-1, (), None, ())


class Publisher:
    """The change log of a pool, and the lookups that follow it."""

    def __init__(self, context: LeaderContext, table: LeaseTable) -> None:
        self.context = context
        self.proofs = PortProofs(context, table.pool)
        """What lookups and owners are told of the pool's secret."""
        self.table = table
        self.log = ChangeLog(table.laid_lsn)
        """The log of changes. It begins before this leadership: a takeover changes no table, so the
        lookups of a pool at rest need not be told all of it anew.
        """
        self.followers: dict[Connection, Instant] = {}
        """When pushes to each connection end, unless it syncs again."""
        self._pushed = self.log.begins_after
        self.push_at = FAR_FUTURE
        """When the next changes are to be pushed."""
        self._rows = NEVER_MADE
        """The whole table as it was last made, in entries."""
        self._columns = NEVER_MADE
        """The same in columns, for lookups that read them."""

    def add(self, now: Instant, lsn: int, entries: tuple[Entry, ...]) -> None:
        """Note a change; it is pushed with those that follow closely."""
        if not entries:
            return
        self.log.add(lsn, now, entries, self.context.story())
        self.push_at = min(self.push_at, Instant(now + self.context.timing.push_ns))

    def on_sync(self, now: Instant, connection: Connection, message: Sync) -> None:
        """Answer with the changes since the lookup's LSN, and push to it from here on."""
        self.followers[connection] = Instant(now + self.context.timing.contact_ns)
        entries = None
        if message.journal == self.context.seal.journal:
            entries = self.log.since(message.lsn, min(len(self.table.rights), MOST_CHANGES))
        if entries is None:
            self._tell_whole(now, connection, message)
            return
        told = WholeTable(self._lsn, entries, None, self._owners(entries))
        cause = self.log.causes(message.lsn)
        self.context.send(connection, self._response(now, connection, message, told, cause))

    def _tell_whole(self, now: Instant, connection: Connection, message: Sync) -> None:
        """Answer with the whole table, as it is or lately was; in that case the changes follow."""
        whole = self._whole_columns() if message.reads_columns else self._whole_rows()
        response = self._response(now, connection, message, whole, None)
        self.context.send(connection, response)
        if self.log.last > whole.lsn:
            self.context.push((connection,), self._changes(whole.lsn))

    def _response(
        self,
        now: Instant,
        connection: Connection,
        message: Sync,
        told: WholeTable,
        cause: str | None,
    ) -> SyncResponse:
        """The answer to a lookup; `cause` is None where all of the table is told."""
        seal, timing = self.context.seal, self.context.timing
        return SyncResponse(
            sequence=message.sequence,
            nonce=message.nonce,
            journal=seal.journal,
            leadership=seal.leadership,
            lsn=told.lsn,
            kind=self.table.kind,
            snapshot=cause is None,
            entries=told.entries,
            owners=told.owners,
            sync_ns=self.context.again_ns(now, timing.sync_ns),
            contact_ns=timing.contact_ns,
            receipt=self.context.receipt(),
            cause=cause or "",
            hold_ns=timing.hold_ns,
            columns=told.columns,
            proof=self.proofs.synced(connection, proves=message.proves),
            realm=self.context.history.realm,
        )

    def on_disconnected(self, connection: Connection) -> None:
        """Stop pushing to `connection`."""
        self.followers.pop(connection, None)
        self.proofs.disconnected(connection)

    def advance(self, now: Instant) -> None:
        """Push what is due."""
        if now >= self.push_at:
            self.push_at = FAR_FUTURE
            self._push(now)

    def _push(self, now: Instant) -> None:
        self.followers = {c: until for c, until in self.followers.items() if now < until}
        self.context.push(tuple(self.followers), self._changes(self._pushed))
        self._pushed = self.log.last
        self.log.forget_before(Instant(now - self.context.timing.keep_changes_ns))
        self.log.forget_beyond(len(self.table.rights))

    def _changes(self, after: int) -> Changes:
        entries = self.log.since(after, UNLIMITED)
        assert entries is not None, "a change is kept for longer than it waits to be pushed"
        entries = said_last_of_each(entries)
        seal = self.context.seal
        return Changes(
            pool=self.table.pool,
            journal=seal.journal,
            leadership=seal.leadership,
            after=after,
            lsn=self.log.last,
            entries=entries,
            owners=self._owners(entries),
            receipt=self.context.receipt(),
            cause=self.log.causes(after),
        )

    def _whole_rows(self) -> WholeTable:
        if not self._is_fresh(self._rows):
            entries = self.table.entries()
            self._rows = WholeTable(self._lsn, entries, None, self._owners(entries))
        return self._rows

    def _whole_columns(self) -> WholeTable:
        if not self._is_fresh(self._columns):
            owners = self._owners(self.table.rights.values())
            self._columns = WholeTable(self._lsn, (), self.table.columns(), owners)
        return self._columns

    def _is_fresh(self, whole: WholeTable) -> bool:
        """Whether few changes have been made since."""
        few = len(self.table.rights) // self.context.fresh_part
        return self.log.since(whole.lsn, few) is not None

    @property
    def _lsn(self) -> int:
        return self.context.history.lsn

    def _owners(self, said: Sequence[Entry | Right]) -> tuple[OwnerInfo, ...]:
        """The owners among the incarnations in the table; those that have left meanwhile are left
        out.
        """
        if not said:
            return ()
        members = self.table.members
        present = sorted({each.owner for each in said if each.owner in members})
        return tuple(
            OwnerInfo(
                incarnation=i,
                name=members[i].name,
                address=members[i].address,
                cache=members[i].cache,
            )
            for i in present
        )
