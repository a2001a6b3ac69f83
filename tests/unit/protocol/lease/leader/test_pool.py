"""One pool under a leader: joining, renewing, recalling, granting, expiring, leaving."""

from itertools import pairwise

import pytest

from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.lease.messages import Held, LeaseResponse, Refusal
from tenure.protocol.lease.records import Changed, Joined, Left
from tenure.protocol.lease.timing import DEFAULT
from tests.unit.protocol.lease.desk import HIGH, LOW, T0, ByName, Desk, at, listed, marks

A, B = 101, 102  # nonces, and connections
EVERYTHING_TO_A = ByName((WHOLE, "a b"))
HALVES = ByName((LOW, "a b"), (HIGH, "b a"))


def one_owner() -> tuple[Desk, tuple[Held, ...]]:
    """`a` is incarnation 1, and has been granted everything."""
    desk = Desk(EVERYTHING_TO_A)
    assert desk.owner(T0, "a", A) == 1
    return desk, desk.settle(at(0.2), 1, A)


# --- joining --------------------------------------------------------------------------------------


def test_a_join_is_numbered_in_a_record_before_it_is_answered() -> None:
    """P9, P18."""
    desk = Desk(EVERYTHING_TO_A)
    answer = desk.join(T0, "a", A)
    assert isinstance(answer, LeaseResponse)
    assert (answer.incarnation, answer.leases) == (1, ())
    assert desk.records[-1] == Joined(
        pool="p", incarnation=1, name="a", nonce=A, address="http://a"
    )


def test_a_join_said_twice_finds_its_own_number() -> None:
    """P9: number and nonce are kept together."""
    desk = Desk(EVERYTHING_TO_A)
    desk.join(T0, "a", A)
    answer = desk.join(at(1), "a", A)
    assert isinstance(answer, LeaseResponse)
    assert answer.incarnation == 1
    assert sum(isinstance(record, Joined) for record in desk.records) == 1


def test_the_same_join_read_twice_is_answered_once() -> None:
    """P2."""
    desk = Desk(EVERYTHING_TO_A)
    desk.join(T0, "a", A, sequence=1)
    assert desk.join(at(1), "a", A, sequence=1) is None
    assert desk.notes.count("late request") == 1


def test_who_has_only_joined_is_given_nothing() -> None:
    """P9: it may have died meanwhile; the second exchange shows that it lives."""
    desk = Desk(EVERYTHING_TO_A)
    desk.join(T0, "a", A)
    desk.advance(at(5))
    answer = desk.join(at(6), "a", A)
    assert isinstance(answer, LeaseResponse)
    assert answer.leases == ()


def test_owners_that_arrive_together_are_taken_together() -> None:
    """P12: otherwise the first would be granted everything, and return half of it at once."""
    desk = Desk(HALVES)
    a, b = desk.owner(T0, "a", A), desk.owner(at(0.05), "b", B)
    assert marks(desk.ask(at(0.06), a, A, ())) == []
    desk.advance(at(0.2))
    assert (desk.pokes(A), desk.pokes(B)) == (1, 1)
    assert marks(desk.ask(at(0.2), a, A, ())) == [(b"", b"m", "granted")]
    assert marks(desk.ask(at(0.2), b, B, ())) == [(b"m", None, "granted")]


def test_a_name_whose_owner_may_live_is_refused_with_how_long_to_wait() -> None:
    """P8."""
    desk, held = one_owner()
    desk.ask(at(10), 1, A, held)
    answer = desk.join(at(12), "a", B)
    assert isinstance(answer, Refusal)
    assert (answer.reason, answer.retry_after_ns) == ("name_held", seconds(11))
    assert "http://a" in answer.detail


def test_a_name_whose_hold_has_run_out_is_free() -> None:
    desk, _ = one_owner()
    answer = desk.join(at(13.3), "a", B)
    assert isinstance(answer, LeaseResponse)
    assert answer.incarnation == 2


def test_the_join_of_an_incarnation_that_is_gone_is_past() -> None:
    """P9: a straggling join must not bring back an owner that has left."""
    desk, _ = one_owner()
    desk.advance(at(14))
    answer = desk.join(at(14), "a", A)
    assert isinstance(answer, Refusal)
    assert answer.reason == "past"


@pytest.mark.parametrize(("incarnation", "nonce"), [(2, A), (1, B), (0, A), (99, 99)])
def test_a_request_of_another_incarnation_is_past(incarnation: int, nonce: int) -> None:
    desk, held = one_owner()
    answer = desk.ask(at(1), incarnation, nonce, held)
    assert isinstance(answer, Refusal)
    assert answer.reason == "past"
    assert desk.owner_of(b"k") == 1


# --- renewing -------------------------------------------------------------------------------------


def test_a_renewal_is_not_journaled() -> None:
    """P18."""
    desk, held = one_owner()
    records = len(desk.records)
    for i in range(1, 20):
        assert marks(desk.ask(at(3 * i), 1, A, held)) == [(b"", None, "renewed")]
    assert len(desk.records) == records


def test_a_settled_owner_is_answered_with_the_same_leases() -> None:
    """Its renewals need no thought: the answer is kept for as long as the table is."""
    desk, held = one_owner()
    first, second = desk.ask(at(3), 1, A, held), desk.ask(at(6), 1, A, held)
    assert isinstance(first, LeaseResponse)
    assert isinstance(second, LeaseResponse)
    assert second.leases is first.leases


def test_the_hold_counts_from_receipt_and_never_shrinks() -> None:
    """P3."""
    desk, held = one_owner()
    desk.ask(at(3), 1, A, held)
    assert desk.pool.sessions[1].hold_until == at(3) + DEFAULT.hold_ns
    desk.pool.sessions[1].hold_until = at(100)
    desk.ask(at(4), 1, A, held)
    assert desk.pool.sessions[1].hold_until == at(100)


def test_what_is_not_listed_is_free_and_granted_anew() -> None:
    """P5: under a number never used before; its state is gone."""
    desk, held = one_owner()
    answer = desk.ask(at(3), 1, A, ())
    assert isinstance(answer, LeaseResponse)
    [lease] = answer.leases
    assert (lease.mark, lease.number > held[0].number + 1) == ("granted", True)
    assert lease.since == held[0].number + 1


def test_what_is_listed_under_another_number_is_not_listed() -> None:
    """P5: range and number."""
    desk, held = one_owner()
    answer = desk.ask(at(3), 1, A, (Held(start=b"", end=None, number=held[0].number - 1),))
    assert marks(answer) == [(b"", None, "granted")]


def test_a_part_that_is_not_listed_is_free_alone() -> None:
    """P11: what stays, stays under its number."""
    desk, held = one_owner()
    number = held[0].number
    answer = desk.ask(at(3), 1, A, (Held(start=b"c", end=b"m", number=number),))
    assert marks(answer) == [
        (b"", b"c", "granted"),
        (b"c", b"m", "renewed"),
        (b"m", None, "granted"),
    ]
    assert listed(answer)[1] == Held(start=b"c", end=b"m", number=number)


def test_a_range_listed_in_pieces_is_listed() -> None:
    desk, held = one_owner()
    number = held[0].number
    pieces = (
        Held(start=b"", end=b"c", number=number),
        Held(start=b"c", end=b"m", number=number),
        Held(start=b"m", end=None, number=number),
    )
    assert marks(desk.ask(at(3), 1, A, pieces)) == [(b"", None, "renewed")]


def test_what_is_listed_and_another_has_is_not_renewed() -> None:
    """It lists what it lost long ago: the answer leaves it out, and nothing changes."""
    desk, _ = one_owner()
    b = desk.owner(at(0.5), "b", B)
    answer = desk.ask(at(1), b, B, (Held(start=b"", end=None, number=2),))
    assert (marks(answer), desk.owner_of(b"k")) == ([], 1)


def test_a_late_request_changes_nothing() -> None:
    """P2: it lists less than has been granted since."""
    desk, held = one_owner()
    desk.ask(at(3), 1, A, held, sequence=50)
    assert desk.ask(at(4), 1, A, (), sequence=50) is None
    assert desk.ask(at(4), 1, A, (), sequence=49, leaving=True) is None
    assert (desk.owner_of(b"k"), desk.pool.sessions[1].leaving) == (1, False)


# --- recalling ------------------------------------------------------------------------------------


def recalled() -> tuple[Desk, tuple[Held, ...]]:
    """`a` has everything; `b` came, and should have the high keys; `a` was told."""
    desk = Desk(HALVES)
    desk.owner(T0, "a", A)
    held = desk.settle(at(0.2), 1, A)
    assert marks(desk.ask(at(0.3), 1, A, held)) == [(b"", None, "renewed")]
    desk.owner(at(1), "b", B)
    desk.advance(at(1.2))
    assert desk.pokes(A) > 0
    answer = desk.ask(at(2), 1, A, held)
    assert marks(answer) == [(b"", b"m", "renewed"), (b"m", None, "recalled")]
    return desk, listed(answer)


def test_a_range_that_is_split_keeps_its_number() -> None:
    """P11: keys that never moved are not lost."""
    desk, held = recalled()
    assert held[0].number == held[1].number
    assert isinstance(desk.ask(at(3), 1, A, held[:1]), LeaseResponse)
    assert desk.pool.table.rights[b"c"].number == held[0].number
    assert desk.pool.table.rights[b"z"].number > held[0].number


def test_a_recalled_range_is_nobody_elses_until_it_is_returned() -> None:
    """P10."""
    desk, held = recalled()
    assert marks(desk.ask(at(3), 2, B, ())) == []
    desk.ask(at(4), 1, A, held[:1])
    assert desk.pokes(B) > 0
    assert marks(desk.ask(at(4), 2, B, ())) == [(b"m", None, "granted")]


def test_a_recall_is_said_again_until_its_deadline_and_then_left_out() -> None:
    """P10."""
    desk, held = recalled()
    deadline = Instant(at(2) + DEFAULT.recall_ns)
    answer = desk.ask(Instant(deadline - 1), 1, A, held)
    assert marks(answer) == [(b"", b"m", "renewed"), (b"m", None, "recalled")]
    assert marks(desk.ask(deadline, 1, A, held)) == [(b"", b"m", "renewed")]
    assert desk.owner_of(b"z") == 1, "until it does not list it"


def test_a_recall_that_was_told_is_never_taken_back() -> None:
    """S3: the owner has stopped believing. When `b` goes again, `a` must return and be granted."""
    desk, held = recalled()
    desk.ask(at(3), 2, B, (), leaving=True)
    desk.advance(at(3))
    answer = desk.ask(at(3.5), 1, A, held)
    assert marks(answer) == [(b"", b"m", "renewed"), (b"m", None, "recalled")]
    answer = desk.ask(at(4), 1, A, held[:1])
    assert marks(answer) == [(b"", b"m", "renewed"), (b"m", None, "granted")]


def test_a_part_of_a_recalled_range_may_be_returned_first() -> None:
    desk, held = recalled()
    number = held[0].number
    answer = desk.ask(at(3), 1, A, (held[0], Held(start=b"s", end=None, number=number)))
    assert marks(answer) == [(b"", b"m", "renewed"), (b"s", None, "recalled")]
    assert (desk.owner_of(b"n"), desk.owner_of(b"z")) == (0, 1)


def test_an_owner_that_was_told_to_return_everything_and_does_can_be_given_it_again() -> None:
    """The deadline of the first recall says nothing about what is granted later."""
    desk, held = recalled()
    desk.ask(at(3), 1, A, held[:1])
    desk.ask(at(3), 2, B, (), leaving=True)
    desk.advance(at(3))
    held = desk.settle(at(4), 1, A)
    assert marks(desk.ask(at(12), 1, A, held)) == [
        (b"", b"m", "renewed"),
        (b"m", None, "renewed"),
    ]


# --- expiring and leaving -------------------------------------------------------------------------


def test_ranges_are_free_when_the_one_hold_has_run_out_and_not_before() -> None:
    """P4."""
    desk, held = one_owner()
    desk.ask(at(5), 1, A, held)
    desk.advance(Instant(at(5) + DEFAULT.hold_ns - 1))
    assert desk.owner_of(b"k") == 1
    desk.advance(Instant(at(5) + DEFAULT.hold_ns))
    assert desk.owner_of(b"k") == 0
    assert not desk.pool.sessions
    assert "owner expired" in desk.notes
    right = desk.pool.table.rights[b"k"]
    assert right.since == right.number > held[0].number, "its loss is told at once"


def test_what_an_expired_owner_had_goes_to_who_is_next() -> None:
    desk, held = one_owner()
    b = desk.owner(at(1), "b", B)
    desk.ask(at(12), b, B, ())
    desk.told(B, Refusal)
    desk.advance(at(13.3))
    desk.advance(at(13.3))
    assert desk.pokes(B) > 0
    answer = desk.ask(at(13.4), b, B, ())
    assert marks(answer) == [(b"", None, "granted")]
    assert listed(answer)[0].number > held[0].number


def test_who_leaves_with_an_empty_list_is_gone() -> None:
    desk, _ = one_owner()
    answer = desk.ask(at(1), 1, A, (), leaving=True)
    assert (marks(answer), list(desk.pool.sessions), desk.owner_of(b"k")) == ([], [], 0)
    assert isinstance(desk.records[-1], Left)


def test_who_leaves_and_still_lists_something_is_recalled_and_given_nothing() -> None:
    desk, held = one_owner()
    desk.owner(at(0.5), "b", B)
    part = (Held(start=b"", end=b"c", number=held[0].number),)
    answer = desk.ask(at(1), 1, A, part, leaving=True)
    assert marks(answer) == [(b"", b"c", "recalled")], "at once, and not what it just returned"
    assert marks(desk.ask(at(1.3), 2, B, ())) == [(b"c", None, "granted")]


def test_who_was_leaving_cannot_stay() -> None:
    desk, held = one_owner()
    desk.ask(at(1), 1, A, held, leaving=True)
    desk.ask(at(2), 1, A, held)
    assert desk.pool.sessions[1].leaving


def test_a_join_while_its_name_is_leaving_waits_like_any_other() -> None:
    """P8: it still lists something. And its own join, said again, gets it nothing new."""
    desk, held = one_owner()
    desk.ask(at(1), 1, A, held, leaving=True)
    other = desk.join(at(2), "a", B)
    assert isinstance(other, Refusal)
    assert other.reason == "name_held"
    assert marks(desk.join(at(3), "a", A)) == []
    assert desk.owner_of(b"k") == 0, "a join lists nothing"


def test_a_join_after_leaving_is_past_or_a_new_incarnation() -> None:
    desk, _ = one_owner()
    desk.ask(at(1), 1, A, (), leaving=True)
    again, anew = desk.join(at(2), "a", A), desk.join(at(2), "a", B)
    assert isinstance(again, Refusal)
    assert isinstance(anew, LeaseResponse)
    assert (again.reason, anew.incarnation) == ("past", 2)


# --- poking ---------------------------------------------------------------------------------------


def test_one_poke_is_on_its_way_at_a_time() -> None:
    """No other is sent until the next request, which is answered with all there is by then."""
    desk, held = one_owner()
    desk.pokes(A)
    for _ in range(5):
        desk.pool.offer_all()
    desk.commit()
    assert desk.pokes(A) == 1
    desk.ask(at(1), 1, A, held)
    desk.pool.offer_all()
    desk.commit()
    assert desk.pokes(A) == 1


def test_a_broken_connection_is_not_poked_and_proves_nothing() -> None:
    """P14."""
    desk, _ = one_owner()
    desk.pokes(A)
    desk.pool.on_disconnected(A)
    desk.pool.offer_all()
    desk.commit()
    assert (desk.pokes(A), desk.owner_of(b"k")) == (0, 1)


def test_nothing_is_granted_while_nothing_may_be() -> None:
    """P22, P25."""
    desk = Desk(EVERYTHING_TO_A)
    desk.context.is_withheld = True
    desk.owner(T0, "a", A)
    desk.advance(at(1))
    assert marks(desk.ask(at(1), 1, A, ())) == []
    desk.pokes(A)
    desk.context.is_withheld = False
    desk.pool.offer_all()
    desk.commit()
    assert desk.pokes(A) == 1
    assert marks(desk.ask(at(2), 1, A, ())) == [(b"", None, "granted")]


def test_a_pool_at_rest_wants_to_be_woken_for_its_holds_only() -> None:
    desk, held = one_owner()
    desk.advance(at(1))
    desk.ask(at(2), 1, A, held)
    desk.advance(desk.pool.wake_at)
    assert desk.pool.wake_at == at(2) + DEFAULT.hold_ns
    assert Desk(EVERYTHING_TO_A).pool.wake_at == FAR_FUTURE


# --- telling --------------------------------------------------------------------------------------


def test_changes_are_told_to_lookups_as_they_were_written() -> None:
    desk, _ = one_owner()
    desk.ask(at(1), 1, A, (), leaving=True)
    written = [
        entry
        for record in desk.records
        if isinstance(record, Changed | Left)
        for entry in record.entries
    ]
    assert desk.pool.publisher.log.since(2, 100) == tuple(written)


def test_any_split_of_the_space_is_granted_whole() -> None:
    """Every key is somebody's, however the plan cuts it."""
    cuts = [bytes([i]) for i in range(0, 250, 7)]
    pieces = [
        KeyRange(b"", cuts[1]),
        *(KeyRange(x, y) for x, y in pairwise(cuts[1:])),
    ]
    desk = Desk(ByName((WHOLE, "a"), *((piece, "ab"[i % 2]) for i, piece in enumerate(pieces))))
    desk.owner(T0, "a", A)
    desk.owner(T0, "b", B)
    desk.advance(at(1))
    held = [*desk.settle(at(1), 1, A), *desk.settle(at(1), 2, B)]
    assert sorted(item.start for item in held) == desk.pool.table.rights.starts()
