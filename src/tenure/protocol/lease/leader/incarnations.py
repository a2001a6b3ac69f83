"""Numbering the incarnations of owners, and forgetting names that no owner has any more (P9).

The journal remembers the last incarnation of every name, so that a repeated join, perhaps to
another leader, finds its own number. If names are drawn for each process, there is no end of them:
a name is forgotten when no message under it can come any longer.
"""

from collections import deque

from tenure.base.instants import Instant
from tenure.protocol.lease.leader.addresses import Addresses
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.move_log import MoveLog
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.messages import Join
from tenure.protocol.lease.records import Joined
from tenure.protocol.lease.table import LeaseTable


class Incarnations:
    """The incarnations of one pool."""

    def __init__(
        self,
        context: LeaderContext,
        table: LeaseTable,
        sessions: dict[int, Session],
        addresses: Addresses,
        move_log: MoveLog,
    ) -> None:
        self.context = context
        self.table = table
        self.sessions = sessions
        self.addresses = addresses
        self.move_log = move_log
        self._gone: deque[tuple[Instant, str, int]] = deque()
        """The names of owners that are gone and still remembered, by the time at which
        they left.
        """

    def number(self, now: Instant, message: Join) -> Session:
        """The session of a new incarnation, whose hold has not begun."""
        self._forget_the_long_gone(now)
        incarnation = self.table.next_incarnation
        self.context.write(Joined.by(message, incarnation, self.context.timing.term_ns))
        session = Session(incarnation, message.name, message.owner_nonce, now)
        session.cause = self.context.begin()
        self.sessions[incarnation] = session
        self.addresses.add(incarnation, now)
        self.move_log.on_joined(now, incarnation)
        self.context.note(LeaderKind.JOINED, self.table.pool, f"{message.name} as {incarnation}")
        return session

    def on_gone(self, now: Instant, session: Session) -> None:
        """Remember the name of an owner that has gone, for a while."""
        self._gone.append((now, session.name, session.incarnation))

    def _forget_the_long_gone(self, now: Instant) -> None:
        """Forget names whose owners left long ago. If a join under such a name came even later, it
        would be numbered and planned for nothing, because it never speaks again, and would be gone
        after a hold.
        """
        while self._gone and now >= self._gone[0][0] + self.context.timing.keep_changes_ns:
            _, name, incarnation = self._gone.popleft()
            self.table.forget(name, incarnation)
