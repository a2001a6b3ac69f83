"""The kinds of notes that a lookup makes."""

from enum import unique

from tenure.base.noted import Level, NotedKind


@unique
class LookupKind(NotedKind):
    """All kinds of a lookup's notes."""

    IN_CONTACT = "in contact", Level.INFO
    OUT_OF_CONTACT = "out of contact", Level.WARNING
    CHANGED = "table changed", Level.DEBUG
    OLD_ANSWER = "old answer", Level.DEBUG
    GOING_BACK = "going back", Level.DEBUG
    LATE_ANSWER = "answered too late", Level.DEBUG
    GAP = "gap in changes", Level.DEBUG
    REFUSED_NO_POOL = "refused: no_pool", Level.WARNING, True
    ANOTHER_LEADER = "another leader of the same journal", Level.DEBUG
    TWO_LEADERS = "two journals have living leaders", Level.ERROR, True
    WRONG_REALM = "another realm", Level.ERROR, True
