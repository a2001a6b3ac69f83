"""The lease table: what records make of it, and that a later leader knows the same."""

from collections.abc import Iterator
from random import Random

import pytest

from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.errors import JournalDamaged
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.messages import Entry, Held
from tenure.protocol.lease.records import (
    AnyRecord,
    Changed,
    Joined,
    Left,
    PoolCreated,
    PromiseLowered,
    State,
    TookOver,
    WaitedOut,
)
from tenure.protocol.lease.table import FIRST_NUMBER, NOBODY, LeaseTable, Right

CREATED = PoolCreated(pool="p", kind="ordered", split_points=(b"g", b"p"))


def joined(incarnation: int, name: str, nonce: int = 7) -> Joined:
    return Joined(
        pool="p",
        incarnation=incarnation,
        name=name,
        nonce=nonce,
        address=f"http://{name}",
        capacity=2.0,
        labels={"zone": "b"},
    )


def table_of(*records: Joined | Left | Changed) -> LeaseTable:
    table = LeaseTable(CREATED)
    for record in records:
        table.apply(record)
        table.invariants()
    return table


def test_a_new_pool_is_nobodys_under_the_first_number() -> None:
    table = table_of()
    assert list(table.within(KeyRange())) == [(KeyRange(), Right(NOBODY, FIRST_NUMBER, 1))]
    assert table.next_number == FIRST_NUMBER + 1


def test_entries_are_laid_in_order_one_over_another() -> None:
    table = table_of(
        joined(1, "a"),
        Changed(
            pool="p",
            entries=(
                Entry(start=b"", end=None, owner=1, number=2, since=2),
                Entry(start=b"c", end=b"m", owner=0, number=3, since=3),
            ),
        ),
    )
    assert table.held_by(1) == (
        Held(start=b"", end=b"c", number=2),
        Held(start=b"m", end=None, number=2),
    )
    assert table.next_number == 4


def test_it_says_where_a_range_was_granted_with_which_state() -> None:
    """P13: and a later record without one takes that back."""
    table = table_of(
        joined(1, "a"),
        joined(2, "b"),
        Changed(pool="p", entries=(Entry(start=b"", end=None, owner=1, number=2, since=2),)),
        Changed(
            pool="p", entries=(Entry(start=b"c", end=b"m", owner=2, number=3, since=2),), handed=2
        ),
        Changed(pool="p", entries=(Entry(start=b"h", end=None, owner=0, number=4, since=4),)),
    )
    assert [table.handed[key] for key in (b"a", b"d", b"k", b"z")] == [0, 2, 0, 0]
    table.apply(
        Left(
            pool="p",
            incarnation=2,
            entries=(Entry(start=b"c", end=b"h", owner=0, number=5, since=5),),
        )
    )
    assert table.handed[b"d"] == 0


def test_a_snapshot_keeps_which_state_belongs_to_a_grant() -> None:
    """P21: otherwise a grant whose answer was lost could not be made again with its state."""
    table = table_of(
        joined(1, "a"),
        Changed(pool="p", entries=(Entry(start=b"", end=b"c", owner=1, number=2, since=2),)),
        Changed(
            pool="p",
            entries=(
                Entry(start=b"c", end=b"m", owner=1, number=3, since=2),
                Entry(start=b"m", end=b"x", owner=1, number=3, since=1),
            ),
            handed=2,
        ),
    )
    again = LeaseTable.from_state(table.state())
    assert table.state().handed == (Held(start=b"c", end=b"x", number=2),)
    assert (again.handed, again.state()) == (table.handed, table.state())


def test_what_an_owner_holds_is_known_again_after_every_change() -> None:
    """`held_by` keeps its answers; none may outlive what it says."""
    table = table_of(joined(1, "a"), joined(2, "b"))
    assert table.held_by(1) == ()
    table.apply(
        Changed(pool="p", entries=(Entry(start=b"", end=None, owner=1, number=2, since=2),))
    )
    assert table.held_by(1) == (Held(start=b"", end=None, number=2),)
    table.apply(
        Changed(pool="p", entries=(Entry(start=b"m", end=None, owner=2, number=3, since=3),))
    )
    assert (table.held_by(1), table.held_by(2)) == (
        (Held(start=b"", end=b"m", number=2),),
        (Held(start=b"m", end=None, number=3),),
    )
    table.apply(
        Left(
            pool="p",
            incarnation=1,
            entries=(Entry(start=b"", end=b"m", owner=0, number=4, since=4),),
        )
    )
    assert table.held_by(1) == ()


def test_what_an_owner_holds_is_one_object_while_it_does_not_change() -> None:
    """The answer to a settled owner is recognised by it."""
    table = table_of(
        joined(1, "a"),
        joined(2, "b"),
        Changed(pool="p", entries=(Entry(start=b"", end=b"m", owner=1, number=2, since=2),)),
    )
    held = table.held_by(1)
    table.apply(
        Changed(pool="p", entries=(Entry(start=b"m", end=None, owner=2, number=3, since=3),))
    )
    assert table.held_by(1) is held


class Counted(RangeMap[Right]):
    """How often it was gone through."""

    times = 0

    def __iter__(self) -> Iterator[tuple[KeyRange, Right]]:
        Counted.times += 1
        return super().__iter__()


def test_what_all_owners_hold_is_found_in_one_go() -> None:
    """After a takeover every owner asks, and the table may have a hundred thousand ranges."""
    table = table_of(*(joined(i, f"o{i}") for i in range(1, 9)))
    entries = [Entry(start=bytes([i]), end=None, owner=i, number=i, since=i) for i in range(1, 9)]
    table.apply(Changed(pool="p", entries=tuple(entries)))
    table = LeaseTable.from_state(table.state())  # as the next leader has it
    rights = Counted(Right(0, 0, 0))
    for key_range, right in table.rights:
        rights.assign(key_range, right)
    table.rights, Counted.times = rights, 0
    for i in range(1, 9):
        end = None if i == 8 else bytes([i + 1])
        assert table.held_by(i) == (Held(start=bytes([i]), end=end, number=i),)
    assert Counted.times == 1


def test_ranges_merge_where_owner_number_and_since_agree() -> None:
    """P11."""
    table = table_of(
        joined(1, "a"),
        Changed(
            pool="p",
            entries=(
                Entry(start=b"", end=b"c", owner=1, number=2, since=2),
                Entry(start=b"c", end=b"h", owner=1, number=2, since=2),
            ),
        ),
        Changed(pool="p", entries=(Entry(start=b"h", end=b"m", owner=1, number=2, since=1),)),
    )
    assert table.held_by(1) == (
        Held(start=b"", end=b"h", number=2),
        Held(start=b"h", end=b"m", number=2),
    )


def test_who_has_left_is_no_member_but_its_number_is_remembered() -> None:
    """P9, P21: its straggling join must not be numbered again."""
    table = table_of(joined(1, "a", nonce=11), Left(pool="p", incarnation=1, entries=()))
    assert (table.members, table.numbered, table.next_incarnation) == ({}, {"a": (1, 11)}, 2)


def test_a_state_makes_the_same_table() -> None:
    table = table_of(
        joined(1, "a"),
        joined(2, "b"),
        Changed(
            pool="p",
            entries=(
                Entry(start=b"", end=b"g", owner=1, number=2, since=2),
                Entry(start=b"g", end=None, owner=2, number=3, since=1),
            ),
        ),
        Left(
            pool="p",
            incarnation=1,
            entries=(Entry(start=b"", end=b"g", owner=0, number=4, since=4),),
        ),
    )
    again = LeaseTable.from_state(table.state())
    assert again.state() == table.state()
    assert (again.rights, again.split_points) == (table.rights, (b"g", b"p"))
    again.invariants()


def test_owners_are_a_map_of_the_same_space() -> None:
    table = table_of(
        joined(1, "a"),
        Changed(pool="p", entries=(Entry(start=b"c", end=b"m", owner=1, number=2, since=2),)),
    )
    assert [(r.start, owner) for r, owner in table.owners()] == [(b"", 0), (b"c", 1), (b"m", 0)]


# --- the history of all pools ---------------------------------------------------------------------


def history_of(*records: AnyRecord) -> LeaseHistory:
    history = LeaseHistory(State(), 0)
    for record in records:
        history.apply(record)
        history.invariants()
    return history


def test_every_record_has_the_next_lsn() -> None:
    assert (
        history_of(TookOver(leadership=1, promise_ns=5, manager="a"), WaitedOut(), CREATED).lsn == 3
    )


def test_the_longest_promise_is_kept_until_it_is_lowered() -> None:
    """P7."""
    history = history_of(
        TookOver(leadership=1, promise_ns=65, manager="a"),
        TookOver(leadership=2, promise_ns=13, manager="b"),
    )
    assert (history.leadership, history.promise_ns) == (2, 65)
    history.apply(PromiseLowered(promise_ns=13))
    assert history.promise_ns == 13


def test_a_state_carries_all_that_a_later_leader_must_know() -> None:
    """P21."""
    history = history_of(
        TookOver(leadership=3, promise_ns=65, manager="a"),
        WaitedOut(),
        CREATED,
        PoolCreated(pool="q", kind="hashed"),
        joined(1, "a"),
    )
    again = LeaseHistory(history.state(), history.lsn)
    assert again.state() == history.state()
    assert (again.leadership, again.promise_ns, again.waited_out) == (3, 65, True)
    assert list(again.tables) == ["p", "q"]


@pytest.mark.parametrize(
    "record",
    [joined(1, "a"), Left(pool="p", incarnation=1, entries=()), Changed(pool="p", entries=())],
)
def test_a_record_of_a_pool_that_was_never_created_is_damage(record: AnyRecord) -> None:
    with pytest.raises(JournalDamaged, match="record 1 changes the pool 'p'"):
        history_of(record)


# --- names that are forgotten ---------------------------------------------------------------------


def test_a_takeover_forgets_the_names_of_the_gone_and_no_others() -> None:
    """P2, P9: their joins were made for the nonce of an earlier leadership."""
    history = history_of(
        CREATED, joined(1, "a"), joined(2, "b"), Left(pool="p", incarnation=1, entries=())
    )
    assert history.tables["p"].numbered.keys() == {"a", "b"}
    history.apply(TookOver(leadership=2, promise_ns=5, manager="m"))
    assert history.tables["p"].numbered.keys() == {"b"}
    assert history.tables["p"].next_incarnation == 3
    history.invariants()


def test_a_name_is_not_forgotten_for_one_that_had_it_before() -> None:
    history = history_of(
        CREATED, joined(1, "a"), Left(pool="p", incarnation=1, entries=()), joined(2, "a")
    )
    table = history.tables["p"]
    table.forget("a", 1)
    table.forget("a", 2)
    table.forget("c", 3)
    assert table.numbered.keys() == {"a"}


def naive(table: LeaseTable, owner: int) -> tuple[Held, ...]:
    """Return what the table gives an owner, by a walk through all of it."""
    return tuple(
        Held(start=key_range.start, end=key_range.end, number=right.number)
        for key_range, right in table.rights
        if right.owner == owner
    )


@pytest.mark.parametrize("seed", range(20))
def test_what_an_owner_has_is_known_after_any_changes_as_by_a_walk_through_the_table(
    seed: int,
) -> None:
    """Joins, leaves, ranges that are cut, joined, freed and renumbered; asked for now and then."""
    dice = Random(seed)
    table = table_of(*(joined(i, f"o{i}") for i in range(1, 5)))
    for step in range(5, 400):
        start, end = sorted((dice.randbytes(1), dice.randbytes(1)))
        owner = dice.choice([NOBODY, *table.members])
        number = dice.choice((table.next_number, table.next_number - 1))
        entry = Entry(start=start, end=end if end > start else None, owner=owner, number=number,
                      since=1)  # fmt: skip
        match dice.randrange(30):
            case 0:
                table.apply(joined(step, f"o{step}"))
            case 1 if len(table.members) > 2:
                gone = dice.choice(sorted(table.members))
                freed = tuple(
                    Entry(start=each.start, end=each.end, owner=NOBODY, number=table.next_number,
                          since=table.next_number)
                    for each in naive(table, gone)
                )  # fmt: skip
                table.apply(Left(pool="p", incarnation=gone, entries=freed))
            case _:
                renumbers = dice.random() < 0.2
                table.apply(Changed(pool="p", entries=(entry,), renumbers=renumbers))
        for each in table.members:
            if dice.random() < 0.3:
                assert table.held_by(each) == naive(table, each)


def test_a_grant_to_one_of_many_costs_no_walk_through_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise two thousand owners that are granted 64 ranges each block a leader for minutes."""
    table = table_of(joined(1, "a"), joined(2, "b"))
    assert table.held_by(1) == ()

    def walk(_: object) -> Iterator[object]:
        raise AssertionError("the whole table is read")

    monkeypatch.setattr(RangeMap, "__iter__", walk)
    for number, owner in ((4, 1), (5, 2), (6, 1)):
        start = bytes([number])
        entry = Entry(start=start, end=start + b"z", owner=owner, number=number, since=1)
        table.apply(Changed(pool="p", entries=(entry,)))
        assert entry.start in {each.start for each in table.held_by(owner)}
    table.apply(joined(3, "c"))
    assert table.held_by(3) == ()
