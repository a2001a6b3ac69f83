"""A journal that fails is told of once, and once when it is back."""

from tenure.base.noted import Noted
from tenure.protocol.lease.records import JournalEvent, WaitedOut
from tenure.protocol.log.journal import (
    Appended,
    Beat,
    Beaten,
    Campaign,
    Campaigned,
    Committed,
    Followed,
    JournalFailed,
    Load,
    Mandate,
    ReadSeat,
    Seat,
    SeatRead,
    Unknown,
)
from tenure.protocol.log.journal_health import JournalHealth
from tenure.protocol.log.noted import LogKind

SEAT = Seat(1, 0, "a", 1)
DEAD = Noted(LogKind.JOURNAL_FAILED, detail="dead")
UNKNOWN = Noted(LogKind.APPEND_UNKNOWN, detail="full")
BACK = Noted(LogKind.JOURNAL_BACK)
BEAT_FAILED: JournalEvent = JournalFailed(Beat(Mandate(77, 1), 1), "dead")
BEATEN: JournalEvent = Beaten(1, 1, kept=True)
APPEND_FAILED: JournalEvent = Appended(1, 0, Unknown("full"))
COMMITTED: JournalEvent = Appended(1, 0, Committed(1))


def told(*events: JournalEvent) -> list[Noted]:
    health = JournalHealth()
    return [noted for event in events for noted in health.hear(event)]


def test_a_journal_that_dies_and_comes_back_is_told_of_once_each() -> None:
    assert told(BEATEN, SeatRead(SEAT), COMMITTED) == []
    lost = [BEAT_FAILED, APPEND_FAILED, BEAT_FAILED, APPEND_FAILED]
    assert told(*lost) == [DEAD]
    assert told(*lost, BEATEN, COMMITTED, BEATEN, BEAT_FAILED) == [DEAD, BACK, DEAD]


def test_a_beat_that_finds_room_does_not_say_that_records_do() -> None:
    assert told(*[APPEND_FAILED, BEATEN] * 3) == [UNKNOWN]
    assert told(*[APPEND_FAILED, BEATEN] * 3, COMMITTED) == [UNKNOWN, BACK]
    assert told(APPEND_FAILED, Beaten(1, 1, kept=False)) == [UNKNOWN, BACK]  # another leads


def test_a_seat_that_can_be_read_does_not_say_that_it_can_be_taken() -> None:
    lost: JournalEvent = JournalFailed(Campaign(SEAT, SEAT), "dead")
    nothing_new: JournalEvent = Followed(0, 7, 3, ())
    assert told(*[lost, SeatRead(SEAT), nothing_new] * 3) == [DEAD]
    assert told(lost, SeatRead(SEAT), Campaigned(2, None)) == [DEAD, BACK]
    assert told(lost, Followed(0, 7, 3, (WaitedOut(),))) == [DEAD, BACK]


def test_a_standby_tells_of_what_it_cannot_read() -> None:
    failed: list[JournalEvent] = [JournalFailed(ReadSeat(), "dead"), JournalFailed(Load(0), "dead")]
    assert told(*failed, SeatRead(SEAT), *failed) == [DEAD]
    assert told(*failed, SeatRead(SEAT), Followed(0, 7, 3, ())) == [DEAD, BACK]
