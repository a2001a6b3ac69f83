"""The kinds of notes that a leader makes about its pools."""

from enum import unique

from tenure.base.noted import Level, NotedKind
from tenure.protocol.lease.messages import RefusalReason


@unique
class LeaderKind(NotedKind):
    """All kinds of a leader's notes."""

    NOT_FIRST = "not the first start", Level.WARNING
    RIVAL = "another journal has a living leader", Level.ERROR, True
    TOLD_OF_RIVAL = "is told of another journal's leader", Level.ERROR, True
    RIVAL_STAYS = "a journal that is over has a living leader", Level.ERROR, True
    RESOLVED = "resolved", Level.WARNING
    POOL_CREATED = "pool created", Level.INFO
    POOL_DELETED = "pool deleted", Level.INFO
    JOINED = "owner joined", Level.INFO
    LEFT = "owner left", Level.INFO
    EXPIRED = "owner expired", Level.WARNING
    ATTESTED = "owner attested dead", Level.WARNING
    EVICTED = "owner evicted", Level.INFO
    CUT_OFF = "owner's connection broke", Level.DEBUG
    GRANTED = "granted", Level.INFO
    RECALLED = "recalled", Level.INFO
    HANDED_OVER = "handed over", Level.INFO
    STEERED = "steered", Level.INFO
    POLICY_FAILED = "policy failed", Level.ERROR, True
    POLICY_HANGS = "policy hangs", Level.WARNING, True
    POLICY_RETURNED = "policy returned after all", Level.INFO
    QUESTION_FAILED = "question failed", Level.ERROR, True
    ASKED_WITNESS = "asked a witness", Level.DEBUG
    STUCK = "owner stuck: its application does not let go of ranges", Level.WARNING
    SHARED_ADDRESS = "owners share an address", Level.WARNING
    WRITE_WAITS = "write waits for caches", Level.WARNING
    WRITE_GOES_ON = "no write waits for caches any more", Level.INFO
    TURN_TAKES_LONG = "turn of an entity takes long", Level.WARNING
    ACCUSED = "said to be gone, may object", Level.DEBUG
    LATE_REQUEST = "late request", Level.DEBUG
    LATE_ATTESTATION = "late attestation", Level.DEBUG
    REFUSED_PAST = "refused: past", Level.WARNING
    REFUSED_NAME = "refused: name_held", Level.WARNING
    REFUSED_NO_POOL = "refused: no_pool", Level.WARNING
    REFUSED_POOL_KIND = "refused: pool_kind", Level.WARNING
    REFUSED_CLAIM = "refused: a lookup claims what is not in the journal", Level.WARNING, True
    REFUSED_ATTESTATION = "refused: attestation", Level.WARNING


REFUSED: dict[RefusalReason, LeaderKind] = {
    "past": LeaderKind.REFUSED_PAST,
    "name_held": LeaderKind.REFUSED_NAME,
    "no_pool": LeaderKind.REFUSED_NO_POOL,
    "pool_kind": LeaderKind.REFUSED_POOL_KIND,
}
"""The kind under which each refusal is counted."""


def place_of(error: Exception) -> str:
    """The place at which the error was raised."""
    raised = error.__traceback__
    while raised is not None and raised.tb_next is not None:
        raised = raised.tb_next
    assert raised is not None
    return f"in line {raised.tb_lineno} of {raised.tb_frame.f_code.co_filename}"
