"""A pool is deleted, and all of it is forgotten but its numbers."""

from collections.abc import Iterator

import pytest

from tenure.base.instants import Instant, seconds
from tenure.base.ranges import WHOLE
from tenure.protocol.lease.answers import Impossible, PoolDeleted, PoolMade, Pools
from tenure.protocol.lease.history import DELETED_KEPT, LeaseHistory
from tenure.protocol.lease.leader.events import CreatePool, DeletePool, ListPools, QuestionAsked
from tenure.protocol.lease.messages import (
    Entry,
    Held,
    LeaseRequest,
    LeaseResponse,
    Refusal,
    Sync,
    SyncRefusal,
    SyncResponse,
)
from tenure.protocol.lease.records import Changed, PoolCreated, State
from tenure.protocol.lease.restoration import restored
from tenure.protocol.lease.steering_events import ReadPlan
from tenure.protocol.lease.table import LeaseTable
from tenure.protocol.log.journal import Append, Compact
from tests.unit.protocol.lease.driven_manager import Driven, at


def granted(driven: Driven) -> LeaseResponse:
    """An owner joins the pool `p`, and is granted all of it."""
    joined = driven.join()
    assert isinstance(joined, LeaseResponse)
    for _ in range(5):
        answer = ask(driven, joined)
        if answer.leases:
            return answer
        driven.run(at(driven.now / 1e9 + 0.5))
    raise AssertionError


sequences: Iterator[int] = iter(range(2, 10_000))


def ask(driven: Driven, before: LeaseResponse, *, leaving: bool = False) -> LeaseResponse:
    request = LeaseRequest(
        pool="p",
        incarnation=before.incarnation,
        owner_nonce=before.owner_nonce,
        manager_nonce=driven.nonce,
        sequence=next(sequences),
        journal=before.journal,
        leadership=before.leadership,
        held=(),
        leaving=leaving,
    )
    [answer] = (each for each in driven.hear(request) if isinstance(each, LeaseResponse))
    return answer


def deleted() -> tuple[Driven, LeaseResponse]:
    """The pool `p` is deleted; what its only owner was told last."""
    driven = Driven()
    answer = granted(driven)
    ask(driven, answer, leaving=True)
    assert driven.ask(DeletePool("p")) == PoolDeleted("p", dry_run=False)
    return driven, answer


def test_a_pool_is_not_deleted_while_caches_may_hit() -> None:
    """Its next owner, in a pool of the same name, would know of no quiet (V13)."""
    driven = Driven()
    answer = granted(driven)
    ask(driven, answer, leaving=True)
    leader = driven.machine.leader
    assert leader is not None
    leader.pools["p"].quiets.until.assign(WHOLE, Instant(driven.now + seconds(3)))
    said = driven.ask(DeletePool("p"))
    assert isinstance(said, Impossible)
    assert "3.0 s" in said.why
    driven.run(at(driven.now / 1e9 + 3))
    assert driven.ask(DeletePool("p")) == PoolDeleted("p", dry_run=False)


def pools(driven: Driven) -> list[str]:
    said = driven.ask(ListPools())
    assert isinstance(said, Pools)
    return [each.name for each in said.pools]


def test_a_pool_with_owners_is_not_deleted() -> None:
    driven = Driven()
    granted(driven)
    refused = driven.ask(DeletePool("p"))
    assert isinstance(refused, Impossible)
    assert "the pool 'p' has owners: 'o'; what is known" in refused.why
    assert not refused.missing
    assert pools(driven) == ["p"]


def test_an_owner_whose_hold_runs_is_there() -> None:
    """It may believe: its connection is gone, and nothing else is known."""
    driven = Driven()
    granted(driven)
    driven.run(at(driven.now / 1e9 + 10))
    assert isinstance(driven.ask(DeletePool("p")), Impossible)
    driven.run(at(driven.now / 1e9 + 4))
    assert driven.ask(DeletePool("p")) == PoolDeleted("p", dry_run=False)


def test_a_pool_that_is_not_there_is_missing() -> None:
    driven, _ = deleted()
    again = driven.ask(DeletePool("p"))
    assert isinstance(again, Impossible)
    assert again.missing


def test_who_waits_for_the_plan_of_a_pool_that_is_deleted_is_answered() -> None:
    driven = Driven(plans_at_once=0)
    driven.ask(CreatePool("p", "hashed"))
    driven.replies = []
    driven.take(QuestionAsked(7, ReadPlan("p")))
    assert driven.replies == [], "a policy is being asked"
    driven.take(QuestionAsked(8, DeletePool("p")))
    assert [type(each) for each in driven.replies] == [Impossible, PoolDeleted]
    driven.plan()
    assert len(driven.replies) == 2


def test_a_dry_run_changes_nothing() -> None:
    driven = Driven()
    assert driven.ask(CreatePool("p", "hashed")) == PoolMade("p", "hashed", created=True)
    assert driven.ask(DeletePool("p", dry_run=True)) == PoolDeleted("p", dry_run=True)
    assert pools(driven) == ["p"]


def test_a_deleted_pool_is_listed_no_more_and_its_lookups_are_refused() -> None:
    driven, answer = deleted()
    assert pools(driven) == []
    [refusal] = driven.hear(
        Sync(pool="p", sequence=1, journal=answer.journal, leadership=1, lsn=3, nonce=99)
    )
    assert isinstance(refusal, SyncRefusal)


@pytest.mark.parametrize("what", ["nothing", "failover", "compaction and failover"])
def test_numbers_go_on_when_it_is_created_again(what: str) -> None:
    driven, before = deleted()
    highest = max(lease.number for lease in before.leases)
    if what != "nothing":
        if what.startswith("compaction"):
            assert driven.machine.leader
            history = driven.machine.leader.context.history
            driven.journal.carry_out(
                Compact(driven.machine.leadership.mandate, history.lsn, history.state())
            )
            assert not driven.journal.records
        driven = Driven(journal=driven.journal)
        driven.run(at(60))
        assert pools(driven) == []
    after = granted(driven)
    assert min(lease.number for lease in after.leases) > highest + 1
    assert min(lease.since for lease in after.leases) > highest
    assert after.incarnation > before.incarnation
    assert pools(driven) == ["p"]


def test_a_lookup_that_was_away_meanwhile_learns_that_all_is_lost() -> None:
    """It is told the whole table, whose `since` is above every number that it can know."""
    driven, before = deleted()
    driven.ask(CreatePool("p", "ordered"))
    [told] = driven.hear(
        Sync(pool="p", sequence=1, journal=before.journal, leadership=1, lsn=4, nonce=99)
    )
    assert isinstance(told, SyncResponse)
    assert told.snapshot
    highest = max(lease.number for lease in before.leases)
    assert [entry.since > highest for entry in told.entries] == [True]
    assert told.kind == "ordered"


def test_older_managers_read_that_numbers_go_on() -> None:
    """They know no deleted pool: to them, a pool that is created again has no numbers yet."""
    driven, before = deleted()
    driven.ask(CreatePool("p", "hashed"))
    written = [r for call in driven.calls if isinstance(call, Append) for r in call.records]
    gone, created, laid = written[-3:]
    assert isinstance(created, PoolCreated)
    highest = max(lease.number for lease in before.leases)
    for each in gone, laid:
        assert isinstance(each, Changed)
        assert [entry.number > highest for entry in each.entries] == [True]


def test_of_many_deleted_pools_only_the_highest_numbers_are_kept() -> None:
    """Pools whose names are drawn do not fill the journal."""
    driven, before = deleted()
    assert driven.machine.leader
    history = driven.machine.leader.context.history
    for name in range(2 * DELETED_KEPT):
        history.apply(PoolCreated(pool=f"q{name}", kind="hashed"))
        laid = Entry(start=b"", end=None, owner=0, number=9, since=9)
        history.apply(Changed(pool=f"q{name}", entries=(laid,), deleted=True))
    assert len(history.tables) == DELETED_KEPT
    assert "p" not in history.tables
    assert history.first.number > max(lease.number for lease in before.leases)
    assert LeaseHistory(history.state(), history.lsn).state() == history.state()


@pytest.mark.parametrize("failover", [False, True])
def test_the_numbers_of_a_forgotten_pool_do_not_come_again(
    monkeypatch: pytest.MonkeyPatch, *, failover: bool
) -> None:
    """An owner that comes back with an older number of a pool that was made again is refused, and
    what is granted there is numbered above all that was granted before.
    """
    monkeypatch.setattr("tenure.protocol.lease.history.DELETED_KEPT", 0)
    driven, before = deleted()
    assert driven.machine.leader
    history = driven.machine.leader.context.history
    assert history.tables == {}
    if failover:
        mandate = driven.machine.leadership.mandate
        driven.journal.carry_out(Compact(mandate, history.lsn, history.state()))
        driven = Driven(journal=driven.journal)
        driven.run(at(60))
    after = granted(driven)
    assert min(lease.number for lease in after.leases) > max(
        lease.number for lease in before.leases
    )
    assert after.incarnation > before.incarnation
    held = tuple(Held(start=one.start, end=one.end, number=one.number) for one in before.leases)
    late = LeaseRequest(
        pool="p",
        incarnation=before.incarnation,
        owner_nonce=before.owner_nonce,
        manager_nonce=driven.nonce,
        sequence=next(sequences),
        journal=before.journal,
        leadership=before.leadership,
        held=held,
    )
    [refused] = driven.hear(late)
    assert isinstance(refused, Refusal)
    assert refused.reason == "past"


def test_a_restored_journal_does_not_begin_anew_with_pools_of_the_part_that_is_lost() -> None:
    driven, before = deleted()
    copy = LeaseHistory(State(), 0)  # the copy is older than the pool
    seat, state = restored(copy, driven.journal.seat, b"secret")
    again = LeaseTable(PoolCreated(pool="p", kind="hashed"), LeaseHistory(state, 0).first)
    assert seat.leadership > driven.journal.seat.leadership
    assert again.next_number > max(lease.number for lease in before.leases)
    assert again.next_incarnation > before.incarnation
