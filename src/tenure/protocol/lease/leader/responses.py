"""The answers of a leader to an owner: all that it may hold (P4), or that nothing has changed.

Usually an owner asks for exactly what it has and is to keep. Then the answer contains the
fingerprint of all that it lists; from then on the owner sends that instead of the list, and the
answer has no list either.
"""

from tenure.protocol.lease.causes import joined
from tenure.protocol.lease.leader.addresses import Addresses
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.moving import Moving
from tenure.protocol.lease.leader.port_proofs import PortProofs
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.messages import (
    Copy,
    Expected,
    HandOff,
    Held,
    Leased,
    LeaseResponse,
    ShortResponse,
)
from tenure.protocol.lease.table import LeaseTable


class Responses:
    """The answers of one pool's leader."""

    def __init__(
        self,
        context: LeaderContext,
        table: LeaseTable,
        addresses: Addresses,
        moving: Moving,
        proofs: PortProofs,
    ) -> None:
        self.context = context
        self.table = table
        self.addresses = addresses
        self.moving = moving
        self.proofs = proofs

    def renew(
        self,
        session: Session,
        given: tuple[Held, ...],
        copies: tuple[Copy, ...],
        *,
        is_short: bool,
    ) -> None:
        """Renew all of `given`, which the table gives the incarnation, and nothing more: in short
        form if the request was short and there is nothing to add.
        """
        seal, timing = self.context.seal, self.context.timing
        has_news = session.told_proof is not self.proofs.for_owner(session)
        if not is_short or has_news or self.context.cause or self.addresses.shared:
            if session.fingerprinted is not given:
                session.take_fingerprint(given, seal.nonce)
            leases, fingerprint = session.renewal, session.fingerprint
            self.respond(session, leases, copies=copies, fingerprint=fingerprint)
            return
        self.context.send(
            session.connection,
            ShortResponse(
                incarnation=session.incarnation,
                owner_nonce=session.owner_nonce,
                sequence=session.sequence,
                manager_nonce=seal.nonce,
                journal=seal.journal,
                leadership=seal.leadership,
                term_ns=timing.term_ns,
                renew_ns=self.context.again_ns(session.heard_at, timing.renew_ns),
                receipt=self.context.receipt(),
            ),
        )

    def respond(
        self,
        session: Session,
        leases: tuple[Leased, ...],
        hand_offs: tuple[HandOff, ...] = (),
        expected: tuple[Expected, ...] = (),
        copies: tuple[Copy, ...] = (),
        fingerprint: bytes = b"",
    ) -> None:
        """List everything that the incarnation may hold, with what it is to do with each range."""
        seal, timing = self.context.seal, self.context.timing
        member = self.table.members.get(session.incarnation)
        session.told_proof = self.proofs.for_owner(session)
        self.context.send(
            session.connection,
            LeaseResponse(
                incarnation=session.incarnation,
                owner_nonce=session.owner_nonce,
                sequence=session.sequence,
                manager_nonce=seal.nonce,
                journal=seal.journal,
                leadership=seal.leadership,
                term_ns=timing.term_ns,
                renew_ns=self.context.again_ns(session.heard_at, timing.renew_ns),
                leases=leases,
                copies=self.moving.that_count(copies) if copies else (),
                hand_offs=hand_offs,
                receipt=self.context.receipt(),
                cause=joined(session.cause, self.context.cause) if self.context.cause else "",
                expected=expected,
                same_address=self.addresses.told_to(session) if self.addresses.shared else "",
                reads_ns=member.reads_ns if member else 0,  # gone: its last answer
                fingerprint=fingerprint,
                proof=session.told_proof,
            ),
        )
