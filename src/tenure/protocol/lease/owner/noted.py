"""The kinds of notes that an owner makes about itself."""

from collections.abc import Iterator
from enum import unique

from tenure.base.noted import Level, Noted, NotedKind
from tenure.base.ranges import in_words
from tenure.protocol.lease.messages import LeaseResponse, Poke, RefusalReason


@unique
class OwnerKind(NotedKind):
    JOINED = "joined", Level.INFO
    UNHEARD = "not renewed for half a term", Level.WARNING
    HEARD = "renewed again", Level.WARNING
    GRANTED = "granted", Level.DEBUG
    RECALLED = "recalled", Level.DEBUG
    POKED = "poked", Level.DEBUG
    LAPSED = "lapsed", Level.WARNING
    PAST = "past", Level.WARNING
    ANOTHER_JOURNAL = "another journal", Level.WARNING
    TWO_LEADERS = "two journals have living leaders", Level.ERROR, True
    WRONG_REALM = "another realm", Level.ERROR, True
    ANOTHER_LEADER = "another leader under the same leadership", Level.DEBUG
    LOWER_LEADERSHIP = "lower leadership", Level.DEBUG
    OLD_INTRODUCTION = "old introduction", Level.DEBUG
    OLD_ANSWER = "old answer", Level.DEBUG
    ATTESTED = "attested", Level.DEBUG
    SHARED_ADDRESS = "shares its address", Level.WARNING
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


class News:
    """The parts of messages that are news to an owner; a quiet renewal contains no news."""

    def __init__(self, pool: str) -> None:
        self.pool = pool
        self._has_warned = False

    def of(self, message: LeaseResponse | Poke) -> Iterator[Noted]:
        """The events in a message that have a cause; and, once, that another owner has the same
        address.
        """
        if isinstance(message, Poke):
            if message.cause:
                yield Noted(OwnerKind.POKED, self.pool, "is poked", message.cause)
            return
        if message.same_address and not self._has_warned:
            self._has_warned = True
            detail = (
                f"announces the same address as {message.same_address}: most requests reach the "
                "wrong owner. Give each process an address of its own; see "
                "`tenure docs guides/web-servers`"
            )
            yield Noted(OwnerKind.SHARED_ADDRESS, self.pool, detail)
        if not message.cause:
            return
        for kind, mark in ((OwnerKind.GRANTED, "granted"), (OwnerKind.RECALLED, "recalled")):
            ranges = sum(lease.mark == mark for lease in message.leases)
            if ranges:
                detail = f"is told: {in_words(ranges)} {mark}"
                yield Noted(kind, self.pool, detail, message.cause)
