"""The journal of a simulated world: durable whatever happens to managers, or gone with its process.

Every call takes time before it takes effect and again before its answer arrives, so managers can be
stopped, killed or overtaken in between; answers get lost, and then it is not known whether the call
took effect.
"""

from collections.abc import Callable
from random import Random

from tenure.base.instants import MILLISECOND_NS
from tenure.protocol.lease.records import AnyRecord, State
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

JOURNAL = "journal"
"""Its place in the deployment, which managers may be cut from."""
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
        self._written: list[tuple[int, AnyRecord]] = []  # each with the leadership that wrote it

    @property
    def lsn(self) -> int:
        """That of the last record."""
        return self.state_lsn + len(self._written)

    @property
    def records(self) -> tuple[AnyRecord, ...]:
        """Those that the snapshot does not hold."""
        return tuple(record for _, record in self._written)

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
            case Load():
                return self._load(action)
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

    def _load(self, load: Load) -> Loaded | Followed:
        first = load.after_lsn - self.state_lsn
        if load.journal != self.journal or not 0 <= first <= len(self._written):
            who = load.leadership
            return Loaded(who, self.journal, self.state, self.state_lsn, self.records)
        records = tuple(record for _, record in self._written[first:])
        return Followed(load.leadership, self.journal, load.after_lsn, records)

    def _append(self, action: Append) -> AppendResult:
        if not self._leads(action.leadership):
            return Deposed()
        if action.after_lsn != self.lsn:
            assert self.has(action), f"two writers under leadership {action.leadership}"
        else:
            self.write(action)
        return Committed(action.after_lsn + len(action.records))

    def has(self, action: Append) -> bool:
        """Whether this very append took effect before: it is repeated."""
        new, first = _signed(action), action.after_lsn - self.state_lsn
        return bool(new) and first >= 0 and new == self._written[first : first + len(new)]

    def write(self, action: Append) -> None:
        """Put its records at the end."""
        self._written += _signed(action)
        for record in action.records:
            self.on_commit(self, record)

    def _compact(self, action: Compact) -> None:
        if not self._leads(action.leadership):
            return
        assert action.lsn <= self.lsn, "a snapshot of what is not there yet"
        if action.lsn > self.state_lsn:
            del self._written[: action.lsn - self.state_lsn]
            self.state, self.state_lsn = action.state, action.lsn


def _signed(action: Append) -> list[tuple[int, AnyRecord]]:
    return [(action.leadership, record) for record in action.records]


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
