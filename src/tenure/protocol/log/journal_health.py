"""Whether the journal carries out its calls, reported when that changes and not at every call.

A leader beats several times a second, and a journal may be away for an hour. Each kind of call
fails on its own: on a full disk the seat can still be read, and a beat may find room when a record
does not. So a failure is over when a call of the same kind is answered, or one that proves as much.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from tenure.base.noted import Noted
from tenure.protocol.log.journal import (
    Append,
    Appended,
    Beat,
    Beaten,
    Campaign,
    Campaigned,
    Compact,
    Followed,
    JournalFailed,
    Load,
    Loaded,
    LogEvent,
    ReadSeat,
    SeatRead,
    Unknown,
)
from tenure.protocol.log.noted import LogKind

ALL: Final = (ReadSeat, Load, Campaign, Beat, Compact, Append)
ALL_BUT_APPENDS: Final = ALL[:-1]


class JournalHealth:
    """The calls that fail at the moment."""

    def __init__(self) -> None:
        self._failing: dict[type, None] = {}

    def hear(self, event: LogEvent[Any, Any]) -> list[Noted]:
        """The notes to make because of `event`: one at the first failure, and one when all is well
        again.
        """
        match event:
            case JournalFailed(action=action, why=why):
                return self._fails(type(action), Noted(LogKind.JOURNAL_FAILED, detail=why))
            case Appended(result=Unknown(why=why)):
                return self._fails(Append, Noted(LogKind.APPEND_UNKNOWN, detail=why))
            case SeatRead():
                return self._works((ReadSeat,))
            case Loaded() | Followed(records=()):
                return self._works((Load,))
            case Beaten(kept=True):
                return self._works(ALL_BUT_APPENDS)
            case Followed() | Beaten() | Campaigned() | Appended():
                return self._works(ALL)  # records are written, by this manager or another

    def _fails(self, kind: type, first: Noted) -> list[Noted]:
        is_first = not self._failing
        self._failing[kind] = None
        return [first] if is_first else []

    def _works(self, kinds: Iterable[type]) -> list[Noted]:
        had_failed = bool(self._failing)
        for kind in kinds:
            self._failing.pop(kind, None)
        is_back = had_failed and not self._failing
        return [Noted(LogKind.JOURNAL_BACK)] if is_back else []


class MemberHealth(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint, as it says itself. `error` tells why it does not answer, or what it lacks."""

    endpoint: str
    version: str = ""
    is_leader: bool = False
    db_bytes: int = 0
    error: str = ""
