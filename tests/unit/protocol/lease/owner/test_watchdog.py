"""The owner machine's watchdog: whose application is silent, renews nothing."""

from tenure.base.instants import Instant, seconds
from tenure.protocol.lease.owner import events
from tests.unit.protocol.lease.driven_owner import (
    TERM_NS,
    Driven,
    at,
    introduction,
    response,
    whole,
)


def test_the_watchdog_lets_an_owner_ask_that_is_not_registered_yet() -> None:
    """Its application waits to be let in, and shows no life before that."""
    driven = Driven(watchdog_ns=seconds(2))
    while driven.now < at(20):
        assert driven.wake_at < driven.now + seconds(4)
        driven.advance(driven.wake_at)
    driven.hear(introduction(driven))
    driven.hear(response(driven))
    driven.take(events.Alive(), driven.now)
    driven.hear(response(driven, whole("granted")))
    assert driven.machine.view().leases == 1


def test_the_watchdog_stops_renewals_and_life_starts_them_again() -> None:
    driven = Driven(watchdog_ns=seconds(2))
    driven.hear(introduction(driven))
    driven.hear(response(driven))
    driven.hear(response(driven, whole("granted")))
    driven.advance(at(3))
    assert (driven.actions, driven.wake_at) == ([], Instant(TERM_NS // 2))
    driven.take(events.Alive(), at(4))
    assert driven.wake_at == at(4)
    driven.advance(at(4))
    assert len(driven.asked()) == 1
