"""Telling lookups about one pool: changes as they commit, or the whole table (Centrifuge 2.2).

Lookups ask every few seconds with the LSN they are at, as in the paper; in between, changes are
gathered over some milliseconds, encoded once, and pushed to all lookups that asked lately. A push
that is lost, late or doubled does no harm: each says which LSN it follows, and the answer to the
next question brings what is missing.
"""

from collections.abc import Sequence

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.protocol.lease.answers import Connection
from tenure.protocol.lease.leader.change_log import ChangeLog, said_last_of_each
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.port_proofs import PortProofs
from tenure.protocol.lease.messages import Changes, Entry, OwnerInfo, Sync, SyncResponse
from tenure.protocol.lease.table import LeaseTable, Right
from tenure.protocol.lease.table_columns import TableColumns

UNLIMITED = 1 << 62


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
        self._whole: tuple[tuple[Entry, ...], tuple[OwnerInfo, ...]] = ((), ())
        """The whole table with its owners, as it was last sent."""
        self._columns: tuple[TableColumns | None, tuple[OwnerInfo, ...]] = (None, ())
        """The same in columns, for lookups that read them."""

    def add(self, now: Instant, lsn: int, entries: tuple[Entry, ...]) -> None:
        """Note a change; it is pushed with those that follow closely."""
        if not entries:
            return
        self.log.add(lsn, now, entries, self.context.story())
        self.push_at = min(self.push_at, Instant(now + self.context.timing.push_ns))

    def on_sync(self, now: Instant, connection: Connection, message: Sync) -> None:
        """Answer with the changes since the lookup's LSN, and push to it from here on."""
        seal, timing = self.context.seal, self.context.timing
        self.followers[connection] = Instant(now + timing.contact_ns)
        entries = None
        if message.journal == seal.journal:
            entries = self.log.since(message.lsn, at_most=len(self.table.rights))
        snapshot, columns = entries is None, None
        if entries is not None:
            owners = self._owners(entries)
        elif message.reads_columns:
            columns, owners = self._whole_columns()
        else:
            entries, owners = self._whole_table()
        response = SyncResponse(
            sequence=message.sequence,
            nonce=message.nonce,
            journal=seal.journal,
            leadership=seal.leadership,
            lsn=self.context.history.lsn,
            kind=self.table.kind,
            snapshot=snapshot,
            entries=entries or (),
            owners=owners,
            sync_ns=self.context.again_ns(now, timing.sync_ns),
            contact_ns=timing.contact_ns,
            receipt=self.context.receipt(),
            cause="" if snapshot else self.log.causes(message.lsn),
            hold_ns=timing.hold_ns,
            columns=columns,
            proof=self.proofs.synced(connection, proves=message.proves),
            realm=self.context.history.realm,
        )
        self.context.send(connection, response)

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
        entries = self.log.since(self._pushed, UNLIMITED)
        assert entries is not None, "a change is kept for longer than it waits to be pushed"
        entries = said_last_of_each(entries)
        seal = self.context.seal
        message = Changes(
            pool=self.table.pool,
            journal=seal.journal,
            leadership=seal.leadership,
            after=self._pushed,
            lsn=self.log.last,
            entries=entries,
            owners=self._owners(entries),
            receipt=self.context.receipt(),
            cause=self.log.causes(self._pushed),
        )
        self.context.push(tuple(self.followers), message)
        self._pushed = self.log.last
        self.log.forget_before(Instant(now - self.context.timing.keep_changes_ns))
        self.log.forget_beyond(len(self.table.rights))

    def _whole_table(self) -> tuple[tuple[Entry, ...], tuple[OwnerInfo, ...]]:
        """The whole table: the same object for all who ask while the table does not change, so that
        it is encoded once. An owner that leaves takes entries with it, so while these stay the
        same, the owners do too.
        """
        entries = self.table.entries()
        if self._whole[0] is not entries:
            self._whole = (entries, self._owners(entries))
        return self._whole

    def _whole_columns(self) -> tuple[TableColumns | None, tuple[OwnerInfo, ...]]:
        columns = self.table.columns()
        if self._columns[0] is not columns:
            self._columns = (columns, self._owners(self.table.rights.values()))
        return self._columns

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
