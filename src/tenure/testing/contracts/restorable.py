"""What every journal that can be restored from an old copy must do, as tests.

These tests come in addition to those of `JournalContract`; the fixture is the same.
"""

import asyncio

from tenure.errors import JournalDamaged
from tenure.journals.contract import Beginning, Journal, Restorable, Tail, WholeLog
from tenure.protocol.lease.messages import Entry
from tenure.protocol.lease.records import AnyRecord, PoolState, State
from tenure.protocol.log.journal import Committed, Deposed, Mandate, Seat
from tenure.testing.contracts.journal import (
    JournalContract,
    MakeJournal,
    damage,
    lead,
    taken_by,
    under,
)
from tenure.testing.contracts.records import A_STATE, EVERY_RECORD, numbered

BEGINNING = Beginning(77, Seat(leadership=1_000), A_STATE)


def restorable(make_journal: MakeJournal) -> Restorable[AnyRecord, State]:
    """Another handle, with all that it can do."""
    journal: Journal[AnyRecord, State] = make_journal()
    assert hasattr(journal, "restore"), f"{journal} cannot be restored"
    return journal  # type: ignore[return-value]  # seen to by the line above


async def restored(make_journal: MakeJournal, records: int = 3) -> Restorable[AnyRecord, State]:
    """A journal with so many records, restored."""
    journal = restorable(make_journal)
    leadership = await lead(journal)
    await journal.append(leadership, 0, numbered(0, records))
    assert await journal.restore(await journal.read_seat(), records, BEGINNING)
    return journal


class RestorableJournalContract(JournalContract):
    """The suite."""

    async def test_a_restored_journal_is_another_one_with_its_state_at_the_same_lsn(
        self, make_journal: MakeJournal
    ) -> None:
        journal = await restored(make_journal)
        for each in (journal, make_journal()):
            assert await each.load() == WholeLog(77, A_STATE, 3, ())
            assert await each.read_seat() == BEGINNING.seat

    async def test_a_restored_journal_is_led_and_written_on(
        self, make_journal: MakeJournal
    ) -> None:
        await restored(make_journal)
        journal = make_journal()
        leadership = await lead(journal, "http://b")
        assert leadership == Mandate(77, BEGINNING.seat.leadership + 1)
        assert await journal.append(leadership, 3, EVERY_RECORD) == Committed(3 + len(EVERY_RECORD))
        assert await make_journal().load_after(77, 3) == Tail(3, EVERY_RECORD)
        assert (await journal.load()).records == EVERY_RECORD

    async def test_what_was_snapshotted_before_is_restored_too(
        self, make_journal: MakeJournal
    ) -> None:
        journal = restorable(make_journal)
        leadership = await lead(journal)
        await journal.append(leadership, 0, numbered(0, 5))
        assert await journal.compact(leadership, 5, State(leadership=5))
        assert await journal.restore(await journal.read_seat(), 5, BEGINNING)
        assert await make_journal().load() == WholeLog(77, A_STATE, 5, ())
        again = Beginning(78, Seat(2_000), State(leadership=2_000))
        assert await journal.restore(BEGINNING.seat, 5, again)
        assert await make_journal().load() == WholeLog(78, State(leadership=2_000), 5, ())

    async def test_it_is_restored_only_as_it_was_seen(self, make_journal: MakeJournal) -> None:
        journal = restorable(make_journal)
        leadership = await lead(journal)
        await journal.append(leadership, 0, numbered(0, 3))
        seen = await journal.read_seat()
        assert await journal.beat(leadership, 1)
        seat, before = await journal.read_seat(), await journal.load()
        assert not await journal.restore(seen, 3, BEGINNING)
        for lsn in (0, 2, 4):
            assert not await journal.restore(seat, lsn, BEGINNING)
        assert not await journal.restore(Seat(), 3, BEGINNING)
        assert (await journal.read_seat(), await journal.load()) == (seat, before)
        assert await journal.restore(seat, 3, BEGINNING)

    async def test_who_had_it_open_can_do_nothing_with_it(self, make_journal: MakeJournal) -> None:
        leader, standby = make_journal(), make_journal()
        leadership = await lead(leader)
        await leader.append(leadership, 0, numbered(0, 3))
        seat = await standby.read_seat()
        await standby.load()
        assert await restorable(make_journal).restore(seat, 3, BEGINNING)
        with damage():
            await leader.append(leadership, 3, numbered(3, 1))
        with damage():
            await leader.beat(leadership, 9)
        with damage():
            await standby.campaign(seat, taken_by("http://b", seat))
        with damage():
            await standby.load_after(BEGINNING.journal, 0)
        assert await make_journal().load() == WholeLog(77, A_STATE, 3, ())

    async def test_the_leadership_before_does_not_lead_it(self, make_journal: MakeJournal) -> None:
        journal = restorable(make_journal)
        former = await lead(journal)
        await journal.append(former, 0, numbered(0, 3))
        assert await journal.restore(await journal.read_seat(), 3, BEGINNING)
        nobody = Mandate(BEGINNING.journal, BEGINNING.seat.leadership)
        for each in (journal, make_journal()):
            for mandate in (former, under(nobody, 1), nobody):
                assert await each.append(mandate, 3, numbered(3, 1)) == Deposed()
                assert not await each.beat(mandate, 1)
        present = await lead(journal, "http://b")
        former = under(former, present.leadership)
        assert await journal.append(former, 3, numbered(3, 1)) == Deposed()
        assert not await journal.beat(former, 1)

    async def test_of_a_restoration_and_a_campaign_one_wins(
        self, make_journal: MakeJournal
    ) -> None:
        for round_number in range(5):
            journal, manager = restorable(make_journal), make_journal()
            found, seat = await journal.load(), await journal.read_seat()
            await manager.read_seat()
            beginning = Beginning(100 + round_number, Seat(seat.leadership + 10), State())

            async def campaign(
                manager: Journal[AnyRecord, State] = manager, seat: Seat = seat
            ) -> bool:
                try:
                    return bool(await manager.campaign(seat, taken_by("http://b", seat)))
                except JournalDamaged:
                    return False

            won = await asyncio.gather(journal.restore(seat, found.lsn, beginning), campaign())
            assert sum(won) == 1
            now = await make_journal().read_seat()
            assert now == (beginning.seat if won[0] else taken_by("http://b", seat))

    async def test_a_large_table_is_restored(self, make_journal: MakeJournal) -> None:
        bounds = [i.to_bytes(8, "big") for i in range(20_000)]
        entries = tuple(
            Entry(start=start, end=end, owner=0, number=1 << 40, since=1)
            for start, end in zip([b"", *bounds[1:]], [*bounds[1:], None], strict=True)
        )
        pool = PoolState(
            pool="p",
            kind="hashed",
            split_points=(),
            next_number=(1 << 40) + 1,
            next_incarnation=2,
            entries=entries,
            members=(),
            numbered=(),
        )
        state = State(leadership=1, promise_ns=1, waited_out=False, pools=(pool,))
        journal = restorable(make_journal)
        await journal.append(await lead(journal), 0, numbered(0, 1))
        seat = await journal.read_seat()
        assert await journal.restore(seat, 1, Beginning(77, Seat(9), state))
        assert (await make_journal().load()).state == state
