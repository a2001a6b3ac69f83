"""An owner that gives read leases: what it lists until no cache can hit it any more (V11, V12)."""

from msgspec.structs import replace

from tenure.base.instants import Instant, seconds
from tenure.protocol.lease.messages import Join, LeaseRequest
from tenure.protocol.lease.owner import events
from tests.unit.protocol.lease.driven_owner import (
    Driven,
    at,
    introduction,
    numbered,
    response,
    whole,
)

READS_NS = seconds(3)


def holding() -> Driven:
    """It holds everything, from 0 to 12, and gives read leases."""
    driven = Driven(reads_ns=READS_NS)
    driven.hear(introduction(driven))
    numbered(driven)
    driven.hear(response(driven, whole("granted")))
    return driven


def recalled() -> Driven:
    driven = holding()
    driven.advance(at(3))
    driven.hear(response(driven, whole("recalled")))
    (revoke,) = (each for each in driven.actions if isinstance(each, events.Revoke))
    assert revoke.revocation == 1
    return driven


def listed(driven: Driven) -> int:
    """How many ranges the request lists that was sent with the last event."""
    (request,) = (each for each in driven.asked() if isinstance(each, LeaseRequest))
    return len(request.held)


def test_a_join_says_what_the_owner_will_give_at_most() -> None:
    driven = Driven(reads_ns=READS_NS)
    driven.hear(introduction(driven))
    (join,) = driven.asked()
    assert isinstance(join, Join)
    assert join.reads_ns == READS_NS


def test_what_a_manager_has_on_record_bounds_what_is_given() -> None:
    """One of an earlier version has nothing on record, and would keep no quiet (V13)."""
    driven = holding()
    for told in (READS_NS, 0):
        driven.advance(Instant(driven.now + seconds(3)))
        driven.hear(replace(response(driven, whole()), reads_ns=told))
        (hold,) = (each for each in driven.actions if isinstance(each, events.Hold))
        assert hold.holdings.reads_ns == told


def test_a_recalled_range_is_listed_until_no_cache_can_hit_it() -> None:
    """Although the application has let go of it (V12)."""
    driven = recalled()
    driven.take(events.Revoked(1))
    driven.advance(at(6))
    assert listed(driven) == 1
    driven.hear(response(driven, whole("recalled")))
    driven.take(events.ReadsEnded(1))
    assert listed(driven) == 0


def test_it_is_listed_until_the_application_has_let_go_too() -> None:
    driven = recalled()
    driven.take(events.ReadsEnded(1))
    assert listed(driven) == 1
    driven.hear(response(driven, whole("recalled")))
    driven.take(events.Revoked(1))
    assert listed(driven) == 0


def test_past_the_deadline_of_a_recall_it_is_listed_still() -> None:
    """The manager leaves it out; what is listed it gives to nobody (V12)."""
    driven = recalled()
    driven.advance(at(6))
    driven.hear(response(driven))
    assert not [each for each in driven.actions if isinstance(each, events.Overtaken)]
    driven.advance(at(9))
    assert listed(driven) == 1


def test_past_the_deadline_and_drained_the_application_is_overtaken() -> None:
    driven = recalled()
    driven.advance(at(6))
    driven.hear(response(driven))
    driven.take(events.ReadsEnded(1))
    assert listed(driven) == 1
    driven.hear(response(driven))
    assert next(type(each) for each in driven.actions) is events.Overtaken
    driven.advance(at(9))
    assert listed(driven) == 0


def test_what_is_not_listed_any_more_is_listed_until_it_is_drained() -> None:
    """Whatever the manager had in mind (V12)."""
    driven = holding()
    driven.advance(at(3))
    driven.hear(response(driven))
    driven.advance(at(6))
    assert listed(driven) == 1
    driven.hear(response(driven))
    driven.take(events.Revoked(1))
    driven.take(events.ReadsEnded(1))
    driven.hear(response(driven))
    driven.advance(at(9))
    assert listed(driven) == 0


def test_closing_waits_for_what_caches_may_hit() -> None:
    driven = holding()
    driven.take(events.CloseRequested())
    assert listed(driven) == 1
    driven.hear(response(driven, whole()))
    driven.take(events.Revoked(1))
    driven.hear(response(driven, whole()))
    assert driven.machine.phase == "closing"
    driven.take(events.ReadsEnded(1))
    driven.hear(response(driven))
    assert driven.actions[-1] == events.Closed()


def test_with_the_term_all_read_leases_are_over() -> None:
    """V11: nothing is listed, and nothing is waited for."""
    driven = recalled()
    driven.take(events.Revoked(1))
    driven.advance(at(15))
    assert driven.machine.belief.held() == ()
    assert not driven.machine.belief.is_giving_up
    driven.take(events.ReadsEnded(1))
    assert driven.machine.belief.held() == ()
