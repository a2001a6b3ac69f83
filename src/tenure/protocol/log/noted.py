"""The notes of a manager, of any protocol, about its leadership and its journal."""

from enum import unique

from tenure.base.noted import Level, NotedKind


@unique
class LogKind(NotedKind):
    """All kinds of these notes."""

    WON = "won leadership", Level.INFO
    LEADING = "leading", Level.INFO
    DEPOSED = "deposed", Level.WARNING
    RESIGNED = "resigned", Level.INFO
    STARTED_OVER = "started over: what was asked broke off", Level.ERROR
    SILENT = "silent: leadership not proven", Level.WARNING
    DOUBTED = "doubted: a peer has seen a later leadership or LSN", Level.WARNING
    JOURNAL_FAILED = "journal failed", Level.WARNING
    APPEND_UNKNOWN = "append unknown", Level.WARNING
    JOURNAL_BACK = "the journal answers again", Level.INFO
    GAVE_UP = "gave up", Level.ERROR
