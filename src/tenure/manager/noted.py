"""The notes of a manager's process, beside those of its machine."""

from enum import unique

from tenure.base.noted import Level, NotedKind


@unique
class ServiceKind(NotedKind):
    CONNECTED = "connected", Level.DEBUG
    DISCONNECTED = "disconnected", Level.DEBUG
    INSECURE = "insecure: other machines reach it", Level.WARNING
    NO_COMMON_VERSION = "no common version", Level.INFO
    MALFORMED = "malformed message", Level.WARNING
    OVERSIZED = "oversized message", Level.WARNING
    NOT_ENCODED = "message not encoded", Level.ERROR
    SLOW_PEER = "slow peer disconnected", Level.WARNING
    SILENT_PEER = "silent peer disconnected", Level.WARNING, True
    NOT_ALLOWED = "request not allowed", Level.WARNING, True
    PEER_REFUSED = "peer refused", Level.WARNING, True
    FLOOD = "too many messages", Level.WARNING
    UNTOLD = "more was refused than is told", Level.WARNING
    TOKEN_GONE = "disconnected: its token is no longer valid", Level.WARNING
    POOL_REFUSED = "pool from the configuration refused", Level.ERROR
    UNWATCHED = "another manager cannot be asked whether it leads", Level.WARNING, True
