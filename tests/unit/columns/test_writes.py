"""One write of a handle: its version is drawn once, and no outcome is told wrongly (R4, D9)."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from tenure.columns.backends.contract import Backend
from tenure.columns.backends.embedded import EmbeddedBackend
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.requests import RowMutation
from tenure.columns.tables import Family, Table
from tenure.columns.writes import MOST_DRAWS, RowWrite
from tenure.errors import (
    ConfigurationError,
    Fenced,
    NotEnoughReplicas,
    Overloaded,
    TenureError,
    TooLate,
    WriteUnknown,
)
from tenure.protocol.replication.clock import WriteClock
from tenure.protocol.replication.row.admission import Ahead, Attempt, Late, Outranked, Refused
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.limits import AHEAD_US
from tenure.protocol.replication.row.versions import Version

EDITS = (Edit("f", None, b"n", b"v"),)
FAMILY = Family(columns=bytes)
ORDERED = Table("ordered", f=FAMILY)
NOW = 1_000_000
Outcome = Refused | TenureError | None
LOST = WriteUnknown("the node is gone")


class Scripted(EmbeddedBackend):
    """A backend whose outcomes are given in advance."""

    def __init__(self, *outcomes: Outcome, newest: int = 0) -> None:
        super().__init__(MemoryEngine, [])
        self.outcomes = list(outcomes)
        self.newest = newest
        self.floors: list[int] = []
        self.attempts: list[Attempt] = []

    async def draw(self, mutation: RowMutation, floor: int) -> Attempt:
        self.floors.append(floor)
        time = max(self.newest + 1, floor) + len(self.floors)
        return Attempt(Version(0, time), above=self.newest)

    async def write(self, mutation: RowMutation, attempt: Attempt) -> Refused | None:
        self.attempts.append(attempt)
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if isinstance(outcome, TenureError):
            raise outcome
        return outcome


def write_of(backend: Backend, table: Table = ORDERED, **how: int) -> RowWrite:
    mutation = RowMutation(table, b"k", EDITS, **how)  # type: ignore[arg-type]
    return RowWrite(backend, WriteClock(), lambda: NOW, mutation)


async def outcome_of(write: RowWrite) -> Version | type[TenureError]:
    try:
        return await write
    except TenureError as error:
        return type(error)


def test_a_repeat_says_exactly_the_same_again() -> None:
    async def repeated() -> None:
        backend = Scripted(LOST, LOST, newest=2 * NOW)
        write = write_of(backend)
        for _ in range(2):
            with pytest.raises(WriteUnknown):
                await write.repeat()
        version = await write.repeat()
        assert [each.version for each in backend.attempts] == [version] * 3
        assert version.time > 2 * NOW
        assert len(backend.floors) == 1

    asyncio.run(repeated())


@pytest.mark.parametrize(
    ("table", "how", "rounds"),
    [
        (ORDERED, {}, 1),
        (ORDERED, {"level": "one"}, 0),
        (ORDERED, {"time": 5}, 0),
        (ORDERED, {"number": 3, "journal": 1}, 0),
        (Table("clock", writes="clock", f=FAMILY), {}, 0),
    ],
)
def test_a_first_round_is_made_where_writes_are_ordered(
    table: Table, how: Mapping[str, int], rounds: int
) -> None:
    backend = Scripted()
    asyncio.run(outcome_of(write_of(backend, table, **how)))
    assert len(backend.floors) == rounds


def test_an_owner_writes_above_what_the_row_had() -> None:
    backend = Scripted()
    version = asyncio.run(outcome_of(write_of(backend, number=3, journal=1, above=5 * NOW)))
    assert version == Version(3, 5 * NOW + 1)


CASES: Sequence[tuple[Sequence[Outcome], type[TenureError] | None]] = [
    ([Late(3 * NOW)], None),
    ([Ahead(NOW + AHEAD_US)], None),
    ([Ahead(NOW - 1)], ConfigurationError),
    ([NotEnoughReplicas("two are down")], NotEnoughReplicas),
    ([Overloaded("too much")], Overloaded),
    ([Outranked(7, 1)], Fenced),
    ([LOST, NotEnoughReplicas("two are down")], WriteUnknown),
    ([LOST, Overloaded("too much")], WriteUnknown),
    ([LOST, Late(3 * NOW)], WriteUnknown),
    ([LOST, Ahead(NOW - 1)], WriteUnknown),
    ([LOST, Outranked(7, 1)], Fenced),
    ([LOST, None], None),
]


@pytest.mark.parametrize(("outcomes", "told"), CASES)
def test_what_was_sent_once_is_never_said_to_be_nowhere(
    outcomes: Sequence[Outcome], told: type[TenureError] | None
) -> None:
    """The second outcome is that of a repeat: of a write that some replica may have."""

    async def repeated() -> Version | type[TenureError]:
        write = write_of(Scripted(*outcomes))
        return [await outcome_of(write) for _ in outcomes][-1]

    ended = asyncio.run(repeated())
    assert isinstance(ended, Version) if told is None else ended is told


def test_a_time_of_ones_own_is_never_replaced() -> None:
    backend = Scripted(Late(9))
    assert asyncio.run(outcome_of(write_of(backend, time=5))) is TooLate
    assert [each.version.time for each in backend.attempts] == [5]


def test_a_version_that_replicas_always_refuse_is_not_drawn_for_ever() -> None:
    backend = Scripted(*[Ahead(NOW + AHEAD_US)] * 100)
    assert asyncio.run(outcome_of(write_of(backend))) is ConfigurationError
    assert len(backend.attempts) == MOST_DRAWS


def test_a_cancelled_write_may_be_there() -> None:
    async def cancelled() -> None:
        backend = Hanging()
        write = write_of(backend)
        task = asyncio.ensure_future(outcome_of(write))
        await backend.begun.wait()
        task.cancel()
        await asyncio.wait([task])
        backend.outcomes = [NotEnoughReplicas("two are down")]
        assert await outcome_of(write) is WriteUnknown
        assert backend.attempts[0] == backend.attempts[1]

    asyncio.run(cancelled())


class Hanging(Scripted):
    """The first write is never answered."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()

    async def write(self, mutation: RowMutation, attempt: Attempt) -> Refused | None:
        if not self.begun.is_set():
            self.attempts.append(attempt)
            self.begun.set()
            await asyncio.Event().wait()
        return await super().write(mutation, attempt)
