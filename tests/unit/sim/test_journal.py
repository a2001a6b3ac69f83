"""The simulated journal keeps the contract that real ones keep."""

from collections.abc import Callable
from random import Random
from types import NoneType
from typing import TypeVar

import pytest

from tenure.errors import JournalDamaged
from tenure.journals.contract import History, Tail, went_back
from tenure.protocol.lease.records import AnyRecord, State, WaitedOut
from tenure.protocol.log.journal import (
    Append,
    Appended,
    AppendResult,
    Beat,
    Beaten,
    Campaign,
    Campaigned,
    Compact,
    Followed,
    JournalAction,
    Load,
    Loaded,
    ReadSeat,
    Resign,
    Seat,
    SeatRead,
    Unknown,
)
from tenure.sim.journal import JournalContents, failure_of
from tenure.testing.contracts.journal import JournalContract, MakeJournal

T = TypeVar("T")


class Handle:
    """The simulated journal, with the face of a real one."""

    def __init__(self, contents: JournalContents) -> None:
        self.contents = contents

    def _ask(self, action: JournalAction, kind: type[T]) -> T:
        try:
            event = self.contents.carry_out(action)
        except AssertionError as error:
            raise JournalDamaged(str(error)) from error
        assert isinstance(event, kind)
        return event

    async def read_seat(self) -> Seat:
        return self._ask(ReadSeat(), SeatRead).seat

    async def campaign(self, seen: Seat, taken: Seat) -> bool:
        return self._ask(Campaign(seen, taken), Campaigned).won

    async def beat(self, leadership: int, beat: int) -> bool:
        return self._ask(Beat(leadership, beat), Beaten).kept

    async def resign(self, leadership: int) -> None:
        self._ask(Resign(leadership), NoneType)

    async def load(self) -> History:
        event = self._ask(Load(0), Loaded)
        return History(event.journal, event.state, event.state_lsn, event.records)

    async def load_after(self, journal: int, lsn: int) -> History | Tail:
        event = self.contents.carry_out(Load(0, journal, lsn))
        if isinstance(event, Followed):
            return Tail(event.after_lsn, event.records)
        assert isinstance(event, Loaded)
        if event.journal == journal and event.lsn < lsn:
            raise went_back(lsn, event.lsn)
        return History(event.journal, event.state, event.state_lsn, event.records)

    async def append(
        self, leadership: int, after_lsn: int, records: tuple[AnyRecord, ...]
    ) -> AppendResult:
        return self._ask(Append(leadership, after_lsn, records), Appended).result

    async def compact(self, leadership: int, lsn: int, state: State) -> bool:
        self._ask(Compact(leadership, lsn, state), NoneType)
        return self.contents.seat.leadership == leadership and self.contents.seat.manager != ""

    async def close(self) -> None:
        return


def a_journal(on_commit: Callable[..., None] = lambda *_: None) -> JournalContents:
    return JournalContents(Random(1), on_commit)


@pytest.mark.asyncio
class TestSimulated(JournalContract):
    @pytest.fixture
    def make_journal(self) -> MakeJournal:
        contents = a_journal()
        return lambda: Handle(contents)


def test_every_commit_is_told_once() -> None:
    told: list[AnyRecord] = []
    contents = a_journal(lambda _, record: told.append(record))
    contents.carry_out(Campaign(Seat(), Seat(1, 0, "m0")))
    for _ in range(2):
        contents.carry_out(Append(1, 0, (WaitedOut(), WaitedOut())))
    assert told == [WaitedOut(), WaitedOut()]


def test_a_lost_answer_to_an_append_is_unknown() -> None:
    assert failure_of(Append(3, 7, ()), "lost") == Appended(3, 7, Unknown("lost"))
    assert failure_of(Resign(3), "lost") is None
