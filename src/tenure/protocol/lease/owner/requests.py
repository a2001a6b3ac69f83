"""The requests of an owner, short or in full; and what a short answer means."""

from typing import NamedTuple

from tenure.base.instants import Instant
from tenure.protocol.lease.messages import (
    Copy,
    Held,
    Leased,
    LeaseRequest,
    LeaseResponse,
    ShortRequest,
    ShortResponse,
)


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


def request_in_full(
    short: ShortRequest,
    held: tuple[Held, ...],
    copies: tuple[Copy, ...],
    letting_go: tuple[Held, ...],
    *,
    leaving: bool,
) -> LeaseRequest:
    """The same request with all that its owner lists, where that is not what a fingerprint says."""
    return LeaseRequest(
        pool=short.pool,
        incarnation=short.incarnation,
        owner_nonce=short.owner_nonce,
        manager_nonce=short.manager_nonce,
        sequence=short.sequence,
        journal=short.journal,
        leadership=short.leadership,
        held=held,
        leaving=leaving,
        copies=copies,
        receipt=short.receipt,
        letting_go=letting_go,
        knows_former=True,
        proves=True,
    )
