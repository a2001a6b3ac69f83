"""What an owner has asked, and what a short answer to it says."""

from typing import NamedTuple

from tenure.base.instants import Instant
from tenure.protocol.lease.messages import (
    Copy,
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
    """Its answer says that everything is returned."""
    copies: tuple[Copy, ...]
    """Those that its answer tells the fate of."""
    renewing: tuple[Leased, ...] | None
    """All that a short request said is held, and its answer renews; None where it was not short."""

    def answered_in_full(
        self, short: ShortResponse, reads_ns: int, fingerprint: bytes
    ) -> LeaseResponse:
        """What a short answer to it would be with a list: everything is as it was."""
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


def request_in_short(whole: LeaseRequest, fingerprint: bytes) -> ShortRequest:
    """One that says the same, where there is nothing to say but what is held."""
    return ShortRequest(
        pool=whole.pool,
        incarnation=whole.incarnation,
        owner_nonce=whole.owner_nonce,
        manager_nonce=whole.manager_nonce,
        sequence=whole.sequence,
        journal=whole.journal,
        leadership=whole.leadership,
        fingerprint=fingerprint,
        load=whole.load,
        receipt=whole.receipt,
    )
