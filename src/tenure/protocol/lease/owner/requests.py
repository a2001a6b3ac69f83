"""The requests of an owner, short or in full; and what a short answer means."""

from typing import NamedTuple

from tenure.base.instants import MILLISECOND_NS, Instant
from tenure.protocol.lease.messages import (
    Copy,
    Introduction,
    Leased,
    LeaseRequest,
    LeaseResponse,
    ShortRequest,
    ShortResponse,
)
from tenure.protocol.lease.owner.belief import Belief
from tenure.protocol.lease.rivalry import Rival

FIRST_RENEW_NS = 3_000 * MILLISECOND_NS
"""The time between renewals until a manager tells it: the default preset's figure."""
ANSWERS_A_RENEWAL = 3
"""How often a request is repeated, with a new number, before another leader is looked for."""
SHORTEST_PAUSE_NS = 100 * MILLISECOND_NS
"""The shortest pause between requests that only time calls for, whatever a manager says."""
LONGEST_PAUSE_NS = 1_000 * MILLISECOND_NS
"""The longest pause after a refusal: a name may become free when its owner leaves."""


class Request(NamedTuple):
    """The newest request: only its answer is taken."""

    sequence: int
    sent_at: Instant
    manager: str
    is_last: bool
    """Whether its answer says that everything is returned."""
    copies: tuple[Copy, ...]
    """The copies whose fate its answer tells."""
    renewing: tuple[Leased, ...] | None
    """All that a short request said is held, and its answer renews; None where it was not short."""

    def met(self, manager: str, message: Introduction, owner_nonce: int) -> bool:
        """Whether the manager answers it by introducing itself: it leads under another nonce."""
        is_answer = message.owner_nonce == owner_nonce and message.sequence == self.sequence
        return is_answer and manager == self.manager

    def answered_in_full(
        self, short: ShortResponse, reads_ns: int, fingerprint: bytes
    ) -> LeaseResponse:
        """The answer with a list that a short answer stands for: everything is as it was."""
        assert self.renewing is not None
        return LeaseResponse(
            incarnation=short.incarnation,
            owner_nonce=short.owner_nonce,
            sequence=short.sequence,
            manager_nonce=short.manager_nonce,
            journal=short.journal,
            leadership=short.leadership,
            term_ns=short.term_ns,
            renew_ns=short.renew_ns,
            leases=self.renewing,
            receipt=short.receipt,
            reads_ns=reads_ns,
            fingerprint=fingerprint,
        )


class ShownSeal(NamedTuple):
    """What an owner shows its leader with every request."""

    pool: str
    nonces: tuple[int, int]
    """Its own, and the leader's."""
    leadership: int
    fingerprint: bytes
    receipt: bytes


def message_of(
    request: Request,
    belief: Belief,
    shown: ShownSeal,
    rival: Rival | None,
    *,
    leaving: bool,
    waits: bool,
) -> ShortRequest | LeaseRequest:
    """The request as a message: a short one, or all that its owner lists if that is not what a
    fingerprint says.
    """
    owner_nonce, manager_nonce = shown.nonces
    short = ShortRequest(
        pool=shown.pool,
        incarnation=belief.incarnation,
        owner_nonce=owner_nonce,
        manager_nonce=manager_nonce,
        sequence=request.sequence,
        journal=belief.journal,
        leadership=shown.leadership,
        fingerprint=shown.fingerprint,
        receipt=shown.receipt,
    )
    if request.renewing is not None:
        return short
    return LeaseRequest(
        pool=shown.pool,
        incarnation=belief.incarnation,
        owner_nonce=owner_nonce,
        manager_nonce=manager_nonce,
        sequence=request.sequence,
        journal=belief.journal,
        leadership=shown.leadership,
        held=belief.held(),
        leaving=leaving,
        copies=request.copies,
        receipt=shown.receipt,
        letting_go=belief.letting_go(),
        knows_former=True,
        proves=True,
        rival=rival,
        waits=waits,
    )
