"""The journal of a simulated world: durable whatever happens to managers, or gone with its process.

Every call takes time before it takes effect and again before its answer arrives, so managers can be
stopped, killed or overtaken in between; answers get lost, and then it is not known whether the call
took effect.
"""

from collections.abc import Callable
from random import Random

from leasehold.base.instants import MILLISECOND_NS
from leasehold.protocol.lease.journal import (
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
    JournalAction,
    JournalEvent,
    JournalFailed,
    Load,
    Loaded,
    ReadSeat,
    Resign,
    Seat,
    SeatRead,
    Unknown,
)
from leasehold.protocol.lease.records import AnyRecord, State

NONCE_LIMIT = 1 << 63


class JournalContents:
    """What the journal holds, and its compare-and-set semantics; the contract's own words."""

    def __init__(
        self, random: Random, on_commit: Callable[["JournalContents", AnyRecord], None]
    ) -> None:
        self.journal = random.randrange(1, NONCE_LIMIT)
        self.on_commit = on_commit
        self.seat = Seat()
        self.state = State()
        self.state_lsn = 0
        self.records: list[AnyRecord] = []

    @property
    def lsn(self) -> int:
        """That of the last record."""
        return self.state_lsn + len(self.records)

    def carry_out(self, action: JournalAction) -> JournalEvent | None:
        """Let `action` take effect; its answer."""
        match action:
            case ReadSeat():
                return SeatRead(self.seat)
            case Campaign(seen=seen, taken=taken):
                won = self.seat == seen
                self.seat = taken if won else self.seat
                return Campaigned(taken.leadership, won)
            case Beat(leadership=leadership, beat=beat):
                kept = self._leads(leadership)
                if kept:
                    self.seat = Seat(leadership, beat, self.seat.manager, self.seat.watch_ns)
                return Beaten(leadership, beat, kept)
            case Resign(leadership=leadership):
                if self._leads(leadership):
                    self.vacate()
                return None
            case Load(leadership=leadership):
                records = tuple(self.records)
                return Loaded(leadership, self.journal, self.state, self.state_lsn, records)
            case Append(leadership=leadership, after_lsn=after_lsn):
                return Appended(leadership, after_lsn, self._append(action))
            case Compact():
                self._compact(action)
                return None

    def _leads(self, leadership: int) -> bool:
        return self.seat.leadership == leadership and self.seat.manager != ""

    def vacate(self) -> None:
        """Nobody leads: who did has resigned, or was revoked early."""
        self.seat = Seat(self.seat.leadership, self.seat.beat, "", self.seat.watch_ns)

    def _append(self, action: Append) -> AppendResult:
        if not self._leads(action.leadership):
            return Deposed()
        if action.after_lsn < self.lsn:
            kept = self.records[action.after_lsn - self.state_lsn :]
            assert tuple(kept) == action.records, "two writers under one leadership"
            return Committed(self.lsn)
        assert action.after_lsn == self.lsn, "an append after records that are not there"
        for record in action.records:
            self.records.append(record)
            self.on_commit(self, record)
        return Committed(self.lsn)

    def _compact(self, action: Compact) -> None:
        if self._leads(action.leadership) and self.state_lsn < action.lsn <= self.lsn:
            self.records = self.records[action.lsn - self.state_lsn :]
            self.state, self.state_lsn = action.state, action.lsn


def failure_of(action: JournalAction, why: str) -> JournalEvent | None:
    """What a caller hears of a call whose answer is lost."""
    match action:
        case Append(leadership=leadership, after_lsn=after_lsn):
            return Appended(leadership, after_lsn, Unknown(why))
        case Resign() | Compact():
            return None
        case _:
            return JournalFailed(action, why)


LATENCY_NS = 2 * MILLISECOND_NS
"""About an fsync."""
