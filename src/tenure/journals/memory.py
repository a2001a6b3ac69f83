"""A journal in memory: gone with its process, which is PRS's behaviour.

A manager that starts with it knows nothing, so it waits the longest hold before it grants anything,
and everything is lost once. Several managers of one process may share one object: that is how tests
make one manager take over from another.
"""

from threading import Lock

import msgspec

from tenure.journals.contract import (
    History,
    Tail,
    check_campaign,
    draw_identity,
    tail_of,
    wrong_end,
)
from tenure.protocol.lease.records import AnyRecord, State
from tenure.protocol.log.journal import AppendResult, Committed, Deposed, Seat


class MemoryJournal:
    """A `Journal` that lives as long as the object."""

    def __init__(self) -> None:
        self._lock = Lock()  # managers in several threads, each with a loop of its own
        self._identity = draw_identity()
        self._seat = Seat()
        self._state = State()
        self._state_lsn = 0
        self._records: list[tuple[int, AnyRecord]] = []  # each with the leadership that wrote it

    @property
    def _lsn(self) -> int:
        return self._state_lsn + len(self._records)

    async def read_seat(self) -> Seat:
        """See `Journal.read_seat`."""
        with self._lock:
            return self._seat

    async def campaign(self, seen: Seat, taken: Seat) -> bool:
        """See `Journal.campaign`."""
        check_campaign(seen, taken)
        with self._lock:
            if self._seat != seen:
                return False
            self._seat = taken
            return True

    async def beat(self, leadership: int, beat: int) -> bool:
        """See `Journal.beat`."""
        with self._lock:
            if not self._leads(leadership):
                return False
            self._seat = msgspec.structs.replace(self._seat, beat=beat)
            return True

    async def resign(self, leadership: int) -> None:
        """See `Journal.resign`."""
        with self._lock:
            if self._leads(leadership):
                self._seat = msgspec.structs.replace(self._seat, manager="")

    async def load(self) -> History:
        """See `Journal.load`."""
        with self._lock:
            records = tuple(record for _, record in self._records)
            return History(self._identity, self._state, self._state_lsn, records)

    async def load_after(self, journal: int, lsn: int) -> History | Tail:
        """See `Journal.load_after`."""
        return tail_of(await self.load(), journal, lsn)

    async def append(
        self, leadership: int, after_lsn: int, records: tuple[AnyRecord, ...]
    ) -> AppendResult:
        """See `Journal.append`."""
        with self._lock:
            if not self._leads(leadership):
                return Deposed()
            new = [(leadership, record) for record in records]
            if after_lsn == self._lsn:
                self._records += new
            elif not new or new != self._written(after_lsn, len(new)):
                raise wrong_end(after_lsn, self._lsn, leadership)
            return Committed(after_lsn + len(new))

    async def compact(self, leadership: int, lsn: int, state: State) -> bool:
        """See `Journal.compact`."""
        with self._lock:
            if not self._leads(leadership):
                return False
            if lsn > self._lsn:
                raise wrong_end(lsn, self._lsn, leadership)
            if lsn > self._state_lsn:
                del self._records[: lsn - self._state_lsn]
                self._state, self._state_lsn = state, lsn
            return True

    async def close(self) -> None:
        """Nothing: the object may be another manager's too."""

    def _leads(self, leadership: int) -> bool:
        return self._seat.leadership == leadership and self._seat.manager != ""

    def _written(self, after_lsn: int, count: int) -> list[tuple[int, AnyRecord]]:
        first = after_lsn - self._state_lsn
        return self._records[first : first + count] if first >= 0 else []
