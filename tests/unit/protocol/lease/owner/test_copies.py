"""Copies of ranges that are not served, at both ends of a hand-off: they are kept, granted or
forgotten.
"""

import pytest

from tenure.base.instants import Instant
from tenure.base.noted import Noted
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.lease.messages import Copy, HandOff, Held, Leased
from tenure.protocol.lease.owner.belief import Belief
from tenure.protocol.lease.owner.copies import GIVING, Copies, Part
from tenure.protocol.lease.owner.events import (
    ArrivalEnded,
    CopiedAhead,
    Forget,
    HandedOver,
    HandOffFailed,
    HandOver,
    Hold,
    Imported,
    ImportLost,
    Keep,
    SendLast,
    StopHandOver,
    TurnAway,
)

LOW, HIGH = KeyRange(b"", b"m"), KeyRange(b"m", None)
ME, TAKER, THIRD = 1, 2, 3
NUMBER = 5
CHANNEL = 1
ORDER = HandOff(start=b"", end=b"m", number=NUMBER, taker=TAKER, address="ws://b")
ELSEWHERE = HandOff(start=b"", end=b"m", number=NUMBER, taker=THIRD, address="ws://c")
GIVEN = Copy(start=b"", end=b"m", number=NUMBER, taker=GIVING)


def serving() -> Copies:
    """It holds everything under 5, until 100."""
    belief = Belief()
    belief.incarnation = ME
    belief.take((Leased(start=b"", end=None, number=NUMBER, since=1, mark="granted"),))
    belief.move_expiry(Instant(0), Instant(100))
    return Copies(belief)


def giving() -> Copies:
    copies = serving()
    assert copies.take_orders((ORDER,)) == ([HandOver(ORDER)], False)
    [hold, send], is_told = copies.on_event(CopiedAhead(ORDER))
    assert isinstance(hold, Hold)
    assert ([lease.start for lease in hold.holdings.leases], send) == ([b"m"], SendLast(ORDER))
    assert (copies.listed(), is_told) == ((GIVEN,), False)
    return copies


def having(*parts: tuple[KeyRange, int]) -> Copies:
    """A taker that holds nothing, and was given these."""
    belief = Belief()
    belief.incarnation = ME
    copies = Copies(belief)
    for part in parts:
        copies.begin(CHANNEL, Part(*part))
        assert not copies.listed()[len(parts) :]
        assert copies.on_event(Imported(CHANNEL)) == ([Keep(CHANNEL)], False)
    return copies


def grant(key_range: KeyRange, number: int, handed: int) -> Leased:
    return Leased(
        start=key_range.start,
        end=key_range.end,
        number=number,
        since=1,
        mark="granted",
        handed=handed,
    )


# --- the source -----------------------------------------------------------------------------------


def test_what_is_ordered_is_begun_once_and_what_is_not_is_stopped() -> None:
    copies = serving()
    assert copies.take_orders((ORDER,)) == ([HandOver(ORDER)], False)
    assert copies.take_orders((ORDER,)) == ([], False)
    assert copies.take_orders((ELSEWHERE,)) == ([StopHandOver(ORDER), HandOver(ELSEWHERE)], False)
    assert copies.take_orders(()) == ([StopHandOver(ELSEWHERE)], False)


@pytest.mark.parametrize(
    "order",
    [
        HandOff(start=b"", end=b"m", number=4, taker=2, address="b"),
        HandOff(start=b"", end=b"m", number=6, taker=2, address="b"),
    ],
)
def test_what_is_not_held_is_not_begun(order: HandOff) -> None:
    assert serving().take_orders((order,)) == ([], False)


def test_the_belief_ends_before_the_last_difference_is_sent() -> None:
    """P13; the test is in how `giving` is made: Hold comes before SendLast."""
    assert giving().kept
    assert not serving().kept


def test_what_was_copied_ahead_for_an_order_that_is_over_is_still_served() -> None:
    copies = serving()
    copies.take_orders((ORDER,))
    copies.take_orders(())
    assert copies.on_event(CopiedAhead(ORDER)) == ([StopHandOver(ORDER)], False)
    assert copies.listed() == ()


def test_who_has_the_whole_is_named_and_the_manager_told_at_once() -> None:
    copies = giving()
    assert copies.on_event(HandedOver(ORDER)) == ([], True)
    assert copies.listed() == (Copy(start=b"", end=b"m", number=NUMBER, taker=TAKER),)


def test_what_failed_while_it_is_served_is_begun_anew_where_it_is_still_ordered() -> None:
    copies = serving()
    copies.take_orders((ORDER,))
    [note], is_told = copies.on_event(HandOffFailed(ORDER))
    assert (isinstance(note, Noted), is_told, copies.listed()) == (True, False, ())
    assert copies.take_orders((ORDER,)) == ([HandOver(ORDER)], False)


def test_what_failed_later_is_to_come_back() -> None:
    copies = giving()
    _, is_told = copies.on_event(HandOffFailed(ORDER))
    assert (is_told, copies.listed()) == (
        True,
        (Copy(start=b"", end=b"m", number=NUMBER, taker=ME),),
    )


@pytest.mark.parametrize(
    "orders",
    [(), (ELSEWHERE,), (HandOff(start=b"", end=b"c", number=NUMBER, taker=2, address="ws://b"),)],
)
def test_what_is_not_ordered_any_more_in_its_last_step_is_to_come_back(
    orders: tuple[HandOff, ...],
) -> None:
    """Otherwise no owner would serve it until the deadline: no order can be begun on what is not
    held.
    """
    copies = giving()
    assert copies.take_orders(orders) == ([StopHandOver(ORDER)], True)
    assert copies.listed() == (Copy(start=b"", end=b"m", number=NUMBER, taker=ME),)


def test_what_was_handed_over_stays_so_when_its_order_is_over() -> None:
    copies = giving()
    copies.on_event(HandedOver(ORDER))
    assert copies.take_orders(()) == ([StopHandOver(ORDER)], False)
    assert copies.listed() == (Copy(start=b"", end=b"m", number=NUMBER, taker=TAKER),)


def test_word_of_a_copy_that_is_not_there_is_nothing() -> None:
    assert serving().on_event(HandedOver(ORDER)) == ([], False)


# --- the taker ------------------------------------------------------------------------------------


def test_what_is_whole_is_listed_with_who_has_it() -> None:
    copies = having()
    copies.begin(CHANNEL, Part(LOW, 4))
    assert copies.listed() == ()
    copies.on_event(Imported(CHANNEL))
    assert copies.listed() == (Copy(start=b"", end=b"m", number=4, taker=ME),)


def test_what_is_lost_is_not_listed_and_the_manager_told() -> None:
    copies = having((LOW, 4))
    assert copies.on_event(ImportLost(LOW, 4)) == ([], True)
    assert copies.listed() == ()


def test_what_is_being_forgotten_does_not_count_when_it_is_whole() -> None:
    """The word that it is whole was on its way: the application discards it all the same."""
    copies = having()
    copies.begin(CHANNEL, Part(LOW, 4))
    [forget] = copies.drop_all()
    [turn_away], _ = copies.on_event(Imported(CHANNEL))
    assert isinstance(turn_away, TurnAway)
    assert (copies.listed(), copies.cover(grant(LOW, 6, 4))) == ((), False)
    assert isinstance(forget, Forget)


def test_what_came_of_a_channel_that_ended_is_forgotten() -> None:
    copies = having()
    copies.begin(CHANNEL, Part(LOW, 4))
    [forget], is_told = copies.on_event(ArrivalEnded(CHANNEL))
    assert isinstance(forget, Forget)
    assert (forget.range, forget.number, is_told) == (LOW, 4, False)
    assert copies.on_event(ArrivalEnded(CHANNEL)) == ([], False)
    whole = having((LOW, 4))
    assert whole.on_event(ArrivalEnded(CHANNEL)) == ([], False)
    assert whole.listed()


def test_of_copies_that_overlap_the_later_is_listed() -> None:
    """A request lists ranges that do not overlap, or its manager would not take it."""
    copies = having((WHOLE, 4), (LOW, 3), (HIGH, 7))
    assert copies.listed() == (
        Copy(start=b"", end=b"m", number=4, taker=ME),
        Copy(start=b"m", end=None, number=7, taker=ME),
    )


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lease", "covers"),
    [
        (grant(LOW, 6, 4), True),
        (grant(KeyRange(b"c", b"d"), 6, 4), True),
        (grant(WHOLE, 6, 4), False),
        (grant(LOW, 6, 3), False),
        (grant(HIGH, 6, 4), False),
    ],
)
def test_a_grant_that_names_a_copy_needs_all_of_it(lease: Leased, covers: bool) -> None:
    assert having((LOW, 4)).cover(lease) == covers


def test_two_copies_cover_what_is_granted_as_one() -> None:
    assert having((LOW, 4), (HIGH, 4)).cover(grant(WHOLE, 6, 4))


@pytest.mark.parametrize(
    ("lease", "is_clear"),
    [(grant(LOW, 6, 0), False), (grant(LOW, 6, 3), False), (grant(HIGH, 6, 0), True)],
)
def test_what_is_there_must_be_gone_before_anything_else_is_granted(
    lease: Leased, is_clear: bool
) -> None:
    """P13: it would be served as if it were the range's own."""
    arriving = having()
    arriving.begin(CHANNEL, Part(LOW, 4))
    for copies in (having((LOW, 4)), arriving):
        assert copies.is_clear_for(lease) == is_clear
        assert copies.is_clear_for(grant(LOW, 6, 4))


def test_a_copy_is_kept_served_or_forgotten() -> None:
    copies = having((LOW, 4), (HIGH, 7))
    kept, granted = (
        (Held(start=b"", end=b"c", number=4), Held(start=b"m", end=None, number=6)),
        grant(KeyRange(b"c", b"h"), 8, 4),
    )
    actions = copies.settle(copies.listed(), kept, (granted,))
    assert copies.listed() == (Copy(start=b"", end=b"c", number=4, taker=ME),)
    forgotten = [(action.range, action.number) for action in actions if isinstance(action, Forget)]
    assert forgotten == [(KeyRange(b"h", b"m"), 4), (HIGH, 7)]


def test_what_is_left_of_a_copy_is_named_and_lost_with_the_whole() -> None:
    """The manager has given a part of the range away meanwhile."""
    source, taker = giving(), having((LOW, 4))
    for copies, number in ((source, NUMBER), (taker, 4)):
        copies.settle(copies.listed(), (Held(start=b"c", end=b"m", number=number),), ())
    assert source.on_event(HandedOver(ORDER)) == ([], True)
    assert source.listed() == (Copy(start=b"c", end=b"m", number=NUMBER, taker=TAKER),)
    taker.on_event(ImportLost(LOW, 4))
    assert taker.listed() == ()


def test_what_is_left_of_a_copy_comes_back_with_its_order() -> None:
    source = giving()
    source.settle(source.listed(), (Held(start=b"c", end=b"m", number=NUMBER),), ())
    assert source.take_orders(()) == ([StopHandOver(ORDER)], True)
    assert source.listed() == (Copy(start=b"c", end=b"m", number=NUMBER, taker=ME),)


def test_what_came_after_the_question_is_not_forgotten_by_its_answer() -> None:
    """This holds even for a copy under the number of another that was asked about."""
    copies = having((LOW, 4))
    asked = copies.listed()
    copies.begin(CHANNEL, Part(HIGH, 4))
    copies.on_event(Imported(CHANNEL))
    [forget] = copies.settle(asked, (), ())
    assert isinstance(forget, Forget)
    assert (forget.range, copies.listed()) == (
        LOW,
        (Copy(start=b"m", end=None, number=4, taker=ME),),
    )


def test_what_arrives_for_a_range_that_is_granted_without_it_is_forgotten() -> None:
    copies = having()
    copies.begin(CHANNEL, Part(LOW, 4))
    assert copies.give_way((grant(HIGH, 6, 0), grant(LOW, 6, 4))) == []
    [forget] = copies.give_way((grant(WHOLE, 6, 0),))
    assert isinstance(forget, Forget)
    assert (forget.range, forget.number, copies.give_way((grant(WHOLE, 6, 0),))) == (LOW, 4, [])


def test_a_term_that_ends_ends_everything() -> None:
    copies = giving()
    copies.begin(CHANNEL, Part(HIGH, 4))
    stop, given, arriving = copies.drop_all()
    assert stop == StopHandOver(ORDER)
    assert isinstance(given, Forget)
    assert isinstance(arriving, Forget)
    assert [(each.range, each.number) for each in (given, arriving)] == [(LOW, 5), (HIGH, 4)]
    assert (copies.listed(), copies.drop_all()) == ((), [])
