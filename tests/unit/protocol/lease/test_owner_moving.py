"""The owner machine at both ends of a hand-off."""

import pytest

from tenure.base.instants import FAR_FUTURE
from tenure.base.ranges import WHOLE
from tenure.protocol.lease.client_events import ManagerLost
from tenure.protocol.lease.messages import Copy, Held, Join, Leased, LeaseRequest, Mark
from tenure.protocol.lease.owner import events
from tests.unit.protocol.lease.driven_owner import (
    EXPECTED,
    OFFER,
    ORDER,
    Driven,
    at,
    giving,
    handed,
    handing_over,
    holding,
    introduction,
    numbered,
    refusal,
    renewing,
    response,
    taking,
    whole,
)

HANDED = Leased(start=b"", end=None, number=6, since=1, mark="granted", handed=4)
MINE = Copy(start=b"", end=None, number=4, taker=1)


def copies_of(driven: Driven) -> tuple[Copy, ...]:
    """Return the copies that its last request listed."""
    [request] = [each for each in driven.asked() if isinstance(each, LeaseRequest)]
    return request.copies


def forgotten(driven: Driven) -> list[int]:
    return [each.number for each in driven.actions if isinstance(each, events.Forget)]


def test_it_says_where_it_takes_state() -> None:
    driven = Driven(hand_off="ws://o")
    driven.hear(introduction(driven))
    [join] = driven.asked()
    assert isinstance(join, Join)
    assert join.hand_off == "ws://o"


# --- the source -----------------------------------------------------------------------------------


def test_it_serves_what_it_hands_over() -> None:
    driven = handing_over()
    assert driven.machine.belief.leases == (whole(),)
    assert copies_of(driven) == ()


def test_it_ends_its_belief_and_then_sends_the_last_difference() -> None:
    driven = handing_over()
    driven.take(events.CopiedAhead(ORDER))
    hold, send = driven.actions
    assert isinstance(hold, events.Hold)
    assert (hold.holdings.leases, send) == ((), events.SendLast(ORDER))


def test_an_answer_to_a_request_from_before_takes_nothing_back_and_forgets_nothing() -> None:
    """It was asked while the range was held: its answer renews that, and knows of no copy."""
    driven = handing_over()
    driven.take(events.CopiedAhead(ORDER))
    driven.hear(response(driven, whole(), orders=(ORDER,)))
    assert (driven.machine.belief.leases, forgotten(driven)) == ((), [])
    driven.take(events.HandedOver(ORDER))
    assert copies_of(driven) == (Copy(start=b"", end=None, number=5, taker=2),)


def test_it_says_at_once_who_has_everything_and_goes_on_saying_so() -> None:
    driven = handed()
    assert copies_of(driven) == (Copy(start=b"", end=None, number=5, taker=2),)
    driven.advance(at(7))
    assert copies_of(driven) == (Copy(start=b"", end=None, number=5, taker=2),), "no answer came"
    driven.hear(response(driven))
    assert forgotten(driven) == [5], "it is journaled"
    driven.advance(at(10))
    assert copies_of(driven) == ()


def test_it_goes_on_giving_while_the_manager_says_so() -> None:
    driven = giving()
    driven.advance(at(9))
    assert copies_of(driven) == (Copy(start=b"", end=None, number=5, taker=0),)
    driven.hear(response(driven, copies=(Held(start=b"", end=None, number=5),), orders=(ORDER,)))
    assert all(isinstance(each, events.Hold) for each in driven.actions)


def test_it_asks_for_what_nobody_is_to_have_any_more() -> None:
    """The order changed during its last step: until it comes back, nobody serves the range."""
    driven = giving()
    driven.advance(at(9))
    driven.hear(response(driven, copies=(Held(start=b"", end=None, number=5),)))
    assert events.StopHandOver(ORDER) in driven.actions
    assert copies_of(driven) == (Copy(start=b"", end=None, number=5, taker=1),)
    driven.hear(
        response(driven, Leased(start=b"", end=None, number=6, since=1, mark="granted", handed=5))
    )
    assert driven.machine.belief.leases == (whole("renewed", 6),)
    assert forgotten(driven) == []


def test_it_is_granted_what_it_could_not_hand_over() -> None:
    driven = giving()
    driven.take(events.HandOffFailed(ORDER))
    assert copies_of(driven) == (Copy(start=b"", end=None, number=5, taker=1),)
    driven.hear(
        response(driven, Leased(start=b"", end=None, number=6, since=1, mark="granted", handed=5))
    )
    assert driven.machine.belief.leases == (whole("renewed", 6),)


def test_a_term_that_ends_ends_what_it_gives() -> None:
    """P13: from then on nothing comes back to it."""
    driven = giving()
    assert driven.wake_at <= at(15)
    driven.advance(at(18))
    assert (forgotten(driven), copies_of(driven)) == ([5], ())
    driven.hear(
        response(driven, Leased(start=b"", end=None, number=6, since=1, mark="granted", handed=5))
    )
    assert driven.machine.belief.leases == ()


@pytest.mark.parametrize("mark", ["granted", "renewed", "recalled"])
def test_no_answer_makes_it_serve_what_it_gives_under_the_old_number(mark: Mark) -> None:
    driven = giving()
    driven.advance(at(9))
    driven.hear(response(driven, whole(mark)))
    assert driven.machine.belief.leases == ()


def test_who_leaves_waits_until_its_taker_is_known_to_have_everything() -> None:
    driven = handing_over()
    driven.take(events.DrainRequested())
    driven.hear(response(driven, whole(), orders=(ORDER,)))
    driven.take(events.CopiedAhead(ORDER))
    driven.hear(response(driven, copies=(), orders=(ORDER,)))
    driven.take(events.HandedOver(ORDER))
    assert driven.machine.is_leaving
    driven.hear(response(driven))
    driven.take(events.Revoked(1))
    driven.hear(response(driven))
    while driven.machine.request is not None:
        driven.hear(response(driven))
    assert driven.machine.phase == "closed"


def test_who_closes_takes_no_orders() -> None:
    driven = renewing()
    driven.take(events.CloseRequested())
    driven.hear(response(driven, whole(), orders=(ORDER,)))
    assert not any(isinstance(each, events.HandOver) for each in driven.actions)


def test_another_journal_ends_what_it_gives() -> None:
    driven = giving()
    driven.advance(at(9))
    driven.take(ManagerLost("a"))
    driven.hear(introduction(driven, journal=10))
    assert forgotten(driven) == [5]


def test_an_answer_of_an_older_manager_is_one_without_orders() -> None:
    driven = handing_over()
    driven.hear(response(driven, whole()))
    assert events.StopHandOver(ORDER) in driven.actions
    assert driven.machine.belief.leases == (whole(),)


# --- the taker ------------------------------------------------------------------------------------


def test_it_says_of_what_it_has_everything() -> None:
    driven = taking()
    assert copies_of(driven) == (MINE,)
    driven.hear(response(driven, copies=(Held(start=b"", end=None, number=4),)))
    driven.advance(at(6))
    assert copies_of(driven) == (MINE,)


def test_it_serves_what_it_is_granted_with_its_state() -> None:
    driven = taking()
    driven.hear(response(driven, HANDED))
    assert driven.machine.belief.leases == (whole("renewed", 6),)
    assert (forgotten(driven), events.Grant((HANDED,)) in driven.actions) == ([], True)
    driven.advance(at(6))
    assert copies_of(driven) == ()


def test_it_does_not_forget_what_came_after_it_asked() -> None:
    driven = numbered()
    driven.hear(response(driven, expected=(EXPECTED,)))
    driven.take(events.OfferMade(1, OFFER))
    driven.advance(at(3))
    assert copies_of(driven) == ()
    driven.take(events.Imported(1))
    driven.hear(response(driven, expected=(EXPECTED,)))
    assert forgotten(driven) == []
    driven.advance(at(6))
    assert copies_of(driven) == (MINE,)


def test_it_serves_nothing_whose_state_it_does_not_have() -> None:
    """P13: otherwise the loss would be silent. It asks again, so that the range is free."""
    driven = numbered()
    driven.hear(response(driven, HANDED))
    assert driven.machine.belief.leases == ()
    [request] = driven.asked()
    assert isinstance(request, LeaseRequest)
    assert request.held == ()


def test_it_serves_nothing_before_the_state_of_something_else_is_gone() -> None:
    driven = taking()
    driven.hear(response(driven, whole("granted", 6)))
    assert (driven.machine.belief.leases, forgotten(driven)) == ((), [4])
    assert driven.asked() == [], "not until the application has let go"
    driven.take(events.Revoked(1))
    assert copies_of(driven) == ()
    driven.hear(response(driven, whole("granted", 8)))
    assert driven.machine.belief.leases == (whole("renewed", 8),)


def test_it_forgets_what_does_not_count_any_more() -> None:
    driven = taking()
    driven.hear(response(driven))
    assert forgotten(driven) == [4]


def test_it_says_at_once_that_it_lost_what_it_had() -> None:
    driven = taking()
    driven.hear(response(driven, copies=(Held(start=b"", end=None, number=4),)))
    driven.take(events.ImportLost(WHOLE, 4))
    assert copies_of(driven) == ()


def test_who_is_past_has_nothing_for_its_next_life() -> None:
    driven = taking()
    driven.hear(refusal(driven, "past"))
    assert forgotten(driven) == [4]
    driven.hear(response(driven, incarnation=7))
    assert copies_of(driven) == ()


def test_what_was_imported_ends_with_the_term() -> None:
    driven = taking()
    assert driven.wake_at != FAR_FUTURE
    driven.advance(at(15))
    assert forgotten(driven) == [4]


def test_who_drains_takes_back_what_it_hands_over_and_nothing_else() -> None:
    driven = holding()
    driven.take(events.DrainRequested())
    driven.hear(
        response(
            driven,
            Leased(start=b"", end=b"m", number=5, since=1, mark="renewed"),
            Leased(start=b"m", end=None, number=7, since=7, mark="granted"),
        )
    )
    assert [lease.number for lease in driven.machine.belief.leases] == [5]
