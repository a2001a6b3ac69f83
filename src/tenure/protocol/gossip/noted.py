"""The kinds of notes that a gossiper makes."""

from enum import unique

from tenure.base.noted import Level, NotedKind


@unique
class GossiperKind(NotedKind):
    """All kinds of a gossiper's notes."""

    MET = "node met", Level.DEBUG
    CONVICTED = "node convicted", Level.WARNING
    ACQUITTED = "node acquitted", Level.INFO
    RESTARTED = "node restarted", Level.INFO
    WENT_BACK = "node's disk went back", Level.ERROR, True
    OWN_DISK_WENT_BACK = "own disk went back", Level.ERROR, True
    SAME_ID = "earlier or other life of this node is known", Level.WARNING
    CLOCK_OFF = "node's clock is off", Level.WARNING, True
    OWN_PAUSE = "own process stood still", Level.INFO
    REMOVED = "message of a removed node", Level.DEBUG
    TOO_MANY = "too many nodes", Level.WARNING, True
