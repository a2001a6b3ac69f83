"""What a manager answers to another that looks around: in a service its status says it."""

from tenure.protocol.lease.leader.events import OtherSeen
from tenure.protocol.lease.leader.view import ManagerView


def as_seen(view: ManagerView) -> OtherSeen:
    """The answer of a manager to another that looks around."""
    said = view.rivals
    return OtherSeen(
        manager=view.url,
        journal=view.journal if view.is_proven else 0,
        realm=said.realm,
        granted=said.granted,
        is_over=said.is_over,
        rivals=tuple(each.journal for each in said.rivals if not each.pool),
        over=said.over,
        succeeds=said.succeeds,
    )
