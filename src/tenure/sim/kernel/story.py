"""The latest events, for people: kept cheaply, and shown only when a run fails."""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple
from zlib import crc32

from tenure.base.instants import in_seconds

KEPT = 600
LONGEST = 400
"""The most characters of one event that are told: messages may carry kilobytes."""


class Happening(NamedTuple):
    """One event of a story."""

    real: int
    who: str
    what: str
    detail: Any


class Story:
    """The last events of a run, and a fingerprint of all of them."""

    def __init__(self, in_words: Callable[[Any], str] = str) -> None:
        self.in_words = in_words
        """The function that puts details into words."""
        self.fingerprint = 0
        self._events: deque[tuple[int, str, str, Any]] = deque(maxlen=KEPT)

    def tell(self, real: int, who: str, what: str, detail: Any = "") -> None:
        """Note an event; `detail` is turned into text only when it is told."""
        self.fingerprint = crc32(f"{real} {who} {what}".encode(), self.fingerprint)
        self._events.append((real, who, what, detail))

    def lines(
        self, most: int, leaves_out: Callable[[Happening], bool] = lambda _: False
    ) -> list[str]:
        """The last events, oldest first, without those that are to be left out."""
        events = [Happening(*event) for event in self._events]
        kept = [event for event in events if not leaves_out(event)]
        return [self._line(event) for event in kept[-most:]]

    def _line(self, event: Happening) -> str:
        text = self.in_words(event.detail)
        if len(text) > LONGEST:
            text = f"{text[:LONGEST]}... ({len(text):,} characters)"
        said = f"{event.what}{': ' + text if text else ''}"
        return f"{in_seconds(event.real):12.3f}  {event.who:<8} {said}"
