"""Asking neighbours whether a quiet owner's process is gone (rule P14).

A closed socket proves nothing: its owner may connect again, and a child that it forked may keep the
socket of a dead one open. So silence and a broken connection only make an owner suspect. Then the
leader asks other owners in the very same place, of any pool, to look, a few at a time and again and
again, until one says that this very process is gone, the suspect speaks, or its hold has run out.
An owner that comes back under the name of its predecessor is asked about its predecessor.

The leader believes only an owner that it has asked, and only about the process that it asked about.
The owner may lie, so the accused is told, and may object: its ranges are free once it has not
spoken for a moment. The leader waits for no objection where the accused has no connection and the
accuser is a known owner.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tenure.base.instants import FAR_FUTURE, MILLISECOND_NS, Instant
from tenure.protocol.lease.answers import Connection
from tenure.protocol.lease.attestation import may_attest
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.pool import Pool
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.messages import Attest, Attested, Join, Poke, Process

ASKED_AT_ONCE = 3
"""The most witnesses that are asked at once: enough that one of them is not stopped at that moment,
few enough for a machine on which hundreds of owners die together."""
LOOKS_A_RENEWAL = 4
"""How often in a renewal's time they are asked again, once the first hurried rounds have shown
nothing.
"""
HURRY = 16
"""How much sooner the second round comes than the last ones: a process closes its sockets a moment
before it is gone. Each pause is twice the one before."""


OBJECTION_NS = 300 * MILLISECOND_NS
"""How long an accused owner has to say that it lives: a poke and its answer fit in many times over,
and the keys of one that was killed are served again within a second."""


class Witness(NamedTuple):
    """An owner that can look."""

    connection: Connection
    nonce: int
    process: Process
    is_joining: bool
    """Whether it waits for the suspect's name, and has not shown that it is an owner."""


class Suspect:
    """An incarnation that has gone quiet, and the owners that were asked about it."""

    __slots__ = (
        "accuser",
        "ask_at",
        "asked",
        "dies_at",
        "pause_ns",
        "pool",
        "process",
        "sequence",
        "session",
        "turn",
    )

    def __init__(self, now: Instant, pool: Pool, session: Session, process: Process) -> None:
        self.pool = pool
        self.session = session
        self.process = process
        self.sequence = session.sequence
        """The number of its last request before it was suspected."""
        self.ask_at = now
        self.pause_ns = 0
        self.turn = 0
        self.asked: dict[Connection, Witness] = {}
        self.dies_at = FAR_FUTURE
        """When it has had time to object."""
        self.accuser: Witness | None = None

    @property
    def is_suspect(self) -> bool:
        """Whether it is still there, and has not spoken since."""
        is_there = self.pool.sessions.get(self.session.incarnation) is self.session
        return is_there and self.session.sequence == self.sequence


class Witnesses:
    """The suspects of a leader, and the witnesses that it asks."""

    def __init__(self, now: Instant, context: LeaderContext, pools: Mapping[str, Pool]) -> None:
        self.context = context
        self.pools = pools
        self.longest_pause_ns = context.timing.renew_ns // LOOKS_A_RENEWAL
        self.overdue_ns = context.timing.renew_ns * 3 // 2
        self._suspects: dict[tuple[str, int], Suspect] = {}
        self.wake_at = FAR_FUTURE
        """When the next thing is due, or sooner."""
        self._look_at = FAR_FUTURE
        """When to look for owners that have missed a renewal; never while no witness
        can be asked.
        """
        if any(member.process for pool in pools.values() for member in pool.table.members.values()):
            self.wake_at = self._look_at = Instant(now + self.overdue_ns)

    # --- whom to suspect ---

    def on_joined(self, now: Instant, connection: Connection, pool: Pool, message: Join) -> None:
        """Take a join, or one that was refused because of its name: then ask its owner about its
        predecessor.
        """
        if message.process is None:
            return
        if self._look_at == FAR_FUTURE:
            self._look_at = Instant(now + self.overdue_ns)
            self.wake_at = min(self.wake_at, self._look_at)
        holder = pool.sessions.holder_of(message)
        if holder is None:
            return
        suspect = self._suspect(now, pool, holder)
        if suspect is not None and may_attest(message.process, suspect.process):
            nonce = message.owner_nonce
            self._ask(suspect, Witness(connection, nonce, message.process, is_joining=True))

    def on_disconnected(self, now: Instant, connection: Connection) -> None:
        """Suspect the owner whose connection broke."""
        for pool in self.pools.values():
            for session in list(pool.sessions.values()):
                if session.connection == connection:
                    session.ending = self.context.begin()
                    self.context.note(LeaderKind.CUT_OFF, pool.table.pool, session.name)
                    self._suspect(now, pool, session)

    def _suspect(self, now: Instant, pool: Pool, session: Session) -> Suspect | None:
        """Suspect `session`, if any witness can be asked about it."""
        key = pool.table.pool, session.incarnation
        known = self._suspects.get(key)
        if known is not None and known.is_suspect:
            return known
        process = pool.table.members[session.incarnation].process
        if process is None:
            return None
        suspect = self._suspects[key] = Suspect(now, pool, session, process)
        self.wake_at = min(self.wake_at, suspect.ask_at)
        return suspect

    def _look_for_the_overdue(self, now: Instant) -> None:
        """Suspect owners that missed a renewal: the socket of a dead owner may be kept open."""
        self._look_at = FAR_FUTURE
        for pool in self.pools.values():
            for session in pool.sessions.values():
                if pool.table.members[session.incarnation].process is not None:
                    self._look_at = Instant(now + self.context.timing.renew_ns // 2)
                    if now >= session.heard_at + self.overdue_ns:
                        self._suspect(now, pool, session)

    # --- asking ---

    def advance(self, now: Instant) -> None:
        """Do what is due."""
        if now >= self._look_at:
            self._look_for_the_overdue(now)
        for suspect in list(self._suspects.values()):
            if now >= suspect.dies_at:
                self._end(now, suspect)
        due = [suspect for suspect in self._suspects.values() if now >= suspect.ask_at]
        places = self._places() if due else {}
        for suspect in due:
            if suspect.is_suspect:
                self._ask_some(now, suspect, places.get(suspect.process.place, []))
            else:
                del self._suspects[suspect.pool.table.pool, suspect.session.incarnation]
        asks = (min(suspect.ask_at, suspect.dies_at) for suspect in self._suspects.values())
        self.wake_at = min(self._look_at, *asks, FAR_FUTURE)

    def _places(self) -> dict[tuple[str, int, int], list[Witness]]:
        """Every owner that can be asked and has shown that it lives, by the place from which it
        looks.
        """
        places: dict[tuple[str, int, int], list[Witness]] = {}
        for pool in self.pools.values():
            for session in pool.sessions.values():
                process = pool.table.members[session.incarnation].process
                connection = session.connection
                if process is not None and connection is not None and session.proven:
                    witness = Witness(connection, session.owner_nonce, process, is_joining=False)
                    places.setdefault(process.place, []).append(witness)
        return places

    def _ask_some(self, now: Instant, suspect: Suspect, beside: list[Witness]) -> None:
        """Ask the next few witnesses, and others or the same ones again after a while."""
        able = [witness for witness in beside if may_attest(witness.process, suspect.process)]
        for i in range(min(ASKED_AT_ONCE, len(able))):
            self._ask(suspect, able[(suspect.turn + i) % len(able)])
        suspect.turn += ASKED_AT_ONCE
        first_ns = self.longest_pause_ns // HURRY
        suspect.pause_ns = min(2 * suspect.pause_ns or first_ns, self.longest_pause_ns)
        suspect.ask_at = Instant(now + suspect.pause_ns)

    def _ask(self, suspect: Suspect, witness: Witness) -> None:
        suspect.asked[witness.connection] = witness
        session = suspect.session
        self.context.cause = session.ending = session.ending or self.context.begin()
        self.context.note(LeaderKind.ASKED_WITNESS, suspect.pool.table.pool, suspect.session.name)
        self.context.send(
            witness.connection,
            Attest(
                pool=suspect.pool.table.pool,
                incarnation=suspect.session.incarnation,
                process=suspect.process,
                manager_nonce=self.context.seal.nonce,
            ),
        )

    # --- answers ---

    def on_attested(self, now: Instant, connection: Connection, message: Attested) -> None:
        """Free the ranges of the dead owner, if the witness was asked about exactly that owner."""
        suspect = self._named_by(message)
        witness = suspect.asked.get(connection) if suspect else None
        # Only who was asked may say it, of that very process: a word decides over keys (P14).
        if suspect is None or witness is None or not self._is_from(witness, message):
            self._note_not_taken(message)
            return
        if suspect.accuser is not None:
            return
        suspect.accuser = witness
        suspect.dies_at = now
        # It has shown nothing yet, or the suspect may be there to object (P14).
        if witness.is_joining or suspect.session.connection is not None:
            suspect.dies_at = Instant(now + OBJECTION_NS)
            self.wake_at = min(self.wake_at, suspect.dies_at)
            self.context.note(LeaderKind.ACCUSED, message.pool, suspect.session.name)
            self.context.send(suspect.session.connection, Poke(cause=self.context.cause))
        else:
            self._end(now, suspect)

    def _end(self, now: Instant, suspect: Suspect) -> None:
        """Free the ranges of a suspect that has not objected, or could not."""
        suspect.dies_at = FAR_FUTURE
        accuser, suspect.accuser = suspect.accuser, None
        # It has spoken since: that is its objection.
        if not suspect.is_suspect or accuser is None:
            return
        suspect.pool.on_death(now, suspect.session, LeaderKind.ATTESTED)
        if accuser.is_joining:
            self.context.send(accuser.connection, Poke(cause=self.context.cause))

    def _named_by(self, message: Attested) -> Suspect | None:
        """The suspect that the message is about, with that incarnation and process; None if there
        is none.
        """
        suspect = self._suspects.get((message.pool, message.incarnation))
        if suspect is None or suspect.process != message.process:
            return None
        return suspect if suspect.is_suspect else None

    def _is_from(self, witness: Witness, message: Attested) -> bool:
        """Whether the message was sealed by the witness that was asked, under this leadership (P2,
        P9).
        """
        is_itself = message.owner_nonce == witness.nonce and message.witness == witness.process
        is_ours = message.manager_nonce == self.context.seal.nonce
        return is_ours and is_itself

    def _note_not_taken(self, message: Attested) -> None:
        """Note an attestation that was not taken. Several witnesses are asked at once, and all
        answers but the first come when there is nothing left to free.
        """
        pool = self.pools.get(message.pool)
        is_late = pool is not None and message.incarnation not in pool.sessions
        kind = LeaderKind.LATE_ATTESTATION if is_late else LeaderKind.REFUSED_ATTESTATION
        detail = f"of {message.incarnation}, process {message.process.pid}"
        self.context.note(kind, message.pool, detail)
