"""Every journal passes the public suite, and does what the simplest of them does."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.errors import JournalDamaged
from tenure.journals import Journal, MemoryJournal, open_journal
from tenure.journals.perform import perform
from tenure.protocol.lease.records import AnyRecord, JournalAction, PromiseLowered, State
from tenure.protocol.log.journal import (
    Append,
    Beat,
    Campaign,
    Campaigned,
    Compact,
    Load,
    Loaded,
    Mandate,
    ReadSeat,
    Resign,
    Seat,
)
from tenure.testing.contracts.journal import JournalContract, MakeJournal, taken_by
from tenure.testing.contracts.restorable import RestorableJournalContract
from tenure.wire.lease_records import LEASE_RECORDS


@pytest.mark.asyncio
class TestMemory(JournalContract):
    @pytest.fixture
    def make_journal(self) -> MakeJournal:
        journal = MemoryJournal(LEASE_RECORDS)
        return lambda: journal


@pytest.mark.asyncio
class TestSqlite(RestorableJournalContract):
    @pytest.fixture
    def make_journal(self, tmp_path: Path) -> Iterator[MakeJournal]:
        opened: list[Journal[AnyRecord, State]] = []

        def make() -> Journal[AnyRecord, State]:
            opened.append(open_journal(f"sqlite:{tmp_path}/journal.sqlite", LEASE_RECORDS))
            return opened[-1]

        yield make
        for journal in opened:
            asyncio.run(journal.close())


OURS = 0
"""Stands in a mandate for the journal at hand, whichever that is."""
SMALL = st.integers(0, 4)
RECORDS = st.lists(st.builds(PromiseLowered, promise_ns=SMALL), max_size=3).map(tuple)
SEATS = st.builds(Seat, SMALL, SMALL, st.sampled_from(["", "http://a"]), SMALL)
MANDATES = st.builds(Mandate, st.sampled_from([OURS, 77]), SMALL)
ACTIONS = st.one_of(
    st.builds(ReadSeat),
    SEATS.map(lambda seen: Campaign(seen, taken_by("http://b", seen))),
    st.builds(Beat, MANDATES, SMALL),
    st.builds(Resign, MANDATES),
    st.builds(Load, SMALL),
    st.builds(Append, MANDATES, SMALL, RECORDS),
    st.builds(Compact, MANDATES, SMALL, st.builds(State, leadership=SMALL)),
)
# Drawn freely, hardly any campaign sees the seat as it is, and then nobody ever leads.
LIKELY = st.sampled_from(["take the seat", "append", "compact"])


async def story(
    journal: Journal[AnyRecord, State], plan: list[JournalAction | str]
) -> list[object]:
    """Return the result of each step; a word stands for the action that is right at that moment."""
    told: list[object] = []
    for step in plan:
        seat, history = await journal.read_seat(), await journal.load()
        mandate = Mandate(history.journal, seat.leadership)
        action: JournalAction
        match step:
            case "take the seat":
                action = Campaign(seat, taken_by("http://a", seat))
            case "append":
                action = Append(mandate, history.lsn, (PromiseLowered(promise_ns=history.lsn),))
            case "compact":
                action = Compact(mandate, history.lsn, State(leadership=history.lsn))
            case str():
                raise AssertionError(step)
            case Beat() | Resign() | Append() | Compact() if step.mandate.journal == OURS:
                drawn = Mandate(history.journal, step.mandate.leadership)
                action = msgspec.structs.replace(step, mandate=drawn)
            case _:
                action = step
        try:
            event = await perform(journal, action)
        except JournalDamaged:
            told.append("damage")
            continue
        if isinstance(event, Loaded):  # the identities differ, as they should
            told.append((event.state, event.state_lsn, event.records))
        elif isinstance(event, Campaigned):
            told.append((event.leadership, event.mandate is not None))
        else:
            told.append(event)
    return told


@settings(max_examples=60)
@given(st.lists(LIKELY | ACTIONS, max_size=20))
def test_sqlite_does_what_memory_does(plan: list[JournalAction | str]) -> None:
    async def both() -> None:
        plain = MemoryJournal(LEASE_RECORDS)
        with TemporaryDirectory() as directory:
            journal = open_journal(f"sqlite:{directory}/journal.sqlite", LEASE_RECORDS)
            try:
                end: list[JournalAction | str] = [ReadSeat(), Load(0)]
                assert await story(journal, plan + end) == await story(plain, plan + end)
            finally:
                await journal.close()

    asyncio.run(both())
