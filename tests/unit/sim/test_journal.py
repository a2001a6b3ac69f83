"""The simulated journal keeps the contract that real ones keep."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from leasehold.errors import JournalDamaged
from leasehold.manager.journals.contract import History
from leasehold.protocol.lease.journal import (
    Append,
    Appended,
    AppendResult,
    Beat,
    Beaten,
    Campaign,
    Campaigned,
    Compact,
    Load,
    Loaded,
    ReadSeat,
    Resign,
    Seat,
    SeatRead,
    Unknown,
)
from leasehold.protocol.lease.records import AnyRecord, State, WaitedOut
from leasehold.sim.journal import JournalContents, failure_of
from leasehold.testing.contracts.journal import JournalContract


class Handle:
    """The simulated journal, with the face of a real one."""

    def __init__(self, contents: JournalContents) -> None:
        self.contents = contents

    def _ask(self, action: Any) -> Any:
        try:
            return self.contents.carry_out(action)
        except AssertionError as error:
            raise JournalDamaged(str(error)) from error

    async def read_seat(self) -> Seat:
        event: SeatRead = self._ask(ReadSeat())
        return event.seat

    async def campaign(self, seen: Seat, taken: Seat) -> bool:
        event: Campaigned = self._ask(Campaign(seen, taken))
        return event.won

    async def beat(self, leadership: int, beat: int) -> bool:
        event: Beaten = self._ask(Beat(leadership, beat))
        return event.kept

    async def resign(self, leadership: int) -> None:
        self._ask(Resign(leadership))

    async def load(self) -> History:
        event: Loaded = self._ask(Load(0))
        return History(event.journal, event.state, event.state_lsn, event.records)

    async def append(
        self, leadership: int, after_lsn: int, records: tuple[AnyRecord, ...]
    ) -> AppendResult:
        event: Appended = self._ask(Append(leadership, after_lsn, records))
        return event.result

    async def compact(self, leadership: int, lsn: int, state: State) -> bool:
        before = self.contents.state_lsn
        self._ask(Compact(leadership, lsn, state))
        return self.contents.state_lsn != before or lsn == before

    async def close(self) -> None:
        return


def a_journal(on_commit: Callable[..., None] = lambda *_: None) -> JournalContents:
    return JournalContents(Random(1), on_commit)


@pytest.mark.asyncio
class TestSimulated(JournalContract):
    @pytest.fixture
    def make_journal(self) -> Any:
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
