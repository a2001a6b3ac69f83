"""Schedules of clients that are told to ask at common instants (P7), beside clients and managers
that know nothing of it: what a client is told is a hint, and no promise rests on it.
"""

from functools import partial
from itertools import pairwise

import pytest
from msgspec.structs import replace

from tenure.base.instants import Instant, in_seconds
from tenure.protocol.lease.messages import Sync
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.timing import DEFAULT, Timing
from tenure.sim.lease.trial import SKEW_AT_THE_BOUND
from tests.simulation.actors import Actor, OwnerActor
from tests.simulation.stage import REQUESTS, RESPONSES, Stage
from tests.simulation.stories import FAST, HIGH, KEY, LOW, SLOW, ends_badly, one_owner
from tests.simulation.test_schedules_of_fingerprints import (
    a_short_answer_comes_late_with_all_clocks_at_the_bound,
)

OTHER = b"z"
BEFORE = replace(DEFAULT, bunch_ns=1)
"""Managers of the version before: each client is told to ask after a whole period."""
WIDEST = replace(DEFAULT, bunch_ns=DEFAULT.renew_ns // 2)
SLOWEST = (1 + SKEW_AT_THE_BOUND / 1e6) / (1 - SKEW_AT_THE_BOUND / 1e6)
"""How much longer a duration takes on the slowest clock than on the fastest."""


def asked_at(stage: Stage, client: Actor, *kinds: type, since: int = 0) -> list[int]:
    """When it asked: on this stage, everything arrives at once."""
    those = [each for each in stage.sent[since:] if isinstance(each.what, kinds)]
    return [each.due for each in those if each.sender is client]


def longest_pause(instants: list[int]) -> float:
    return max(in_seconds(b - a) for a, b in pairwise(instants))


class OldOwner(OwnerMachine):
    """It asks after three seconds, whatever it is told."""

    def _answered(self, now: Instant, renew_ns: int, sent_at: Instant) -> None:
        del renew_ns
        super()._answered(now, DEFAULT.renew_ns, sent_at)


def old_owner(stage: Stage, slot: str, *, rate: int = 0) -> OwnerActor:
    actor = stage.owner(slot, rate=rate)
    actor.machine.__class__ = OldOwner
    return actor


def test_owners_and_lookups_come_together_and_stay_so() -> None:
    stage = Stage()
    stage.manager("a")
    clients: list[Actor] = []
    for slot in "opqr":
        clients += [stage.owner(slot), stage.lookup("to" + slot)]
        stage.run(0.37)
    stage.run(20)
    since = len(stage.sent)
    stage.run(30)
    asked = [at for each in clients for at in asked_at(stage, each, *REQUESTS, Sync, since=since)]
    assert len(asked) >= 4 * 10 + 4 * 6
    assert {at % DEFAULT.bunch_ns for at in asked} == {0}


@pytest.mark.parametrize(("manager", "client"), [(SLOW, FAST), (0, 0), (FAST, SLOW)])
@pytest.mark.parametrize("timing", [DEFAULT, BEFORE, WIDEST])
def test_nobody_asks_later_than_a_period_by_its_own_clock(
    manager: int, client: int, timing: Timing
) -> None:
    asks_within_a_period(manager, client, timing)


def asks_within_a_period(manager: int = 0, client: int = 0, timing: Timing = DEFAULT) -> None:
    stage = Stage(timing)
    stage.manager("a", rate=manager)
    stage.run(0.037)
    o, lookup = stage.owner("o", rate=client), stage.lookup("l", rate=client)
    stage.run(60)
    on_its_clock = 1_000_000 / (1_000_000 + client) + 1e-6
    requests, syncs = asked_at(stage, o, *REQUESTS), asked_at(stage, lookup, Sync)
    assert longest_pause(requests) <= in_seconds(timing.renew_ns) * on_its_clock
    assert longest_pause(syncs) <= in_seconds(timing.sync_ns) * on_its_clock
    assert len(requests) < 60 / in_seconds(timing.renew_ns - timing.bunch_ns) * SLOWEST + 6


def test_a_leader_that_rounds_up_is_found_out() -> None:
    """Otherwise the test above would say nothing."""
    asks_within_a_period()
    ends_badly(asks_within_a_period, without="rounds-up")


@pytest.mark.parametrize("timing", [DEFAULT, BEFORE, WIDEST])
def test_three_requests_in_a_row_may_be_lost_with_clocks_at_the_bound(timing: Timing) -> None:
    """The rule of Centrifuge 2.3 is kept however wide bunches are."""
    stage = Stage(timing)
    stage.manager("a", rate=FAST)
    o, other = stage.owner("o", rate=SLOW), stage.owner("p", rate=FAST)
    stage.run(10)
    numbers = [owner.number_of(key) for owner in (o, other) for key in (KEY, OTHER)]
    for owner in (o, other):
        requests = stage.hold(*REQUESTS, sender=owner.slot)
        stage.run_until(lambda held=requests: len(held.caught) == 3, at_most=12)  # type: ignore[misc]
        requests.end()
        stage.run(6)
    assert numbers == [owner.number_of(key) for owner in (o, other) for key in (KEY, OTHER)]
    assert any(numbers)


def test_owners_and_managers_of_both_versions_lose_nothing_to_each_other() -> None:
    """An owner that follows what it is told and one that does not, and a lookup; the leader is a
    manager of the version before, then of this one, then of the one before again.
    """
    stage = Stage(BEFORE, managers="abc")
    stage.prefer((LOW, ("o",)), (HIGH, ("p",)))
    stage.manager("a", rate=SLOW)
    o, p = stage.owner("o", rate=FAST), old_owner(stage, "p", rate=SLOW)
    lookup = stage.lookup("l", rate=SLOW)
    stage.run(20)
    numbers = o.number_of(KEY), p.number_of(OTHER)
    assert None not in numbers
    for slot, timing in (("b", DEFAULT), ("c", BEFORE), ("a", WIDEST), ("b", DEFAULT)):
        for manager in stage.managers.values():
            manager.kill()
        leader = stage.manager(slot, timing=timing, rate=FAST if slot == "b" else 0)
        stage.run_until(lambda now=leader: now.leads, at_most=30)  # type: ignore[misc]
        since = len(stage.sent)
        stage.run(40)
        told = {
            in_seconds(each.what.renew_ns)
            for each in stage.sent[since:]
            if isinstance(each.what, RESPONSES)
        }
        assert (told == {3.0}) is (timing is BEFORE)
        assert (o.number_of(KEY), p.number_of(OTHER)) == numbers
        assert lookup.machine.in_contact
        assert not lookup.losses


def test_a_late_answer_that_says_ask_sooner_adds_nothing_to_the_term() -> None:
    """P3: the term counts from the question, and what is said of the next one is not in it."""
    story = partial(a_short_answer_comes_late_with_all_clocks_at_the_bound, WIDEST)
    story()
    ends_badly(story, without="term-from-receipt", promise="freed too early")


def test_an_answer_later_than_the_instant_that_it_names_is_followed_by_one_question() -> None:
    stage, _, o = one_owner()
    stage.run(10)
    since = len(stage.sent)
    answers = stage.hold(*RESPONSES, sender="a", receiver="o")
    stage.run_until(lambda: len(answers.caught) == 1)
    while len(asked_at(stage, o, *REQUESTS, since=since)) < 3:  # it asks again, unanswered
        stage.run(0.05)
    stage.run(0.5)
    answers.end()
    before = len(asked_at(stage, o, *REQUESTS, since=since))
    answers.last.deliver()
    assert len(asked_at(stage, o, *REQUESTS, since=since)) <= before + 1
    stage.run(10)
    later = [at for at in asked_at(stage, o, *REQUESTS, since=since) if at > stage.now - 6 * 10**9]
    assert 2 <= len(later) <= 3


@pytest.mark.parametrize("timing", [DEFAULT, BEFORE, WIDEST])
def test_an_owner_whose_application_hangs_is_silent_as_before(timing: Timing) -> None:
    """The watchdog says when to stop asking; no instant of a manager prolongs that."""
    stage, _, o = one_owner(watchdog=4.0, timing=timing)
    stage.run(20)
    assert in_seconds(max(asked_at(stage, o, *REQUESTS))) < 4.0
    assert stage.holders(KEY) == []


@pytest.mark.parametrize("timing", [DEFAULT, BEFORE, WIDEST])
@pytest.mark.parametrize("is_old", [False, True])
def test_a_drain_takes_no_longer(timing: Timing, is_old: bool) -> None:
    stage = Stage(timing)
    stage.prefer((LOW, ("o", "p")), (HIGH, ("o", "p")))
    stage.manager("a")
    o = old_owner(stage, "o") if is_old else stage.owner("o")
    stage.run(5)
    stage.owner("p")
    stage.run(8)
    assert stage.holders(KEY) == ["o"]
    o.drain()
    assert stage.run_until(lambda: o.closed and stage.holders(KEY) == ["p"]) <= 4
    assert o.closed
