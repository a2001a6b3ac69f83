"""The owner machine: every phase crossed with every input."""

from collections.abc import Callable

import pytest

from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.protocol.lease.attestation import Sight
from tenure.protocol.lease.client_events import ManagerLost, ManagerSaid
from tenure.protocol.lease.messages import (
    Attest,
    Introduction,
    Join,
    LeaseRequest,
    Poke,
    Process,
    Standby,
    ToOwner,
)
from tenure.protocol.lease.owner import events
from tenure.protocol.lease.owner.belief import NO_NUMBER
from tests.unit.protocol.lease.driven_owner import (
    JOURNAL,
    PHASES,
    PROCESS,
    Driven,
    at,
    introduction,
    numbered,
    recalled,
    refusal,
    response,
    saying_goodbye,
    whole,
)

DEAD = Process(boot_id="host", pid_namespace=1, time_namespace=1, pid=11, start_time=100)
NOBODY = Sight(seen_from=PROCESS, is_there=False)

MESSAGES: tuple[Callable[[Driven], ToOwner], ...] = (
    lambda _: Poke(),
    lambda _: Standby(leader=None),
    lambda _: Standby(leader="b"),
    introduction,
    lambda d: introduction(d, leadership=2),
    lambda d: introduction(d, leadership=0),
    lambda d: introduction(d, journal=8),
    lambda d: Introduction(
        journal=JOURNAL,
        leadership=1,
        manager_nonce=78,
        token=0,
        owner_nonce=d.machine.owner_nonce,
        sequence=d.machine.sequence,
    ),
    lambda _: Introduction(journal=JOURNAL, leadership=1, manager_nonce=78),
    response,
    lambda d: response(d, whole()),
    lambda d: response(d, whole("granted", 6)),
    lambda d: response(d, whole("recalled")),
    lambda d: response(d, incarnation=0),
    lambda d: response(d, incarnation=2),
    lambda d: refusal(d, "past"),
    lambda d: refusal(d, "name_held", FAR_FUTURE),
    lambda d: refusal(d, "no_pool"),
    lambda d: refusal(d, "pool_kind"),
    lambda d: Attest(pool="p", incarnation=3, process=DEAD, manager_nonce=d.machine.manager_nonce),
    lambda d: Attest(
        pool="p", incarnation=3, process=PROCESS, manager_nonce=d.machine.manager_nonce
    ),
    lambda _: Attest(pool="p", incarnation=3, process=DEAD, manager_nonce=1),
)
INPUTS: tuple[Callable[[Driven], events.OwnerEvent], ...] = (
    *(lambda d, m=m: ManagerSaid("a", m(d)) for m in MESSAGES),
    *(lambda d, m=m: ManagerSaid("b", m(d)) for m in MESSAGES),
    lambda _: ManagerLost("a"),
    lambda _: ManagerLost("b"),
    lambda _: events.Revoked(1),
    lambda _: events.Revoked(9),
    lambda _: events.Lapsed(),
    lambda _: events.Alive(),
    lambda _: events.CloseRequested(),
    lambda d: events.Looked(
        "a",
        Attest(pool="p", incarnation=3, process=DEAD, manager_nonce=d.machine.manager_nonce),
        NOBODY,
    ),
)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("number", range(len(INPUTS)))
def test_any_input_in_any_phase_and_then_again_and_then_time(
    phase: Callable[[], Driven], number: int
) -> None:
    """Never raises, keeps its invariants, asks one thing at a time, and is never busy for ever."""
    driven = phase()
    was_closed = driven.machine.phase == "closed"
    event = INPUTS[number](driven)
    for now in (None, None, Instant(driven.now + seconds(1)), Instant(driven.now + seconds(20))):
        driven.take(event, now)
        if was_closed:
            assert driven.actions == []
        requests = [m for m in driven.asked() if isinstance(m, Join | LeaseRequest)]
        assert len({request.sequence for request in requests}) == len(requests)
    woken, end = 0, Instant(driven.now + seconds(10))
    while driven.wake_at < end:
        driven.advance(driven.wake_at)
        woken += 1
        assert woken < 200, f"woken {woken} times by {driven.now} ns"


def test_an_owner_that_is_gone_asks_nothing_when_a_callback_ends() -> None:
    driven = recalled()
    driven.advance(at(6))
    driven.take(events.CloseRequested())
    driven.hear(refusal(driven, "past"))
    assert driven.machine.phase == "closed"
    driven.take(events.Revoked(1))
    assert driven.actions == []


@pytest.mark.parametrize("phase", [numbered, saying_goodbye])
def test_a_renewal_without_a_number_gives_an_owner_nothing(phase: Callable[[], Driven]) -> None:
    """What is not held has that number, too."""
    driven = phase()
    driven.hear(response(driven, whole(number=NO_NUMBER)))
    assert driven.machine.belief.leases == ()
    driven.machine.invariants()
