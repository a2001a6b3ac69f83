"""Owners that announce the same address: workers behind one port, where a client may reach any of
them.

The leader refuses nothing for that reason: a proxy that knows where each key belongs may stand at
that address. But mostly it is a mistake, so the log, `owners` and the owners themselves report it.
"""

from collections.abc import Mapping

from tenure.base.instants import Instant
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.table import LeaseTable


class Addresses:
    """The addresses that owners announce in one pool."""

    def __init__(
        self, context: LeaderContext, table: LeaseTable, sessions: Mapping[int, Session]
    ) -> None:
        self.context = context
        self.table = table
        self.sessions = sessions
        self._joined_at: dict[str, dict[int, Instant]] = {}
        """When each incarnation joined, by address and incarnation."""
        self.shared: dict[str, None] = {}
        """The addresses that several owners announce: usually none."""
        self._warned: dict[str, None] = {}

    def add(self, incarnation: int, joined_at: Instant) -> None:
        """Add an incarnation that joined. A predecessor's owner joined before anything that is
        heard now.
        """
        address = self.table.members[incarnation].address
        there = self._joined_at.setdefault(address, {})
        there[incarnation] = joined_at
        if len(there) > 1:
            self.shared[address] = None

    def remove(self, incarnation: int) -> None:
        """Remove an incarnation that is about to be forgotten."""
        address = self.table.members[incarnation].address
        there = self._joined_at[address]
        del there[incarnation]
        if len(there) <= 1:
            self.shared.pop(address, None)
        if not there:
            del self._joined_at[address]
            self._warned.pop(address, None)

    def beside(self, session: Session) -> str:
        """The name of another living owner at the address of `session`; otherwise empty."""
        member = self.table.members.get(session.incarnation)
        there = {} if member is None else self._joined_at[member.address]
        for incarnation in there:
            other = self.sessions[incarnation]
            if other is not session and _live_at_once(session, other, there):
                return other.name
        return ""

    def told_to(self, session: Session) -> str:
        """The same name as `beside` gives, for an answer; the log says it once for each address."""
        name = self.beside(session)
        if name:
            address = self.table.members[session.incarnation].address
            if address not in self._warned:
                self._warned[address] = None
                detail = (
                    f"{session.name} and {name} announce {address}: most requests reach the wrong "
                    "owner. Give each process an address of its own; see "
                    "`tenure docs guides/web-servers`"
                )
                self.context.note(LeaderKind.SHARED_ADDRESS, self.table.pool, detail)
        return name


def _live_at_once(one: Session, other: Session, joined_at: Mapping[int, Instant]) -> bool:
    """Whether the older one was heard after the younger one had joined. A process that takes the
    place of a dead one announces the same address, and the dead one is not heard again.
    """
    older, younger = sorted((one, other), key=lambda session: session.incarnation)
    if older.leaving or None in (older.connection, younger.connection):
        return False
    return older.heard_at > joined_at[younger.incarnation]
