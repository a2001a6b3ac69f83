"""A journal in memory: lost with its process, as in PRS.

A manager that starts with it knows nothing, so it waits for the longest hold before it grants
anything, and each restart loses all state once. Several managers of one process may share one
object: that is how tests make one manager take over from another.

`JournalContents` keeps the promises of every journal, at once. The simulator runs it too, on a disk
that fails, is slow, and loses answers.
"""

from collections.abc import Callable
from random import Random, SystemRandom
from threading import Lock
from typing import Generic, TypeVar

import msgspec

from tenure.journals.contract import Tail, WholeLog, check_campaign, went_back, wrong_end
from tenure.protocol.log.journal import (
    Append,
    Appended,
    AppendResult,
    Beat,
    Beaten,
    Campaign,
    Campaigned,
    Committed,
    Compact,
    Deposed,
    Followed,
    Load,
    Loaded,
    LogAction,
    LogEvent,
    Mandate,
    R,
    ReadSeat,
    Resign,
    S,
    Seat,
    SeatRead,
)
from tenure.wire.journal_codec import JournalCodec

T = TypeVar("T")


class JournalContents(Generic[R, S]):
    """A log and its seat; each action takes effect when it is carried out."""

    def __init__(
        self,
        random: Random,
        state: S,
        on_commit: Callable[["JournalContents[R, S]", R], None] = lambda *_: None,
    ) -> None:
        self.journal = random.randrange(1, 1 << 63)
        self.on_commit = on_commit
        self.seat = Seat()
        self.state = state
        self.state_lsn = 0
        self._written: list[tuple[int, R]] = []  # each with the leadership that wrote it

    @property
    def lsn(self) -> int:
        """The LSN of the last record."""
        return self.state_lsn + len(self._written)

    @property
    def records(self) -> tuple[R, ...]:
        """The records that the snapshot does not hold."""
        return tuple(record for _, record in self._written)

    def carry_out(self, action: LogAction[R, S]) -> LogEvent[R, S] | None:
        """Let `action` take effect; its answer. Raises JournalDamaged."""
        match action:
            case ReadSeat():
                return SeatRead(self.seat)
            case Campaign(seen=seen, taken=taken):
                won = self.seat == seen
                self.seat = taken if won else self.seat
                mandate = Mandate(self.journal, taken.leadership)
                return Campaigned(taken.leadership, mandate if won else None)
            case Beat(mandate=mandate, beat=beat):
                kept = self.leads(mandate)
                if kept:
                    self.seat = msgspec.structs.replace(self.seat, beat=beat)
                return Beaten(mandate.leadership, beat, kept)
            case Resign(mandate=mandate):
                if self.leads(mandate):
                    self.vacate()
                return None
            case Load():
                return self._load(action)
            case Append(mandate=mandate, after_lsn=after_lsn):
                return Appended(mandate.leadership, after_lsn, self._append(action))
            case Compact():
                self._compact(action)
                return None

    def leads(self, mandate: Mandate) -> bool:
        """Whether the mandate is of this journal, and has the seat."""
        has_seat = self.seat.leadership == mandate.leadership and self.seat.manager != ""
        return self.journal == mandate.journal and has_seat

    def vacate(self) -> None:
        """Vacate the seat: the leader has resigned, or was revoked early."""
        self.seat = Seat(self.seat.leadership, self.seat.beat, "", self.seat.watch_ns)

    def _load(self, load: Load) -> Loaded[R, S] | Followed[R]:
        first = load.after_lsn - self.state_lsn
        if load.journal != self.journal or not 0 <= first <= len(self._written):
            who = load.leadership
            return Loaded(who, self.journal, self.state, self.state_lsn, self.records)
        records = tuple(record for _, record in self._written[first:])
        return Followed(load.leadership, self.journal, load.after_lsn, records)

    def _append(self, action: Append[R]) -> AppendResult:
        if not self.leads(action.mandate):
            return Deposed()
        if action.after_lsn == self.lsn:
            self.write(action)
        elif not self.has(action):
            raise wrong_end(action.after_lsn, self.lsn, action.mandate.leadership)
        return Committed(action.after_lsn + len(action.records))

    def has(self, action: Append[R]) -> bool:
        """Whether this very append took effect before: it is repeated."""
        new, first = _signed(action), action.after_lsn - self.state_lsn
        return bool(new) and first >= 0 and new == self._written[first : first + len(new)]

    def write(self, action: Append[R]) -> None:
        """Put its records at the end."""
        self._written += _signed(action)
        for record in action.records:
            self.on_commit(self, record)

    def _compact(self, action: Compact[S]) -> None:
        if not self.leads(action.mandate):
            return
        if action.lsn > self.lsn:
            raise wrong_end(action.lsn, self.lsn, action.mandate.leadership)
        if action.lsn > self.state_lsn:
            del self._written[: action.lsn - self.state_lsn]
            self.state, self.state_lsn = action.state, action.lsn


def _signed(action: Append[R]) -> list[tuple[int, R]]:
    return [(action.mandate.leadership, record) for record in action.records]


class MemoryJournal(Generic[R, S]):
    """A `Journal` that lives as long as the object."""

    def __init__(self, codec: JournalCodec[R, S], state: S | None = None) -> None:
        """A new journal, which begins with a state where one is given."""
        self._lock = Lock()  # managers in several threads, each with a loop of its own
        self._contents = JournalContents[R, S](
            SystemRandom(), codec.empty if state is None else state
        )

    async def read_seat(self) -> Seat:
        return self._ask(ReadSeat(), SeatRead).seat

    async def campaign(self, seen: Seat, taken: Seat) -> Mandate | None:
        check_campaign(seen, taken)
        return self._ask(Campaign(seen, taken), Campaigned).mandate

    async def beat(self, mandate: Mandate, beat: int) -> bool:
        return self._ask(Beat(mandate, beat), Beaten).kept

    async def resign(self, mandate: Mandate) -> None:
        with self._lock:
            self._contents.carry_out(Resign(mandate))

    async def load(self) -> WholeLog[R, S]:
        return _whole(self._ask(Load(0), Loaded))

    async def load_after(self, journal: int, lsn: int) -> WholeLog[R, S] | Tail[R]:
        with self._lock:
            found = self._contents.carry_out(Load(0, journal, lsn))
        if isinstance(found, Followed):
            return Tail(found.after_lsn, found.records)
        assert isinstance(found, Loaded)
        if found.journal == journal and lsn > found.lsn:
            raise went_back(lsn, found.lsn)
        return _whole(found)

    async def append(
        self, mandate: Mandate, after_lsn: int, records: tuple[R, ...]
    ) -> AppendResult:
        return self._ask(Append(mandate, after_lsn, records), Appended).result

    async def compact(self, mandate: Mandate, lsn: int, state: S) -> bool:
        with self._lock:
            self._contents.carry_out(Compact(mandate, lsn, state))
            return self._contents.leads(mandate)

    async def close(self) -> None:
        """Do nothing: the object may be another manager's too."""

    def _ask(self, action: LogAction[R, S], kind: type[T]) -> T:
        with self._lock:
            event = self._contents.carry_out(action)
        assert isinstance(event, kind)
        return event


def _whole(found: Loaded[R, S]) -> WholeLog[R, S]:
    return WholeLog(found.journal, found.state, found.state_lsn, found.records)
