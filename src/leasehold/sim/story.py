"""What happened lately, for people: kept cheaply, told only when a run fails."""

from collections import deque
from collections.abc import Iterator
from typing import Any
from zlib import crc32

from leasehold.base.instants import in_seconds

KEPT = 400


class Story:
    """The last events of a run, and a fingerprint of all of them."""

    def __init__(self) -> None:
        self.fingerprint = 0
        self._events: deque[tuple[int, str, str, Any]] = deque(maxlen=KEPT)

    def tell(self, real: int, who: str, what: str, detail: Any = "") -> None:
        """Note an event; `detail` is turned into text only when it is told."""
        self.fingerprint = crc32(f"{real} {who} {what}".encode(), self.fingerprint)
        self._events.append((real, who, what, detail))

    def lines(self, most: int) -> Iterator[str]:
        """The last events, oldest first."""
        for real, who, what, detail in list(self._events)[-most:]:
            text = _short(detail)
            yield f"{in_seconds(real):12.3f}  {who:<10} {what}{': ' + text if text else ''}"


def _short(detail: Any) -> str:
    text = str(detail)
    return text if len(text) <= 150 else text[:147] + "..."
