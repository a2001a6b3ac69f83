"""People and tools get answers in figures that they can read."""

import pytest

from tenure.base.ranges import WHOLE
from tenure.protocol.lease.answers import (
    Location,
    NamedOwner,
    Owners,
    Pools,
    SpelledKey,
    TableAnswer,
    TableRange,
)
from tenure.protocol.lease.leader.events import ListOwners, ListPools, Locate, ReadTable
from tenure.protocol.lease.leader.questions import answer
from tests.unit.protocol.lease.desk import HIGH, LOW, T0, ByName, Desk, at

A, B = 101, 102


def desk() -> Desk:
    """`a` has the low keys, `b` the high ones, and lookups were told of it."""
    made = Desk(ByName((LOW, "a"), (HIGH, "b")), split_points=(b"m",))
    made.owner(T0, "b", B)
    made.owner(T0, "a", A)
    made.advance(at(0.2))
    made.settle(at(0.2), 1, B)
    made.settle(at(0.2), 2, A)
    made.advance(at(1))
    return made


def test_pools_in_short() -> None:
    made = desk()
    pools = answer(at(1), {"p": made.pool}, ListPools())
    assert isinstance(pools, Pools)
    [pool] = pools.pools
    assert (pool.name, pool.kind, pool.owners, pool.ranges, pool.free_ranges) == (
        "p",
        "ordered",
        2,
        2,
        0,
    )
    assert (pool.split_points, pool.lsn) == ((SpelledKey("6d", "m"),), made.pool.publisher.log.last)


def test_owners_by_name_with_what_they_have() -> None:
    made = desk()
    owners = answer(at(3.2), {"p": made.pool}, ListOwners("p"))
    assert isinstance(owners, Owners)
    [a, b] = owners.owners
    assert [(x.name, x.incarnation, x.ranges, x.connected) for x in (a, b)] == [
        ("a", 2, 1, True),
        ("b", 1, 1, True),
    ]
    assert owners.connections == (101, 102)
    assert a.share == pytest.approx(ord("m") / 256)
    assert a.share + b.share == pytest.approx(1)
    assert a.hold_seconds == pytest.approx(10.0)
    assert answer(at(99), {"p": made.pool}, ListOwners("p")).owners[0].hold_seconds == 0  # type: ignore[union-attr]


def test_the_table_whole_or_since_an_lsn() -> None:
    made = desk()
    pools = {"p": made.pool}
    whole = answer(at(1), pools, ReadTable("p"))
    assert isinstance(whole, TableAnswer)
    assert (whole.snapshot, len(whole.entries)) == (True, 2)
    low = TableRange(
        start=SpelledKey("", ""), end=SpelledKey("6d", "m"), owner=2, number=3, since=1
    )
    assert whole.entries[0] == low
    assert [owner.name for owner in whole.owners] == ["b", "a"]
    now = answer(at(1), pools, ReadTable("p", whole.lsn))
    assert isinstance(now, TableAnswer)
    assert (now.snapshot, now.entries, now.lsn) == (False, (), whole.lsn)
    last = answer(at(1), pools, ReadTable("p", whole.lsn - 1))
    assert isinstance(last, TableAnswer)
    assert (last.snapshot, len(last.entries)) == (False, 1)


@pytest.mark.parametrize("since", [-1, 0])
def test_a_table_since_what_is_forgotten_is_the_whole_one(since: int) -> None:
    table = answer(at(1), {"p": desk().pool}, ReadTable("p", since))
    assert isinstance(table, TableAnswer)
    assert table.snapshot


def test_where_a_key_is() -> None:
    made = desk()
    found = answer(at(1), {"p": made.pool}, Locate("p", b"k"))
    assert isinstance(found, Location)
    assert found.owner == NamedOwner(incarnation=2, name="a", address="http://a")
    assert (found.start, found.end) == (SpelledKey("", ""), SpelledKey("6d", "m"))


def test_where_a_key_is_that_nobody_has() -> None:
    made = Desk(ByName((WHOLE, "a")))
    found = answer(at(1), {"p": made.pool}, Locate("p", b"k"))
    assert isinstance(found, Location)
    assert (found.owner, found.number, found.since) == (None, 1, 1)
    assert (found.key, found.start, found.end) == (SpelledKey("6b", "k"), SpelledKey("", ""), None)
