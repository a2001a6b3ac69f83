"""Every action has its event, and every error of a journal its place."""

import asyncio

import pytest

from tenure.errors import (
    JournalDamaged,
    JournalError,
    JournalTooNew,
    JournalUnwritable,
    JournalWentBack,
)
from tenure.journals import MemoryJournal, perform
from tenure.protocol.lease.records import AnyRecord, JournalAction, JournalEvent, State, WaitedOut
from tenure.protocol.log.journal import (
    Append,
    Appended,
    Beat,
    Beaten,
    Campaign,
    Campaigned,
    Committed,
    Compact,
    Deposed,
    JournalFailed,
    Load,
    Loaded,
    Mandate,
    ReadSeat,
    Resign,
    Seat,
    SeatRead,
    Unknown,
)
from tenure.wire.lease_records import LEASE_RECORDS

SEAT = Seat(1, 0, "http://a", 5)
MANDATE = Mandate(77, 1)
RECORDS = (WaitedOut(), WaitedOut())
EVERY_ACTION: list[JournalAction] = [
    ReadSeat(),
    Campaign(Seat(), SEAT),
    Beat(MANDATE, 2),
    Append(MANDATE, 0, RECORDS),
    Compact(MANDATE, 1, State(leadership=1)),
    Load(1),
    Resign(MANDATE),
]


class Refusing(MemoryJournal[AnyRecord, State]):
    """A journal that raises, whatever it is asked."""

    def __init__(self, error: JournalError) -> None:
        super().__init__(LEASE_RECORDS)
        self.error = error

    def __getattribute__(self, name: str) -> object:
        found = super().__getattribute__(name)
        if name.startswith("_") or name == "error":
            return found
        raise self.error


def events(actions: list[JournalAction]) -> list[JournalEvent | None]:
    async def one_after_another() -> list[JournalEvent | None]:
        journal = MemoryJournal(LEASE_RECORDS)
        journal._contents.journal = MANDATE.journal
        return [await perform(journal, action) for action in actions]

    return asyncio.run(one_after_another())


def test_every_action_is_carried_out_and_answered() -> None:
    *before, loaded, resigned = events(EVERY_ACTION)
    assert before == [
        SeatRead(Seat()),
        Campaigned(1, MANDATE),
        Beaten(1, 2, kept=True),
        Appended(1, 0, Committed(2)),
        None,
    ]
    assert isinstance(loaded, Loaded)
    assert loaded == Loaded(1, loaded.journal, State(leadership=1), 1, RECORDS[1:])
    assert resigned is None


def test_what_the_guard_refuses_is_answered() -> None:
    assert events(
        [Campaign(SEAT, Seat(2, 0, "http://b")), Beat(MANDATE, 2), Append(MANDATE, 0, RECORDS)]
    ) == [
        Campaigned(2, None),
        Beaten(1, 2, kept=False),
        Appended(1, 0, Deposed()),
    ]


@pytest.mark.parametrize("action", EVERY_ACTION)
def test_what_may_pass_is_an_event(action: JournalAction) -> None:
    expected: JournalEvent = JournalFailed(action, "no space")
    if isinstance(action, Append):
        expected = Appended(1, 0, Unknown("no space"))
    for error in (JournalError("no space"), JournalUnwritable("no space")):
        assert asyncio.run(perform(Refusing(error), action)) == expected


@pytest.mark.parametrize("action", EVERY_ACTION)
@pytest.mark.parametrize("kind", [JournalDamaged, JournalTooNew, JournalWentBack])
def test_what_does_not_pass_is_raised(action: JournalAction, kind: type[JournalError]) -> None:
    with pytest.raises(kind):
        asyncio.run(perform(Refusing(kind("garbage")), action))
