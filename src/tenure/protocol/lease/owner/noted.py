"""What an owner tells of itself."""

from enum import unique

from tenure.base.noted import Level, NotedKind
from tenure.protocol.lease.messages import RefusalReason


@unique
class OwnerKind(NotedKind):
    """All of it."""

    JOINED = "joined", Level.INFO
    UNHEARD = "not renewed for half a term", Level.WARNING
    HEARD = "renewed again", Level.WARNING
    LAPSED = "lapsed", Level.WARNING
    PAST = "past", Level.WARNING
    ANOTHER_JOURNAL = "another journal", Level.WARNING
    ANOTHER_LEADER = "another leader under the same leadership", Level.DEBUG
    LOWER_LEADERSHIP = "lower leadership", Level.DEBUG
    OLD_INTRODUCTION = "old introduction", Level.DEBUG
    OLD_ANSWER = "old answer", Level.DEBUG
    ATTESTED = "attested", Level.DEBUG
    HAND_OFF_FAILED = "hand-off failed", Level.DEBUG
    REFUSED_PAST = "refused: past", Level.WARNING, True
    REFUSED_NAME = "refused: name_held", Level.WARNING, True
    REFUSED_NO_POOL = "refused: no_pool", Level.WARNING, True
    REFUSED_POOL_KIND = "refused: pool_kind", Level.WARNING, True


REFUSED: dict[RefusalReason, OwnerKind] = {
    "past": OwnerKind.REFUSED_PAST,
    "name_held": OwnerKind.REFUSED_NAME,
    "no_pool": OwnerKind.REFUSED_NO_POOL,
    "pool_kind": OwnerKind.REFUSED_POOL_KIND,
}
"""Under which kind a refusal is counted."""
