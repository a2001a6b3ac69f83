"""A first start, as an operator declares it: a client with another history shows that it is not the
first.
"""

from random import Random

import pytest

from tenure.base.instants import Instant
from tenure.protocol.lease.leader.first_start import listening_ns
from tenure.protocol.lease.messages import Entry, Hello, LeaseRequest, ShortRequest, Sync, ToManager
from tenure.protocol.lease.records import PoolState, State
from tenure.protocol.lease.search import HOLDERS_PAUSE_NS
from tenure.protocol.lease.timing import DEFAULT, PAPER, TEST, Timing
from tenure.sim.journal import LeaseContents
from tests.unit.protocol.lease.driven_manager import T0, Driven, at

OLDER = 4711
BY_OWNER = Hello(pool="p", token=1, journal=OLDER, name="ann")
BY_LOOKUP = Sync(pool="p", sequence=1, journal=OLDER, leadership=3, lsn=9, nonce=1)
RENEWAL = LeaseRequest(
    pool="p",
    incarnation=2,
    owner_nonce=3,
    manager_nonce=4,
    sequence=5,
    journal=OLDER,
    leadership=6,
    held=(),
)
SHORT = ShortRequest(
    pool="p",
    incarnation=2,
    owner_nonce=3,
    manager_nonce=4,
    sequence=5,
    journal=OLDER,
    leadership=6,
    fingerprint=b"f",
)


def started(state: State | None = None) -> Driven:
    """A leader of a new journal, whose operator says that it is the first."""
    return Driven(journal=LeaseContents(Random(1), state or State()), first_start=True)


def grants_at(driven: Driven) -> Instant:
    assert driven.machine.leader
    return driven.machine.leader.grants_at


@pytest.mark.parametrize(("timing", "listens"), [(PAPER, 2), (DEFAULT, 2), (TEST, 0.3)])
def test_a_first_start_grants_when_it_has_listened(timing: Timing, listens: float) -> None:
    """It listens for as long as an owner of the same preset that holds something may take to ask
    again.
    """
    driven = Driven(journal=LeaseContents(Random(1), State()), first_start=True, timing=timing)
    assert grants_at(driven) == T0 + listening_ns(timing) == at(listens)
    pause_ns = 1.5 * min(timing.renew_ns // 2, HOLDERS_PAUSE_NS)
    assert listening_ns(timing) > timing.on_any_clock(round(pause_ns))
    driven.run(grants_at(driven))
    assert driven.machine.leader
    assert driven.machine.leader.context.may_grant


@pytest.mark.parametrize("heard", [BY_OWNER, BY_LOOKUP, RENEWAL, SHORT])
def test_who_comes_with_an_older_history_shows_that_it_is_none(heard: ToManager) -> None:
    """Then nothing is granted before whatever the other journal's managers may have promised."""
    driven = started()
    driven.hear(heard)
    assert grants_at(driven) >= T0 + DEFAULT.longest_hold_ns
    driven.hear(heard)
    assert driven.notes.count("not the first start") == 1, "once, whoever else comes"
    leader = driven.machine.leader
    assert leader
    assert leader.context.history.older == OLDER, "also for whoever leads next"


WITH_A_PAST = {
    "heard of another journal": State(older=OLDER),
    "restored": State(next_number=10**12, next_incarnation=10**9),
    "restored with a pool": State(
        pools=(
            PoolState(
                pool="p",
                kind="hashed",
                split_points=(),
                next_number=4,
                next_incarnation=1,
                entries=(Entry(start=b"", end=None, owner=0, number=3, since=3),),
                members=(),
                numbered=(),
            ),
        )
    ),
}


@pytest.mark.parametrize("state", WITH_A_PAST.values(), ids=WITH_A_PAST)
def test_a_journal_with_a_past_is_no_first_start_whatever_its_operator_says(state: State) -> None:
    driven = started(state)
    assert grants_at(driven) >= T0 + DEFAULT.longest_hold_ns


def test_a_journal_that_has_waited_waits_and_listens_no_more() -> None:
    driven = started(State(waited_out=True))
    leader = driven.machine.leader
    assert leader
    assert leader.context.may_grant
    assert not leader.first_start.is_listening
    driven.hear(BY_OWNER)
    assert leader.context.may_grant
    assert not any("not the first start" in each for each in driven.notes)


def test_who_has_met_no_journal_or_this_one_shows_nothing() -> None:
    driven = started()
    leader = driven.machine.leader
    assert leader
    driven.hear(Hello(pool="p", token=1))
    driven.hear(Hello(pool="p", token=2, journal=leader.context.seal.journal))
    assert grants_at(driven) <= T0 + listening_ns(DEFAULT)
