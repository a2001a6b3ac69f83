"""The change log of one pool, with which lookups follow its table (Centrifuge 2.2.1).

It keeps the journal's own order: an LSN here is an LSN there, but records that do not change this
pool's table leave no trace. It is cut at five minutes, as in the paper, and where it has become
longer than the table. A lookup that was away for longer is given the whole table.
"""

from collections import deque
from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.lease.causes import joined
from tenure.protocol.lease.messages import Entry


class Change(NamedTuple):
    """The entries that one record laid over the table."""

    lsn: int
    at: Instant
    entries: tuple[Entry, ...]
    cause: str


class ChangeLog:
    """The changes after `begins_after`; older ones are forgotten."""

    def __init__(self, begins_after: int) -> None:
        self.begins_after = begins_after
        self._changes: deque[Change] = deque()
        self._size = 0

    @property
    def last(self) -> int:
        """The LSN of the last change."""
        return self._changes[-1].lsn if self._changes else self.begins_after

    def add(self, lsn: int, now: Instant, entries: tuple[Entry, ...], cause: str = "") -> None:
        """Note a change."""
        assert lsn > self.last, (lsn, self.last)
        self._changes.append(Change(lsn, now, entries, cause))
        self._size += len(entries)

    def forget_before(self, instant: Instant) -> None:
        """Forget the changes made before `instant`."""
        while self._changes and self._changes[0].at < instant:
            self._forget_first()

    def forget_beyond(self, most: int) -> None:
        """Forget the changes that, with all that followed, laid more than `most` entries."""
        while self._size > most:
            self._forget_first()

    def _forget_first(self) -> None:
        forgotten = self._changes.popleft()
        self.begins_after = forgotten.lsn
        self._size -= len(forgotten.entries)

    def since(self, lsn: int, at_most: int) -> tuple[Entry, ...] | None:
        """The entries laid after `lsn`, in order; None if they are forgotten or over `at_most`."""
        if lsn < self.begins_after:
            return None
        newer: list[tuple[Entry, ...]] = []
        count = 0
        for change in reversed(self._changes):
            if change.lsn <= lsn:
                break
            newer.append(change.entries)
            count += len(change.entries)
            if count > at_most:
                return None
        return tuple(entry for entries in reversed(newer) for entry in entries)

    def causes(self, lsn: int) -> str:
        """The causes of the changes after `lsn`."""
        if lsn >= self.last:
            return ""
        newer = takewhile(lambda change: change.lsn > lsn, reversed(self._changes))
        causes = dict.fromkeys(change.cause for change in newer)
        return joined(*reversed(causes))


def said_last_of_each(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries without those that a later one about just the same keys takes back.

    A range that goes from one owner to another is nobody's in between. Of what they hear at once,
    lookups believe what was said last, and its `since` tells all that was lost.
    """
    said: dict[tuple[Key, Key | None], Entry] = {}
    for entry in entries:
        keys = entry.start, entry.end
        said.pop(keys, None)  # so that it takes the later one's place in the order
        said[keys] = entry
    return tuple(said.values())
