"""Lookups are told changes as they commit, encoded once for all, or the whole table."""

import pytest
from msgspec.structs import replace

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.lease.client_events import TellManager
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.leader.context import FRESH_PART, LeaderContext
from tenure.protocol.lease.leader.publisher import Publisher
from tenure.protocol.lease.messages import Changes, Entry, Held, OwnerInfo, Sync, SyncResponse
from tenure.protocol.lease.records import State, TookOver
from tenure.protocol.lease.timing import DEFAULT
from tests.unit.protocol.lease.desk import SEAL, T0, ByName, Desk, Unrivalled, at
from tests.unit.protocol.lease.lookup.test_machine import Driven

LOOKUP, OTHER, A, B = 1, 2, 101, 102


def sync(
    desk: Desk, now: Instant, lsn: int, journal: int = SEAL.journal, who: int = LOOKUP
) -> SyncResponse:
    """A lookup at `lsn` asks; the answer."""
    desk.advance(now)
    desk.pool.publisher.on_sync(
        now, who, Sync(pool="p", sequence=3, journal=journal, leadership=1, lsn=lsn, nonce=4)
    )
    desk.commit()
    [answer] = desk.told(who, SyncResponse)
    return answer


def desk_with_an_owner() -> Desk:
    desk = Desk(ByName((WHOLE, "a b")))
    desk.owner(T0, "a", A)
    desk.settle(at(0.2), 1, A)
    desk.advance(at(1))
    return desk


def test_a_lookup_that_knows_nothing_gets_the_whole_table() -> None:
    desk = desk_with_an_owner()
    answer = sync(desk, at(1), 0, journal=0)
    assert (answer.snapshot, answer.entries) == (True, desk.pool.table.entries())
    assert answer.owners == (OwnerInfo(incarnation=1, name="a", address="http://a"),)
    assert (answer.sequence, answer.nonce, answer.lsn) == (3, 4, desk.context.history.lsn)


def test_a_lookup_of_another_journal_gets_the_whole_table() -> None:
    """P22: whatever its LSN."""
    desk = desk_with_an_owner()
    lsn = desk.context.history.lsn
    assert sync(desk, at(1), lsn, journal=8).snapshot
    assert not sync(desk, at(1), lsn).snapshot


def after_a_takeover(desk: Desk) -> tuple[Publisher, int]:
    """Return what another leader publishes that has read the same journal, and where its log
    begins.
    """
    first = desk.records
    history = LeaseHistory(State(), 0)
    for record in first:
        history.apply(record)
    last = history.lsn
    history.apply(TookOver(leadership=2, promise_ns=1, manager="other"))
    context = LeaderContext(SEAL._replace(leadership=2), DEFAULT, history, Unrivalled())
    return Publisher(context, history.tables["p"]), last


def test_after_a_takeover_who_knows_the_last_change_is_told_nothing_anew() -> None:
    """Thousands of tables would otherwise be sent at once, in which nothing has changed."""
    publisher, last = after_a_takeover(desk_with_an_owner())
    assert publisher.log.since(last, at_most=1) == ()


def test_after_a_takeover_who_missed_the_last_change_gets_the_whole_table() -> None:
    desk = desk_with_an_owner()
    before = desk.context.history.lsn
    desk.ask(at(1), 1, A, (), leaving=True)
    desk.advance(at(2))
    publisher, last = after_a_takeover(desk)
    assert publisher.log.since(before, at_most=100) is None
    assert publisher.log.since(last, at_most=1) == ()


def test_whoever_reads_a_snapshot_of_the_journal_knows_no_earlier_change() -> None:
    history = LeaseHistory(desk_with_an_owner().context.history.state(), 50)
    context = LeaderContext(SEAL, DEFAULT, history, Unrivalled())
    log = Publisher(context, history.tables["p"]).log
    assert (log.since(49, at_most=1), log.since(50, at_most=1)) == (None, ())


def test_a_lookup_is_told_what_changed_since() -> None:
    desk = desk_with_an_owner()
    lsn = desk.context.history.lsn
    desk.ask(at(1), 1, A, (), leaving=True)
    answer = sync(desk, at(1), lsn)
    assert (answer.snapshot, [entry.owner for entry in answer.entries]) == (False, [0])


def test_changes_are_gathered_and_pushed_to_all_who_follow() -> None:
    """Centrifuge 2.2; P15."""
    desk = desk_with_an_owner()
    lsn = sync(desk, at(1), 0, journal=0).lsn
    sync(desk, at(1), lsn, who=OTHER)
    desk.ask(at(2), 1, A, ())
    desk.advance(Instant(at(2) + DEFAULT.push_ns - 1))
    assert desk.told(LOOKUP, Changes) == []
    desk.advance(Instant(at(2) + DEFAULT.push_ns))
    [one], [other] = desk.told(LOOKUP, Changes), desk.told(OTHER, Changes)
    assert one is other, "encoded once"
    assert (one.after <= lsn, one.lsn) == (True, desk.context.history.lsn)
    assert [entry.owner for entry in one.entries] == [1], "and not that it was nobody's in between"


def test_pushes_follow_one_another_without_a_gap() -> None:
    desk = desk_with_an_owner()
    sync(desk, at(1), 0, journal=0)
    pushes = []
    for i in range(2, 6):
        desk.ask(at(i), 1, A, ())
        desk.advance(at(i + 0.5))
        pushes += desk.told(LOOKUP, Changes)
    assert len(pushes) == 4
    assert [push.after for push in pushes[1:]] == [push.lsn for push in pushes[:-1]]


def test_who_has_not_asked_for_long_is_not_pushed_to() -> None:
    desk = desk_with_an_owner()
    sync(desk, at(1), 0, journal=0)
    desk.ask(Instant(at(1) + DEFAULT.contact_ns), 1, A, ())
    desk.advance(at(30))
    assert desk.told(LOOKUP, Changes) == []


def test_a_broken_connection_is_not_pushed_to() -> None:
    desk = desk_with_an_owner()
    sync(desk, at(1), 0, journal=0)
    desk.pool.on_disconnected(LOOKUP)
    desk.ask(at(2), 1, A, ())
    desk.advance(at(3))
    assert desk.told(LOOKUP, Changes) == []


def test_old_changes_are_forgotten_and_a_late_lookup_gets_the_table() -> None:
    """Centrifuge 2.1.2: after five minutes."""
    desk = desk_with_an_owner()
    lsn = desk.context.history.lsn
    desk.ask(at(3), 1, A, (), leaving=True)
    desk.advance(at(4))
    assert not sync(desk, at(4), lsn).snapshot
    late = Instant(at(5) + DEFAULT.keep_changes_ns)
    desk.owner(late, "b", B)
    desk.advance(Instant(late + DEFAULT.gather_ns))
    desk.ask(Instant(late + DEFAULT.gather_ns), 2, B, ())
    desk.advance(at(400))
    assert desk.pool.publisher.log.begins_after > lsn
    assert sync(desk, at(400), lsn).snapshot


def test_a_pool_that_did_not_change_pushes_nothing() -> None:
    desk = desk_with_an_owner()
    sync(desk, at(1), 0, journal=0)
    desk.join(at(2), "b", B)
    desk.advance(at(3))
    assert (desk.told(LOOKUP, Changes), desk.pool.publisher.push_at) == ([], FAR_FUTURE)


def test_owners_that_are_gone_are_left_out_of_a_push() -> None:
    desk = desk_with_an_owner()
    lsn = desk.context.history.lsn
    sync(desk, at(1), lsn)
    desk.ask(at(2), 1, A, ())
    desk.ask(at(2), 1, A, (), leaving=True)
    desk.advance(at(3))
    [push] = desk.told(LOOKUP, Changes)
    assert (push.entries[-1], push.owners) == (
        Entry(start=b"", end=None, owner=0, number=5, since=5),
        (),
    )


# --- large tables ---------------------------------------------------------------------------------

RANGES = 4 * FRESH_PART


def desk_with_a_large_table() -> tuple[Desk, tuple[Held, ...]]:
    """A table in which every other range is one owner's; what that owner holds."""
    starts = tuple(i.to_bytes(2, "big") for i in range(1, RANGES))
    ends = zip((b"", *starts), (*starts, None), strict=True)
    pieces = [(KeyRange(*each), "ab"[i % 2]) for i, each in enumerate(ends)]
    desk = Desk(ByName(*pieces), split_points=starts)
    desk.owner(T0, "a", A)
    desk.owner(T0, "b", B)
    desk.advance(at(0.5))
    desk.settle(at(1), 2, B)
    held = desk.settle(at(1), 1, A)
    assert len(desk.pool.table.rights) == RANGES
    return desk, held


def follow(desk: Desk, lookup: Driven, now: Instant, *, columns: bool) -> SyncResponse:
    """A lookup that knows nothing asks, and takes all that it is told; the answer."""
    lookup.advance(now)
    [asked, *_] = [each.message for each in lookup.actions if isinstance(each, TellManager)]
    assert isinstance(asked, Sync)
    sync = replace(asked, reads_columns=columns)
    desk.pool.publisher.on_sync(now, LOOKUP, sync)
    desk.commit()
    [answer] = desk.told(LOOKUP, SyncResponse)
    lookup.hear(now, answer)
    assert lookup.machine.in_contact, lookup.said()
    for changes in desk.told(LOOKUP, Changes):
        lookup.hear(now, changes)
    return answer


@pytest.mark.parametrize("columns", [True, False])
def test_a_large_table_is_not_made_anew_for_each_change_and_who_asks_knows_all(
    *, columns: bool
) -> None:
    """Making one takes the manager's whole loop, so an owner that flaps and a lookup that asks
    could keep it from renewing.
    """
    desk, held = desk_with_a_large_table()
    first = follow(desk, Driven(), at(1), columns=columns)
    made = [first.columns or first.entries]
    for i in range(2, 12):
        desk.ask(at(i), 1, A, held[1:])  # one range is granted anew
        held = desk.pool.table.held_by(1)
        lookup = Driven()
        answer = follow(desk, lookup, at(i), columns=columns)
        if (answer.columns or answer.entries) is not made[-1]:
            made.append(answer.columns or answer.entries)
        known = {key_range: entry.number for key_range, entry in lookup.machine.table}
        assert known == {key_range: right.number for key_range, right in desk.pool.table.rights}
        assert lookup.machine.lsn == desk.pool.publisher.log.last
    assert 1 < len(made) < 10 / 2


def test_of_very_many_changes_a_lookup_is_told_the_table_that_is_made_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk, held = desk_with_a_large_table()
    lsn = desk.context.history.lsn
    desk.ask(at(2), 1, A, held[10:])
    assert not sync(desk, at(2), lsn).snapshot
    monkeypatch.setattr("tenure.protocol.lease.leader.publisher.MOST_CHANGES", 9)
    assert sync(desk, at(2), lsn).snapshot
