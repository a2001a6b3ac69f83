"""A pool is deleted, and all of it is forgotten but its numbers."""

from collections.abc import Iterator

import pytest

from tenure.protocol.lease.answers import Impossible, PoolDeleted, PoolMade, Pools
from tenure.protocol.lease.leader.events import CreatePool, DeletePool, ListPools
from tenure.protocol.lease.messages import (
    LeaseRequest,
    LeaseResponse,
    Sync,
    SyncRefusal,
    SyncResponse,
)
from tenure.protocol.lease.records import Changed, PoolCreated
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


def pools(driven: Driven) -> list[str]:
    said = driven.ask(ListPools())
    assert isinstance(said, Pools)
    return [each.name for each in said.pools]


def test_a_pool_with_owners_is_not_deleted() -> None:
    driven = Driven()
    granted(driven)
    refused = driven.ask(DeletePool("p"))
    assert isinstance(refused, Impossible)
    assert "the pool 'p' has 1 owners, 'o' among them" in refused.why
    assert not refused.missing
    assert pools(driven) == ["p"]


def test_an_owner_whose_hold_runs_is_there() -> None:
    """It may believe: its connection is gone, nothing else is known."""
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
    created, laid = written[-2:]
    assert isinstance(created, PoolCreated)
    assert isinstance(laid, Changed)
    highest = max(lease.number for lease in before.leases)
    assert [entry.number > highest for entry in laid.entries] == [True]
