"""The secret that the processes of one pool show each other at their ports.

It is computed from the journal's secret, so a leader has nothing to remember, and its successor
tells the same. As long as a process of the pool cannot prove anything, because its version does not
know how, the others are told not to ask: an upgrade of one process at a time goes on.
"""

from hashlib import blake2b

import msgspec

from tenure.protocol.lease.answers import Connection
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.port_proof import PortProof

_SECRET_BYTES = 32


class PortProofs:
    """Tells the processes of one pool its secret, and whether to ask for it."""

    def __init__(self, context: LeaderContext, pool: str) -> None:
        self._context = context
        self._pool = pool
        self._unable_owners: set[int] = set()
        """The incarnations that have said that they cannot prove anything. One that this leader has
        not heard yet is not among them: a takeover makes nobody ask less.
        """
        self._unable_lookups: set[Connection] = set()
        self._made: dict[bytes, tuple[PortProof, PortProof]] = {}

    def heard(self, session: Session, *, proves: bool) -> None:
        """An owner has said whether it can prove anything."""
        session.proves = proves
        if proves:
            self._unable_owners.discard(session.incarnation)
        else:
            self._unable_owners.add(session.incarnation)

    def gone(self, session: Session) -> None:
        """An owner is gone."""
        self._unable_owners.discard(session.incarnation)

    def synced(self, connection: Connection, *, proves: bool) -> PortProof | None:
        """A lookup has said whether it can prove anything. Returns what it is told."""
        if proves:
            self._unable_lookups.discard(connection)
            return self._present()
        self._unable_lookups.add(connection)
        return None

    def disconnected(self, connection: Connection) -> None:
        """A lookup is gone."""
        self._unable_lookups.discard(connection)

    def for_owner(self, session: Session) -> PortProof | None:
        """What an owner is told; None if it cannot make use of it."""
        return self._present() if session.proves else None

    def _present(self) -> PortProof | None:
        secret = self._context.history.secret
        if not secret:
            return None
        if secret not in self._made:
            named = msgspec.msgpack.encode((self._context.seal.journal, self._pool))
            mine = blake2b(named, key=secret, digest_size=_SECRET_BYTES, person=b"ports").digest()
            self._made = {secret: (PortProof(secret=mine), PortProof(secret=mine, is_wanted=True))}
        is_wanted = not (self._unable_owners or self._unable_lookups)
        return self._made[secret][is_wanted]
