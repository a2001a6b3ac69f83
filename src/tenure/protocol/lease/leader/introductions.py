"""The introduction of a leader: its seal, and what tells it from those of other journals (P25)."""

from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.messages import Introduction
from tenure.protocol.lease.rivalry import Succession, proof_of


def introduction(context: LeaderContext) -> Introduction:
    """The introduction, without what it answers."""
    seal, history = context.seal, context.history
    return Introduction(
        journal=seal.journal,
        leadership=seal.leadership,
        manager_nonce=seal.nonce,
        realm=history.realm,
        granted=history.has_granted,
        succeeds=successions(context),
        over=history.over,
    )


def successions(context: LeaderContext) -> tuple[Succession, ...]:
    """The journals that the leader's goes on from, with the proofs."""
    journal = context.seal.journal
    return tuple(
        Succession(each.journal, proof_of(each, journal)) for each in context.history.predecessors
    )
