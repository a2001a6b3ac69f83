"""What every journal must do, as tests.

Subclass `JournalContract` in your test suite, give it a fixture `make_journal`, and mark it for the
plugin that runs your coroutines:

    @pytest.mark.asyncio
    class TestMyJournal(JournalContract):
        @pytest_asyncio.fixture
        async def make_journal(self): ...

Each test asks for the fixture once. The fixture begins a new history and yields a function; each
call of that opens another handle of the same history, as another manager would, or the same manager
after a restart. The fixture closes what is still open; closing twice does nothing.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from tenure.errors import JournalDamaged, JournalWentBack
from tenure.journals.contract import Journal, Tail, WholeLog
from tenure.protocol.lease.messages import Entry
from tenure.protocol.lease.records import AnyRecord, PoolState, State
from tenure.protocol.log.journal import Committed, Deposed, Mandate, Seat
from tenure.testing.contracts.records import A_STATE, EVERY_RECORD, numbered

MakeJournal: TypeAlias = Callable[[], Journal[AnyRecord, State]]

WATCH_NS = 1_625_000_000


async def lead(journal: Journal[AnyRecord, State], manager: str = "http://a") -> Mandate:
    """Take the seat."""
    seen = await journal.read_seat()
    mandate = await journal.campaign(seen, taken_by(manager, seen))
    assert mandate is not None
    assert mandate.leadership == seen.leadership + 1
    return mandate


def under(mandate: Mandate, leadership: int) -> Mandate:
    """One of the same journal."""
    return Mandate(mandate.journal, leadership)


def taken_by(manager: str, seen: Seat) -> Seat:
    """The seat after `manager` has taken it."""
    return Seat(seen.leadership + 1, 0, manager, watch_ns=WATCH_NS)


@contextmanager
def damage() -> Iterator[None]:
    """The body raises JournalDamaged."""
    try:
        yield
    except JournalDamaged:
        return
    raise AssertionError("it was not refused as damage")


class JournalContract:
    """Tests that a journal must pass; see the module's docstring."""

    # --- the seat ---------------------------------------------------------------------------

    async def test_a_new_journal_is_empty_and_has_an_identity(
        self, make_journal: MakeJournal
    ) -> None:
        journal = make_journal()
        found = await journal.load()
        assert await journal.read_seat() == Seat()
        assert found == WholeLog(found.journal, State(), 0, ())
        assert 0 < found.journal < 1 << 63

    async def test_who_takes_the_seat_leads_under_the_next_number(
        self, make_journal: MakeJournal
    ) -> None:
        journal = make_journal()
        first, second = Seat(1, 0, "http://a", 5), Seat(2, 0, "http://b", 0)
        assert await journal.campaign(Seat(), first) is not None
        assert await journal.read_seat() == first
        assert await journal.campaign(first, second) is not None
        assert await journal.read_seat() == second

    async def test_the_seat_is_taken_only_as_it_was_seen(self, make_journal: MakeJournal) -> None:
        journal = make_journal()
        leadership = await lead(journal)
        assert await journal.beat(leadership, 5)
        seat = await journal.read_seat()
        for seen in (
            Seat(),
            Seat(0, 5, "http://a", WATCH_NS),
            Seat(1, 4, "http://a", WATCH_NS),
            Seat(1, 5, "", WATCH_NS),
            Seat(1, 5, "http://a", 0),
        ):
            assert await journal.campaign(seen, taken_by("http://b", seen)) is None
            assert await journal.read_seat() == seat

    async def test_of_many_that_race_for_the_seat_one_wins(self, make_journal: MakeJournal) -> None:
        journals = [make_journal() for _ in range(6)]
        for leadership in range(5):
            seen = await journals[0].read_seat()
            assert seen.leadership == leadership
            won = await asyncio.gather(
                *(
                    each.campaign(seen, taken_by(f"http://{i}", seen))
                    for i, each in enumerate(journals)
                )
            )
            [(winning, mandate)] = [(i, each) for i, each in enumerate(won) if each is not None]
            assert mandate.leadership == leadership + 1
            winner = taken_by(f"http://{winning}", seen)
            assert [await each.read_seat() for each in journals] == [winner] * len(journals)

    async def test_a_beat_is_seen_by_others(self, make_journal: MakeJournal) -> None:
        leader, standby = make_journal(), make_journal()
        leadership = await lead(leader)
        for beat in (1, 2, 1 << 62):
            assert await leader.beat(leadership, beat)
            assert await standby.read_seat() == Seat(
                leadership.leadership, beat, "http://a", WATCH_NS
            )

    async def test_only_the_leader_beats(self, make_journal: MakeJournal) -> None:
        journal = make_journal()
        identity = (await journal.load()).journal
        assert not await journal.beat(Mandate(identity, 0), 1)
        await lead(journal)
        leadership = await lead(journal, "http://b")
        for other in (0, 1, 3):
            assert not await journal.beat(under(leadership, other), 7)
        assert await journal.read_seat() == Seat(2, 0, "http://b", WATCH_NS)

    async def test_who_resigned_leads_no_longer(self, make_journal: MakeJournal) -> None:
        journal = make_journal()
        leadership = await lead(journal)
        assert await journal.beat(leadership, 3)
        await journal.resign(leadership)
        assert await journal.read_seat() == Seat(1, 3, "", WATCH_NS)
        assert not await journal.beat(leadership, 4)
        assert await journal.append(leadership, 0, numbered(0, 1)) == Deposed()
        assert not await journal.compact(leadership, 0, A_STATE)
        assert await lead(journal, "http://b") == under(leadership, 2)

    async def test_who_leads_another_journal_under_the_same_number_does_not_lead_this(
        self, make_journal: MakeJournal
    ) -> None:
        """Another journal is in the place of the one that it won: both number from 1."""
        journal = make_journal()
        mandate = await lead(journal)
        await journal.append(mandate, 0, numbered(0, 2))
        other = Mandate(mandate.journal ^ 1, mandate.leadership)
        assert not await journal.beat(other, 1)
        assert await journal.append(other, 2, numbered(2, 1)) == Deposed()
        assert await journal.append(other, 0, numbered(0, 2)) == Deposed()
        assert await journal.append(other, 2, ()) == Deposed()
        assert not await journal.compact(other, 2, A_STATE)
        await journal.resign(other)
        assert await journal.read_seat() == Seat(1, 0, "http://a", WATCH_NS)
        assert (await journal.load()).records == numbered(0, 2)
        assert await journal.beat(mandate, 1)

    async def test_who_does_not_lead_cannot_resign(self, make_journal: MakeJournal) -> None:
        journal = make_journal()
        first = await lead(journal)
        second = await lead(journal, "http://b")
        await journal.resign(first)
        await journal.resign(under(second, 3))
        assert await journal.read_seat() == Seat(2, 0, "http://b", WATCH_NS)

    # --- the log ----------------------------------------------------------------------------

    async def test_every_record_comes_back_as_it_was(self, make_journal: MakeJournal) -> None:
        journal = make_journal()
        leadership = await lead(journal)
        count = len(EVERY_RECORD)
        assert await journal.append(leadership, 0, EVERY_RECORD) == Committed(count)
        for lsn, record in enumerate(EVERY_RECORD, count):
            assert await journal.append(leadership, lsn, (record,)) == Committed(lsn + 1)
        found = await make_journal().load()
        assert found.records == EVERY_RECORD * 2
        assert found.lsn == 2 * count

    async def test_an_append_of_nothing_says_where_the_log_ends(
        self, make_journal: MakeJournal
    ) -> None:
        journal = make_journal()
        leadership = await lead(journal)
        assert await journal.append(leadership, 0, ()) == Committed(0)
        await journal.append(leadership, 0, numbered(0, 3))
        assert await journal.append(leadership, 3, ()) == Committed(3)
        with damage():
            await journal.append(leadership, 2, ())

    async def test_a_repeated_append_is_committed_once(self, make_journal: MakeJournal) -> None:
        journal, again = make_journal(), make_journal()
        leadership = await lead(journal)
        await journal.append(leadership, 0, numbered(0, 2))
        for each in (journal, again, journal):
            assert await each.append(leadership, 2, numbered(2, 3)) == Committed(5)
        await journal.append(leadership, 5, numbered(5, 1))
        assert await again.append(leadership, 2, numbered(2, 3)) == Committed(5)
        assert (await journal.load()).records == numbered(0, 6)

    async def test_another_append_at_the_same_place_is_damage(
        self, make_journal: MakeJournal
    ) -> None:
        journal = make_journal()
        leadership = await lead(journal)
        await journal.append(leadership, 0, numbered(0, 3))
        for after_lsn, records in (
            (0, numbered(7, 1)),
            (1, numbered(7, 2)),
            (1, numbered(1, 3)),
            (2, numbered(2, 2)),
            (4, numbered(4, 1)),
        ):
            with damage():
                await journal.append(leadership, after_lsn, records)
        assert (await journal.load()).records == numbered(0, 3)

    async def test_what_another_leadership_wrote_is_not_a_repetition(
        self, make_journal: MakeJournal
    ) -> None:
        journal = make_journal()
        await journal.append(await lead(journal), 0, numbered(0, 2))
        with damage():
            await journal.append(await lead(journal), 0, numbered(0, 2))
        assert (await journal.load()).records == numbered(0, 2)

    async def test_only_the_leader_writes(self, make_journal: MakeJournal) -> None:
        journal = make_journal()
        first = await lead(journal)
        await journal.append(first, 0, numbered(0, 1))
        second = await lead(make_journal(), "http://b")
        for other in (under(first, 0), first, under(second, 3)):
            assert await journal.append(other, 1, numbered(1, 1)) == Deposed()
            assert await journal.append(other, 0, numbered(0, 1)) == Deposed()
            assert not await journal.compact(other, 1, A_STATE)
        found = await journal.load()
        assert (found.state, found.state_lsn, found.records) == (State(), 0, numbered(0, 1))

    async def test_the_same_append_at_once_from_two_handles_is_committed_once(
        self, make_journal: MakeJournal
    ) -> None:
        one, two = make_journal(), make_journal()
        leadership = await lead(one)
        for lsn in range(10):
            both = [each.append(leadership, lsn, numbered(lsn, 1)) for each in (one, two)]
            assert await asyncio.gather(*both) == [Committed(lsn + 1)] * 2
        assert (await two.load()).records == numbered(0, 10)

    async def test_who_takes_over_finds_all_that_was_committed_and_nothing_comes_after(
        self, make_journal: MakeJournal
    ) -> None:
        old, new = make_journal(), make_journal()
        leadership = await lead(old)

        async def write_until_deposed() -> int:
            lsn = 0
            while await old.append(leadership, lsn, numbered(lsn, 1)) != Deposed():
                lsn += 1
                await asyncio.sleep(0)  # a journal that never waits would write for ever
            return lsn

        async def take_over() -> WholeLog[AnyRecord, State]:
            await lead(new, "http://b")
            return await new.load()

        committed, found = await asyncio.gather(write_until_deposed(), take_over())
        assert found.records == numbered(0, committed)
        assert await new.load() == found

    async def test_a_large_batch_is_one_append(self, make_journal: MakeJournal) -> None:
        journal = make_journal()
        leadership = await lead(journal)
        batch = numbered(0, 5_000)
        assert await journal.append(leadership, 0, batch) == Committed(5_000)
        assert await journal.append(leadership, 0, batch) == Committed(5_000)
        assert (await make_journal().load()).records == batch

    # --- reopening, and compaction ----------------------------------------------------------

    async def test_all_is_there_after_it_was_closed(self, make_journal: MakeJournal) -> None:
        journal = make_journal()
        leadership = await lead(journal)
        await journal.append(leadership, 0, EVERY_RECORD)
        before, seat = await journal.load(), await journal.read_seat()
        await journal.close()
        again = make_journal()
        assert await again.load() == before
        assert await again.read_seat() == seat
        lsn = before.lsn
        assert await again.append(leadership, lsn, numbered(0, 1)) == Committed(lsn + 1)

    async def test_closing_one_handle_leaves_the_others(self, make_journal: MakeJournal) -> None:
        one, two = make_journal(), make_journal()
        leadership = await lead(two)
        await one.close()
        await one.close()
        assert await two.append(leadership, 0, numbered(0, 1)) == Committed(1)

    async def test_a_snapshot_takes_the_place_of_records(self, make_journal: MakeJournal) -> None:
        journal = make_journal()
        leadership = await lead(journal)
        await journal.append(leadership, 0, numbered(0, 5))
        assert await journal.compact(leadership, 3, A_STATE)
        identity = (await journal.load()).journal
        for each in (journal, make_journal()):
            assert await each.load() == WholeLog(identity, A_STATE, 3, numbered(3, 2))
        for lsn in range(3):  # what is gone is not confused with what is left
            with damage():
                await journal.append(leadership, lsn, numbered(3, 1))
        assert await journal.append(leadership, 3, numbered(3, 2)) == Committed(5)
        assert await journal.append(leadership, 5, numbered(5, 1)) == Committed(6)

    async def test_lsns_go_on_where_nothing_but_the_snapshot_is_left(
        self, make_journal: MakeJournal
    ) -> None:
        journal = make_journal()
        leadership = await lead(journal)
        await journal.append(leadership, 0, numbered(0, 5))
        assert await journal.compact(leadership, 5, A_STATE)
        await journal.close()
        again = make_journal()
        assert (await again.load()).lsn == 5  # noqa: PLR2004
        with damage():
            await again.append(leadership, 0, numbered(0, 5))
        assert await again.append(leadership, 5, numbered(5, 1)) == Committed(6)

    async def test_who_has_read_some_is_told_what_came_after(
        self, make_journal: MakeJournal
    ) -> None:
        journal = make_journal()
        leadership = await lead(journal)
        await journal.append(leadership, 0, EVERY_RECORD)
        known = await journal.load()
        assert await journal.load_after(known.journal, known.lsn) == Tail(known.lsn, ())
        await journal.append(leadership, known.lsn, numbered(0, 3))
        for lsn in range(known.lsn, known.lsn + 4):
            tail = Tail(lsn, numbered(0, 3)[lsn - known.lsn :])
            assert await journal.load_after(known.journal, lsn) == tail

    async def test_who_has_read_what_a_snapshot_replaced_is_told_all(
        self, make_journal: MakeJournal
    ) -> None:
        journal = make_journal()
        leadership = await lead(journal)
        await journal.append(leadership, 0, numbered(0, 5))
        known = (await journal.load()).journal
        assert await journal.compact(leadership, 3, A_STATE)
        for lsn in range(3):
            assert await journal.load_after(known, lsn) == await journal.load()
        assert await journal.load_after(known, 3) == Tail(3, numbered(3, 2))

    async def test_who_has_read_another_journal_is_told_all(
        self, make_journal: MakeJournal
    ) -> None:
        journal = make_journal()
        await journal.append(await lead(journal), 0, numbered(0, 2))
        found = await journal.load()
        for lsn in (0, 1, 2, 77):
            assert await journal.load_after(found.journal ^ 1, lsn) == found

    async def test_a_journal_that_ends_before_what_was_read_of_it_is_refused(
        self, make_journal: MakeJournal
    ) -> None:
        journal = make_journal()
        await journal.append(await lead(journal), 0, numbered(0, 2))
        known = (await journal.load()).journal
        try:
            await journal.load_after(known, 3)
        except JournalWentBack:
            return
        raise AssertionError("it was not refused as one that went back")

    async def test_a_snapshot_never_goes_back_nor_ahead(self, make_journal: MakeJournal) -> None:
        journal = make_journal()
        leadership = await lead(journal)
        await journal.append(leadership, 0, numbered(0, 5))
        assert await journal.compact(leadership, 4, A_STATE)
        before = await journal.load()
        for lsn in (0, 3, 4):
            assert await journal.compact(leadership, lsn, State())
        with damage():
            await journal.compact(leadership, 6, State())
        assert await journal.load() == before

    async def test_a_large_table_is_kept(self, make_journal: MakeJournal) -> None:
        bounds = [i.to_bytes(8, "big") for i in range(20_000)]
        entries = tuple(
            Entry(start=start, end=end, owner=1, number=1 << 40, since=1)
            for start, end in zip([b"", *bounds[1:]], [*bounds[1:], None], strict=True)
        )
        state = State(
            leadership=1,
            promise_ns=1,
            waited_out=True,
            pools=(
                PoolState(
                    pool="p",
                    kind="hashed",
                    split_points=(),
                    next_number=2,
                    next_incarnation=2,
                    entries=entries,
                    members=(),
                    numbered=(),
                ),
            ),
        )
        journal = make_journal()
        leadership = await lead(journal)
        await journal.append(leadership, 0, numbered(0, 1))
        assert await journal.compact(leadership, 1, state)
        assert (await make_journal().load()).state == state
