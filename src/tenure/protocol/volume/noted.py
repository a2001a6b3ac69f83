"""The kinds of notes that a volume's server and its clients make."""

from enum import unique

from tenure.base.noted import Level, NotedKind


@unique
class VolumeServerKind(NotedKind):
    """All kinds of a server's notes."""

    OPENED = "volume opened", Level.INFO
    WENT_BACK = "memory went back", Level.ERROR
    TERM_ENDED = "volume's term ended", Level.WARNING
    ON_RECORD = "reader on record", Level.DEBUG
    NOT_ON_RECORD = "reader not on record", Level.DEBUG
    FORGOTTEN = "reader forgotten", Level.DEBUG
    OVERLOADED = "reader has too many items", Level.INFO
    DISPLACED = "reader displaced", Level.WARNING, True
    NO_ROOM = "no room for object leases", Level.WARNING, True
    NOT_ACKNOWLEDGED = "item not acknowledged", Level.INFO
    MUTE = "reader mute", Level.WARNING, True
    OLD_REQUEST = "old request", Level.DEBUG
    OVERTAKEN = "load overtaken", Level.DEBUG
    LOAD_FAILED = "load failed", Level.WARNING, True
    BODY_RAISED = "body raised", Level.DEBUG
    DRAINED = "range drained", Level.DEBUG
    TOO_MANY = "too much asked", Level.WARNING, True
    STRANGE_EVENT = "late or unknown result", Level.DEBUG


@unique
class CacheKind(NotedKind):
    """All kinds of a client's notes."""

    IN_TOUCH = "volume lease begun", Level.DEBUG
    UNKNOWN_THERE = "unknown to the server", Level.DEBUG
    OLD_ANSWER = "old answer of a server", Level.DEBUG
    PAST_READER = "item of another reader", Level.DEBUG
    LATE_FILL = "late fill", Level.DEBUG
    ANOTHER_HISTORY = "another history of objects", Level.INFO
    UNREACHABLE = "server unreachable", Level.WARNING, True
    REFUSED = "refused by a server", Level.INFO, True
    GONE_VALUE = "value asked about is gone", Level.DEBUG
