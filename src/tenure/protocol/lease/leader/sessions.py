"""The sessions of one pool: who is numbered (P8, P9), how long each may hold (P4), and when a name
is forgotten.

The journal remembers the last incarnation of every name, so that a repeated join, perhaps to
another leader, finds its own number. If names are drawn for each process, there is no end of them:
a name is forgotten when no message under it can come any longer.

Only here do sessions come and go. The other parts of a pool read them, as a mapping by incarnation.
"""

from collections import deque
from collections.abc import Iterator, Mapping

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.protocol.lease.leader.addresses import Addresses
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.limits import GONE_NAMES_PER_POOL
from tenure.protocol.lease.messages import Join, LeaseRequest, ShortRequest
from tenure.protocol.lease.records import Joined, MemberRecord
from tenure.protocol.lease.table import NOBODY, LeaseTable


class Sessions(Mapping[int, Session]):
    """The living incarnations of one pool."""

    def __init__(self, context: LeaderContext, table: LeaseTable) -> None:
        self.context = context
        self.table = table
        self._living: dict[int, Session] = {}
        self.addresses = Addresses(context, table, self)
        self._gone: deque[tuple[Instant, str, int]] = deque(maxlen=GONE_NAMES_PER_POOL)
        """The names of owners that are gone and still remembered, by the time at which
        they left. The table remembers no more.
        """
        self.next_expiry = FAR_FUTURE
        """When a hold may run out next; never later than it does."""
        for member in table.members.values():
            self._inherit(member)

    def __getitem__(self, incarnation: int) -> Session:
        return self._living[incarnation]

    def __iter__(self) -> Iterator[int]:
        return iter(self._living)

    def __len__(self) -> int:
        return len(self._living)

    def _inherit(self, member: MemberRecord) -> None:
        """Take over a predecessor's owner: it keeps its ranges as long as it may believe anything
        (P19).

        It is planned for although it has not spoken. Otherwise a new leader would begin by
        recalling half the pool from the first owners that find it.
        """
        until = self.context.inherited_until
        session = Session(member.incarnation, member.name, member.nonce, until)
        session.proven = True
        session.leaving = self.is_evicted(session)
        self._living[member.incarnation] = session
        self.addresses.add(member.incarnation, Instant(0))
        self.next_expiry = min(self.next_expiry, until)

    # --- who asks ---

    def of(self, message: LeaseRequest | ShortRequest) -> Session | None:
        """The session of the owner that asks; None for a stranger."""
        session = self._living.get(message.incarnation)
        is_its = session is not None and session.owner_nonce == message.owner_nonce
        return session if is_its else None

    def holder_of(self, message: Join) -> Session | None:
        """The session of another incarnation that has the name which `message` asks for (P8)."""
        incarnation, nonce = self.table.numbered.get(message.name, (NOBODY, 0))
        return None if nonce == message.owner_nonce else self._living.get(incarnation)

    def is_evicted(self, session: Session) -> bool:
        """Whether an operator has said that it is gone."""
        return session.incarnation in self.table.steering.evicted

    # --- coming and going ---

    def number(self, now: Instant, message: Join) -> Session:
        """The session of a new incarnation, whose hold has not begun."""
        self._forget_the_long_gone(now)
        incarnation = self.table.next_incarnation
        # Journaled first: a later leader must know the number that the owner was told (P9).
        self.context.write(Joined.by(message, incarnation, self.context.timing.term_ns))
        session = Session(incarnation, message.name, message.owner_nonce, now)
        session.cause = self.context.begin()
        self._living[incarnation] = session
        self.addresses.add(incarnation, now)
        self.next_expiry = Instant(0)
        self.context.note(LeaderKind.JOINED, self.table.pool, f"{message.name} as {incarnation}")
        return session

    def expired(self, now: Instant) -> list[Session]:
        """The sessions whose holds have run out, which are to be removed."""
        if now < self.next_expiry:
            return []
        found = [each for each in self._living.values() if now >= each.hold_until]
        holds = (each.hold_until for each in self._living.values() if now < each.hold_until)
        self.next_expiry = min(holds, default=FAR_FUTURE)
        return found

    def remove(self, now: Instant, session: Session) -> None:
        """Remove an owner that has gone, and remember its name for a while."""
        del self._living[session.incarnation]
        self.addresses.remove(session.incarnation)
        self._gone.append((now, session.name, session.incarnation))

    def _forget_the_long_gone(self, now: Instant) -> None:
        """Forget names whose owners left long ago. If a join under such a name came even later, it
        would be numbered and planned for nothing, because it never speaks again, and would be gone
        after a hold.
        """
        while self._gone and now >= self._gone[0][0] + self.context.timing.keep_changes_ns:
            _, name, incarnation = self._gone.popleft()
            self.table.forget(name, incarnation)

    # --- news ---

    def unsettle(self, incarnation: int) -> None:
        """Poke an owner to ask, if it is there."""
        session = self._living.get(incarnation)
        if session is not None:
            session.unsettle(self.context)

    def unsettle_all(self) -> None:
        """Poke all owners to ask."""
        for incarnation in sorted(self._living):
            self.unsettle(incarnation)

    def on_disconnected(self, connection: int) -> None:
        """Poke nobody there. Leases stay, since a closed socket proves nothing (P14)."""
        for session in self._living.values():
            if session.connection == connection:
                session.connection = None

    def invariants(self) -> None:
        """Sessions and members are the same incarnations; a hold is known for each."""
        assert self.keys() == self.table.members.keys()
        for session in self.values():
            assert session.name == self.table.members[session.incarnation].name
            assert self.next_expiry <= session.hold_until, (self.next_expiry, session.hold_until)
