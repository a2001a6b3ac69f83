"""A leader moves ranges away from an owner: it orders, hands over, gives over, or takes back."""

from itertools import pairwise

import pytest

from tenure.base.instants import Instant
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.lease.leader.moving import AT_ONCE
from tenure.protocol.lease.leader.order_secrets import NO_SECRET
from tenure.protocol.lease.messages import Copy, Expected, HandOff, Held, Leased, LeaseResponse
from tenure.protocol.lease.records import Changed, TookOver
from tenure.protocol.lease.table import Right
from tenure.protocol.lease.timing import DEFAULT
from tests.unit.protocol.lease.desk import HIGH, LOW, T0, ByName, Desk, at, listed, marks

A, B, C = 101, 102, 103  # nonces, and connections
SOURCE, TAKER, THIRD = 1, 2, 3  # incarnations
NUMBER = 2
"""The number under which the source was granted everything; `since` is 1."""
HELD = (Held(start=b"", end=None, number=NUMBER),)
TO_A, TO_B, TO_C = ByName((WHOLE, "a")), ByName((WHOLE, "b a")), ByName((WHOLE, "c a"))
GIVING = (Copy(start=b"", end=None, number=NUMBER),)
HANDED = (Copy(start=b"", end=None, number=NUMBER, taker=TAKER),)
IMPORTED = HANDED
"""The source says whom it gave it to, the taker says that it has it, in the same words."""


def plan(desk: Desk, now: Instant, policy: ByName) -> None:
    desk.pool.planner.policy = policy
    desk.pool.planner.soon(now)
    desk.advance(Instant(now + DEFAULT.gather_ns))


def three_owners(*able: str) -> Desk:
    """Return a desk where `a` has everything, under the number 2, and `b` and `c` are members."""
    able = able or ("a", "b", "c")
    desk = Desk(TO_A)
    assert desk.owner(T0, "a", A, hand_off="a" in able) == SOURCE
    assert desk.settle(at(0.2), SOURCE, A) == HELD
    assert desk.owner(at(0.5), "b", B, hand_off="b" in able) == TAKER
    assert desk.owner(at(0.5), "c", C, hand_off="c" in able) == THIRD
    desk.advance(at(0.8))
    return desk


def ordered() -> Desk:
    """Return a desk where at 1 s everything is planned for `b`, and `a` is told to hand it over."""
    desk = three_owners()
    plan(desk, at(1), TO_B)
    assert orders(ask(desk, 1.1, HELD)) == [("", None, TAKER)]
    return desk


def ask(
    desk: Desk, now: float, held: tuple[Held, ...] = (), *copies: Copy, leaving: bool = False
) -> LeaseResponse:
    """The source asks."""
    answer = desk.ask(at(now), SOURCE, A, held, copies=copies, leaving=leaving)
    assert isinstance(answer, LeaseResponse)
    return answer


def taker_asks(
    desk: Desk, now: float, held: tuple[Held, ...] = (), *copies: Copy, leaving: bool = False
) -> LeaseResponse:
    answer = desk.ask(at(now), TAKER, B, held, copies=copies, leaving=leaving)
    assert isinstance(answer, LeaseResponse)
    return answer


def orders(answer: LeaseResponse) -> list[tuple[str, bytes | None, int]]:
    return [(order.start.decode(), order.end, order.taker) for order in answer.hand_offs]


def right(desk: Desk, key: bytes = b"k") -> Right:
    return desk.pool.table.rights[key]


# --- orders ---------------------------------------------------------------------------------------


def test_what_moves_is_ordered_while_it_is_served() -> None:
    desk = three_owners()
    desk.pokes(A)
    plan(desk, at(1), TO_B)
    assert desk.pokes(A) == 1
    answer = ask(desk, 1.1, HELD)
    assert marks(answer) == [(b"", None, "renewed")]
    (order,) = answer.hand_offs
    assert order == HandOff(
        start=b"", end=None, number=NUMBER, taker=TAKER, address="ws://b", secret=order.secret
    )
    assert ask(desk, 2, HELD).hand_offs == answer.hand_offs, "as long as it is wanted"


def test_the_taker_is_poked_and_told_what_to_expect_for_as_long_as_it_is_ordered() -> None:
    desk = three_owners()
    desk.context.write(TookOver(leadership=1, promise_ns=1, manager="m", secret=b"secret"))
    plan(desk, at(1), TO_B)
    taker_asks(desk, 1.05)
    desk.pokes(B)
    (order,) = ask(desk, 1.1, HELD).hand_offs
    assert order.secret != NO_SECRET
    assert desk.pokes(B) == 1, "before it is offered anything"
    announced = (Expected(start=b"", end=None, number=NUMBER, source=SOURCE, secret=order.secret),)
    assert taker_asks(desk, 1.2).expected == announced
    ask(desk, 1.3, HELD)
    assert desk.pokes(B) == 0, "it knows"
    assert taker_asks(desk, 1.4).expected == announced
    third = desk.ask(at(1.5), THIRD, C, ())
    assert isinstance(third, LeaseResponse)
    assert third.expected == (), "nobody else is told"
    plan(desk, at(2), TO_A)
    ask(desk, 2.2, HELD)
    assert taker_asks(desk, 2.3).expected == ()


def test_a_successor_tells_the_same_secret() -> None:
    """A hand-off that is under way at a takeover goes on."""
    before = three_owners()
    before.context.write(TookOver(leadership=1, promise_ns=1, manager="m", secret=b"secret"))
    plan(before, at(1), TO_B)
    (order,) = ask(before, 1.1, HELD).hand_offs
    desk = Desk(TO_B, state=before.context.history.state(), inherited_until=at(20))
    taker_asks(desk, 2)
    ask(desk, 2.1, HELD)
    desk.advance(at(2.3))
    assert ask(desk, 2.4, HELD).hand_offs == (order,)
    (expected,) = taker_asks(desk, 2.5).expected
    assert expected.secret == order.secret


@pytest.mark.parametrize("able", [("a", "c"), ("b", "c"), ("c",)])
def test_where_one_of_the_two_cannot_hand_over_it_is_recalled(able: tuple[str, ...]) -> None:
    """Old owners say nothing of hand-off: their ranges move as they always did."""
    desk = three_owners(*able)
    plan(desk, at(1), TO_B)
    answer = ask(desk, 1.1, HELD)
    assert (marks(answer), answer.hand_offs) == ([(b"", None, "recalled")], ())


def test_an_order_is_taken_back_where_the_plan_changes_back() -> None:
    desk = ordered()
    plan(desk, at(2), TO_A)
    answer = ask(desk, 2.2, HELD)
    assert (marks(answer), answer.hand_offs) == ([(b"", None, "renewed")], ())
    assert not desk.pool.sessions[SOURCE].is_moving


def test_an_order_is_for_another_where_the_plan_changes_again() -> None:
    desk = ordered()
    plan(desk, at(2), TO_C)
    assert orders(ask(desk, 2.2, HELD)) == [("", None, THIRD)]


def test_an_order_is_split_where_the_plan_splits_its_range() -> None:
    desk = ordered()
    plan(desk, at(2), ByName((LOW, "b"), (HIGH, "c")))
    assert orders(ask(desk, 2.2, HELD)) == [("", b"m", TAKER), ("m", None, THIRD)]


def test_so_many_are_ordered_at_once_and_the_others_are_served_meanwhile() -> None:
    desk = three_owners()
    bounds = [b"", *(bytes([97 + i]) for i in range(9)), None]
    pieces = [KeyRange(start or b"", end) for start, end in pairwise(bounds)]
    plan(desk, at(1), ByName(*((piece, "bc"[i % 2]) for i, piece in enumerate(pieces))))
    answer = ask(desk, 1.2, HELD)
    assert (len(answer.hand_offs), len(answer.leases)) == (AT_ONCE, len(pieces))
    first = answer.hand_offs[0]
    left = tuple(Held(start=each.start, end=each.end, number=NUMBER) for each in answer.leases[1:])
    copy = Copy(start=first.start, end=first.end, number=NUMBER, taker=first.taker)
    following = ask(desk, 1.3, left, copy)
    assert len(following.hand_offs) == AT_ONCE
    assert set(answer.hand_offs[1:]) < set(following.hand_offs), "what was begun goes on"


def test_nothing_new_is_ordered_for_who_is_not_connected() -> None:
    """It may be gone. What is ordered already goes on."""
    desk = three_owners()
    desk.pool.on_disconnected(B)
    plan(desk, at(1), TO_B)
    answer = ask(desk, 1.1, HELD)
    assert (marks(answer), answer.hand_offs) == ([(b"", None, "renewed")], ())
    taker_asks(desk, 2)
    assert orders(ask(desk, 2.1, HELD)) == [("", None, TAKER)]
    desk.pool.on_disconnected(B)
    assert orders(ask(desk, 2.2, HELD)) == [("", None, TAKER)]


def test_what_takes_too_long_is_recalled() -> None:
    """The deadline counts from the first order, whatever was tried since."""
    desk = ordered()
    late = 1.1 + DEFAULT.hand_off_ns / 1e9
    for i in range(1, int(late)):
        taker_asks(desk, i + 1)
        assert orders(ask(desk, i + 1, HELD)) == [("", None, TAKER)]
    answer = ask(desk, late, HELD)
    assert (marks(answer), answer.hand_offs) == ([(b"", None, "recalled")], ())
    assert marks(ask(desk, late + 1)) == []
    assert right(desk) == Right(0, NUMBER + 1, NUMBER + 1), "the loss is signalled"


def test_what_its_owner_has_given_up_is_recalled_although_it_was_ordered() -> None:
    """Its drain is over and its callback hangs: it serves nothing, so it hands nothing over."""
    desk = ordered()
    given_up = (Held(start=b"", end=None, number=0),)
    answer = desk.ask(at(2), SOURCE, A, HELD, leaving=True, letting_go=given_up)
    assert isinstance(answer, LeaseResponse)
    assert (marks(answer), answer.hand_offs) == ([(b"", None, "recalled")], ())
    freed = 2 + DEFAULT.recall_ns / 1e9
    taker_asks(desk, freed)
    assert marks(desk.ask(at(freed), SOURCE, A, HELD, leaving=True, letting_go=given_up)) == []


def test_a_recall_that_was_told_stays_one_although_it_could_be_handed_over_now() -> None:
    """P10: the owner has stopped believing."""
    desk = three_owners("a", "b")
    plan(desk, at(1), TO_C)
    assert marks(ask(desk, 1.2, HELD)) == [(b"", None, "recalled")]
    plan(desk, at(2), TO_B)
    answer = ask(desk, 2.2, HELD)
    assert (marks(answer), answer.hand_offs) == ([(b"", None, "recalled")], ())


# --- giving, and handing over ---------------------------------------------------------------------


def test_what_is_given_over_is_neither_free_nor_listed() -> None:
    desk = ordered()
    records = len(desk.records)
    answer = ask(desk, 2, (), *GIVING)
    assert (answer.leases, answer.copies, orders(answer)) == ((), HELD, [("", None, TAKER)])
    assert (right(desk), len(desk.records)) == (Right(SOURCE, NUMBER, 1), records)
    assert taker_asks(desk, 2.1).leases == ()


def test_one_record_gives_it_to_the_taker_with_its_state() -> None:
    desk = ordered()
    answer = ask(desk, 2, (), *HANDED)
    assert (answer.leases, answer.copies, answer.hand_offs) == ((), (), ())
    assert isinstance(desk.records[-1], Changed)
    assert desk.records[-1].handed == NUMBER
    assert right(desk) == Right(TAKER, NUMBER + 1, 1), "a new number, the old since"
    assert desk.pokes(B) == 1
    [lease] = taker_asks(desk, 2.1, (), *IMPORTED).leases
    assert lease == Leased(
        start=b"", end=None, number=NUMBER + 1, since=1, mark="granted", handed=NUMBER
    )


def test_what_was_handed_over_is_told_as_granted_once_and_then_renewed() -> None:
    """Repeated as a grant, it would be dropped: its number has been seen."""
    desk = ordered()
    ask(desk, 2, (), *HANDED)
    held = listed(taker_asks(desk, 2.1, (), *IMPORTED))
    for i in range(3, 6):
        answer = taker_asks(desk, i, held)
        assert answer.leases == (
            Leased(start=b"", end=None, number=NUMBER + 1, since=1, mark="renewed"),
        )


def test_all_that_one_taker_has_is_handed_over_by_one_record() -> None:
    """A request may cut it as finely as it likes: otherwise a lie would cost a record
    for each key.
    """
    desk = three_owners()
    plan(desk, at(1), TO_B)
    ask(desk, 1.2, HELD)
    records = len(desk.records)
    copies = (
        Copy(start=b"", end=b"c", number=NUMBER, taker=TAKER),
        Copy(start=b"c", end=b"x", number=NUMBER, taker=TAKER),
    )
    ask(desk, 2, (), *copies, Copy(start=b"x", end=None, number=NUMBER, taker=THIRD))
    assert len(desk.records) == records + 2
    assert [(held.start, held.number) for held in desk.pool.table.held_by(TAKER)] == [(b"", 3)]
    assert [(held.start, held.number) for held in desk.pool.table.held_by(THIRD)] == [(b"x", 4)]


def test_a_request_from_before_the_grant_disclaims_nothing() -> None:
    """The taker's request was on its way when the source said that it has everything."""
    desk = ordered()
    ask(desk, 2, (), *HANDED)
    [lease] = taker_asks(desk, 2.1).leases
    assert (lease.mark, lease.handed, lease.number) == ("granted", NUMBER, NUMBER + 1)


def test_a_grant_whose_answer_was_lost_is_made_again_and_keeps_since() -> None:
    desk = ordered()
    ask(desk, 2, (), *HANDED)
    taker_asks(desk, 2.1, (), *IMPORTED)
    [lease] = taker_asks(desk, 3, (), *IMPORTED).leases
    assert lease == Leased(
        start=b"", end=None, number=NUMBER + 2, since=1, mark="granted", handed=NUMBER
    )
    assert right(desk) == Right(TAKER, NUMBER + 2, 1)


def test_a_grant_whose_import_is_gone_is_free_and_its_state_lost() -> None:
    desk = ordered()
    ask(desk, 2, (), *HANDED)
    taker_asks(desk, 2.1, (), *IMPORTED)
    [lease] = taker_asks(desk, 3).leases
    assert lease == Leased(start=b"", end=None, number=NUMBER + 3, since=NUMBER + 2, mark="granted")


@pytest.mark.parametrize("number", [1, NUMBER + 2, 99])
def test_a_copy_of_another_number_does_not_count(number: int) -> None:
    desk = ordered()
    answer = ask(desk, 2, (), Copy(start=b"", end=None, number=number, taker=TAKER))
    assert (answer.leases, answer.copies) == ((), ())
    assert right(desk).owner != TAKER
    assert right(desk).since == NUMBER + 1


def test_a_part_that_there_is_no_copy_of_is_returned() -> None:
    desk = ordered()
    ask(desk, 2, (), Copy(start=b"", end=b"m", number=NUMBER, taker=TAKER))
    assert right(desk, b"a") == Right(TAKER, NUMBER + 1, 1)
    assert right(desk, b"z") == Right(0, NUMBER + 2, NUMBER + 2)


def test_who_was_given_it_may_be_told_of_it_by_the_next_leader() -> None:
    """P19: nothing but the journal and what owners say is needed to go on."""
    desk = ordered()
    ask(desk, 2, (), *HANDED)
    after = Desk(TO_B, state=desk.context.history.state(), inherited_until=at(20))
    [lease] = taker_asks(after, 3, (), *IMPORTED).leases
    assert lease == Leased(
        start=b"", end=None, number=NUMBER + 2, since=1, mark="granted", handed=NUMBER
    )


def test_the_next_leader_takes_the_sources_word() -> None:
    """Its predecessor died before it journaled the return."""
    before = ordered()
    desk = Desk(TO_B, state=before.context.history.state(), inherited_until=at(20))
    assert taker_asks(desk, 3, (), *IMPORTED).copies == HELD, "kept until it is decided"
    ask(desk, 4, (), *HANDED)
    assert right(desk) == Right(TAKER, NUMBER + 1, 1)


# --- taking back ----------------------------------------------------------------------------------


def test_the_source_gets_back_what_it_could_not_hand_over() -> None:
    desk = ordered()
    [lease] = ask(desk, 2, (), Copy(start=b"", end=None, number=NUMBER, taker=SOURCE)).leases
    assert lease == Leased(
        start=b"", end=None, number=NUMBER + 1, since=1, mark="granted", handed=NUMBER
    )
    assert orders(ask(desk, 3, (Held(start=b"", end=None, number=NUMBER + 1),))) == [
        ("", None, TAKER)
    ]


def test_one_deadline_is_for_all_attempts() -> None:
    desk = ordered()
    deadline = desk.pool.sessions[SOURCE].orders[b"k"]
    ask(desk, 2, (), Copy(start=b"", end=None, number=NUMBER, taker=SOURCE))
    ask(desk, 3, (Held(start=b"", end=None, number=NUMBER + 1),))
    assert desk.pool.sessions[SOURCE].orders[b"k"] == deadline
    assert deadline == at(1.1) + DEFAULT.hand_off_ns


def test_the_next_leader_gives_back_what_was_being_given_over() -> None:
    """It has ordered nothing, so only the owner that has the whole may have it."""
    before = ordered()
    ask(before, 2, (), *GIVING)
    desk = Desk(TO_B, state=before.context.history.state(), inherited_until=at(20))
    [lease] = ask(desk, 3, (), *GIVING).leases
    assert lease == Leased(
        start=b"", end=None, number=NUMBER + 1, since=1, mark="granted", handed=NUMBER
    )


@pytest.mark.parametrize("policy", [TO_A, ByName((WHOLE, "nobody"))])
def test_what_is_not_ordered_any_more_comes_back(policy: ByName) -> None:
    desk = ordered()
    plan(desk, at(2), policy)
    [lease] = ask(desk, 2.2, (), *GIVING).leases
    assert (lease.mark, lease.since, lease.handed) == ("granted", 1, NUMBER)


def test_what_is_given_over_for_too_long_comes_back_and_is_recalled() -> None:
    desk = ordered()
    late = 1.2 + DEFAULT.hand_off_ns / 1e9
    for i in range(2, int(late) + 1):
        taker_asks(desk, i)
        assert ask(desk, i, (), *GIVING).leases == ()
    assert marks(ask(desk, late, (), *GIVING)) == [(b"", None, "granted")]
    held = (Held(start=b"", end=None, number=NUMBER + 1),)
    assert marks(ask(desk, late + 1, held)) == [(b"", None, "recalled")]
    ask(desk, late + 2)
    assert right(desk).since == right(desk).number, "the loss is signalled"


def test_the_source_gets_back_what_its_taker_died_with() -> None:
    desk = ordered()
    desk.pool.sessions[TAKER].hold_until = at(1.5)
    desk.pool.sessions[THIRD].hold_until = at(99)
    desk.pool.sessions.next_expiry = at(1.5)
    desk.advance(at(2))
    assert TAKER not in desk.pool.sessions
    [lease] = ask(desk, 3, (), *HANDED).leases
    assert lease == Leased(
        start=b"", end=None, number=NUMBER + 1, since=1, mark="granted", handed=NUMBER
    )


def test_the_source_gets_back_what_its_taker_is_leaving_with() -> None:
    desk = ordered()
    assert taker_asks(desk, 2, (), *IMPORTED, leaving=True).copies == HELD
    [lease] = ask(desk, 3, (), *HANDED).leases
    assert (lease.number, lease.since) == (NUMBER + 1, 1)
    assert taker_asks(desk, 3, (), *IMPORTED, leaving=True).copies == ()
    taker_asks(desk, 4, leaving=True)
    assert TAKER not in desk.pool.sessions


def test_a_source_whose_hold_ran_out_gets_nothing_back() -> None:
    desk = ordered()
    ask(desk, 2, (), *GIVING)
    taker_asks(desk, 10)
    desk.advance(at(15.1))
    assert right(desk) == Right(0, NUMBER + 1, NUMBER + 1)
    answer = taker_asks(desk, 15.5, (), *IMPORTED)
    assert (answer.copies, marks(answer)) == ((), [(b"", None, "granted")])
    assert answer.leases[0].handed == 0


# --- leaving --------------------------------------------------------------------------------------


def test_the_first_answer_to_who_leaves_orders_or_recalls_everything() -> None:
    desk = three_owners("a", "b")
    desk.pool.planner.policy = ByName((LOW, "a b"), (HIGH, "a c"))
    answer = ask(desk, 1.1, HELD, leaving=True)
    assert marks(answer) == [(b"", b"m", "renewed"), (b"m", None, "recalled")]
    assert orders(answer) == [("", b"m", TAKER)]


def test_the_last_that_leaves_is_recalled_everything() -> None:
    desk = three_owners()
    desk.pool.planner.policy = TO_A
    answer = ask(desk, 1.1, HELD, leaving=True)
    assert (marks(answer), answer.hand_offs) == ([(b"", None, "recalled")], ())
    ask(desk, 1.2, leaving=True)
    assert SOURCE not in desk.pool.sessions


def test_who_leaves_waits_for_one_that_has_joined_and_not_yet_spoken() -> None:
    desk = Desk(ByName((WHOLE, "a b")))
    desk.owner(T0, "a", A, hand_off=True)
    desk.settle(at(0.2), SOURCE, A)
    desk.join(at(1), "b", B, hand_off=True)
    answer = ask(desk, 1.1, HELD, leaving=True)
    assert (marks(answer), orders(answer)) == ([(b"", None, "renewed")], [])
    taker_asks(desk, 1.2)
    desk.advance(at(1.4))
    assert orders(ask(desk, 1.5, HELD, leaving=True)) == [("", None, TAKER)]


def test_who_leaves_waits_for_one_that_has_spoken_until_a_plan_has_seen_it() -> None:
    """The plan waits a moment for others that join; the owner that leaves may ask meanwhile."""
    desk = Desk(ByName((WHOLE, "a b")))
    desk.owner(T0, "a", A, hand_off=True)
    desk.settle(at(0.2), SOURCE, A)
    desk.join(at(1), "b", B, hand_off=True)
    ask(desk, 1.1, HELD, leaving=True)
    taker_asks(desk, 1.2)
    assert marks(ask(desk, 1.21, HELD, leaving=True)) == [(b"", None, "renewed")]
    desk.advance(at(1.4))
    assert orders(ask(desk, 1.5, HELD, leaving=True)) == [("", None, TAKER)]


def test_who_leaves_waits_for_nobody_that_cannot_take() -> None:
    desk = Desk(ByName((WHOLE, "a b")))
    desk.owner(T0, "a", A, hand_off=True)
    desk.settle(at(0.2), SOURCE, A)
    desk.join(at(1), "b", B)
    assert marks(ask(desk, 1.1, HELD, leaving=True)) == [(b"", None, "recalled")]


def test_who_leaves_goes_when_its_taker_has_everything() -> None:
    desk = three_owners()
    desk.pool.planner.policy = TO_B
    ask(desk, 1.1, HELD, leaving=True)
    ask(desk, 1.2, (), *GIVING, leaving=True)
    assert SOURCE in desk.pool.sessions
    ask(desk, 1.3, (), *HANDED, leaving=True)
    assert (SOURCE in desk.pool.sessions, right(desk)) == (True, Right(TAKER, NUMBER + 1, 1))
    ask(desk, 1.4, leaving=True)
    assert (SOURCE in desk.pool.sessions, right(desk)) == (False, Right(TAKER, NUMBER + 1, 1))
