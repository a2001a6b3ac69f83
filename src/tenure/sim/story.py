"""What happened lately, for people: kept cheaply, told only when a run fails."""

from collections import deque
from typing import Any
from zlib import crc32

from tenure.base.instants import in_seconds
from tenure.sim.words import in_words

KEPT = 600


class Story:
    """The last events of a run, and a fingerprint of all of them."""

    def __init__(self) -> None:
        self.fingerprint = 0
        self._events: deque[tuple[int, str, str, Any]] = deque(maxlen=KEPT)

    def tell(self, real: int, who: str, what: str, detail: Any = "") -> None:
        """Note an event; `detail` is turned into text only when it is told."""
        self.fingerprint = crc32(f"{real} {who} {what}".encode(), self.fingerprint)
        self._events.append((real, who, what, detail))

    def lines(self, most: int, *, lookups: bool = True) -> list[str]:
        """The last events, oldest first, with or without those of lookups."""
        events = [event for event in self._events if lookups or not _is_of_a_lookup(event)]
        return [_line(*event) for event in events[-most:]]


def _is_of_a_lookup(event: tuple[int, str, str, Any]) -> bool:
    _, who, what, _ = event
    return who.startswith("l") or what.startswith("gets Sync ")


def _line(real: int, who: str, what: str, detail: Any) -> str:
    text = in_words(detail)
    return f"{in_seconds(real):12.3f}  {who:<8} {what}{': ' + text if text else ''}"
