"""Claims in an owner's request that were never true in this leader's journal."""

from tenure.protocol.lease.leader.context import Seal
from tenure.protocol.lease.messages import Held, LeaseRequest
from tenure.protocol.lease.table import LeaseTable

NEVER = (
    "this journal never numbered such an owner, or never gave it what it lists; what it holds is "
    "not its own, and it joins anew"
)
"""The refusal that such an owner gets."""


def claims_too_much(
    table: LeaseTable, seal: Seal, message: LeaseRequest, given: tuple[Held, ...]
) -> bool:
    """Whether the incarnation, its leadership, or a number of what it holds cannot be of this
    history, though it shows no receipt of another. `given` lists the ranges that the table gives
    it.

    The number alone proves nothing, since another owner may have it: an incarnation and its nonce
    are journaled together (P9).
    """
    member = table.members.get(message.incarnation)
    return (
        message.leadership > seal.leadership
        or message.incarnation >= table.next_incarnation
        or (member is not None and member.nonce != message.owner_nonce)
        or (
            message.held != given and any(each.number >= table.next_number for each in message.held)
        )
    )
