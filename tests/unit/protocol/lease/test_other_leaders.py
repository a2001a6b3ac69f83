"""A manager that names another journal with each answer takes no memory of a client, fills no log,
and hides no other manager. One that claims a leader's own journal is followed by nobody who hears
that leader.
"""

import pytest

from tenure.base.instants import Instant, seconds
from tenure.base.noted import Level, NotedKind
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.lookup.noted import LookupKind
from tenure.protocol.lease.messages import Hello, LeaseRequest, ShortRequest, Standby
from tenure.protocol.lease.other_leaders import (
    FORGOTTEN_NS,
    KEPT_OF_A_MANAGER,
    OtherLeaders,
    two_leaders,
)
from tenure.protocol.lease.owner.noted import OwnerKind
from tenure.protocol.lease.rivalry import Rival
from tests.unit.protocol.lease.driven_owner import Driven, introduction, response, whole

T0 = Instant(0)


def told_many(leaders: OtherLeaders, manager: str = "liar") -> None:
    for journal in range(100, 1_100):
        leaders.hear(T0, Rival(manager=manager, journal=journal), granted=False)


def test_of_one_manager_a_few_journals_are_remembered() -> None:
    leaders = OtherLeaders()
    told_many(leaders)
    assert len(leaders.answered(T0)) == KEPT_OF_A_MANAGER


def test_who_lies_hides_no_other() -> None:
    leaders = OtherLeaders()
    told_many(leaders)
    leaders.hear(T0, Rival(manager="other", journal=7), granted=True)
    leaders.answered(T0)
    assert leaders.may_have_granted


def test_when_they_are_silent_others_are_heard() -> None:
    leaders = OtherLeaders()
    told_many(leaders)
    leaders.advance(Instant(FORGOTTEN_NS))
    leaders.hear(Instant(FORGOTTEN_NS), Rival(manager="liar", journal=5), granted=True)
    assert [each.journal for each in leaders.answered(Instant(FORGOTTEN_NS))] == [5]


def test_an_owner_logs_a_few_of_the_journals_that_a_liar_leads() -> None:
    owner = Driven()
    owner.hear(introduction(owner))
    owner.hear(response(owner))
    owner.hear(response(owner))
    logged = 0
    for second in range(3, 120, 3):
        owner.advance(Instant(seconds(second)))
        if owner.machine.who_leads.token:
            for journal in range(100, 200):
                lie = introduction(owner, journal=1_000 * second + journal)
                owner.hear(lie, manager="b")
        owner.hear(response(owner))
        logged += owner.said().count(OwnerKind.TWO_LEADERS.phrase)
    assert 0 < logged <= 3 * KEPT_OF_A_MANAGER


@pytest.mark.parametrize(
    "kind",
    [
        *(OwnerKind.TWO_LEADERS, LookupKind.TWO_LEADERS),
        *(LeaderKind.RIVAL, LeaderKind.TOLD_OF_RIVAL, LeaderKind.RIVAL_STAYS),
    ],
)
def test_whoever_hears_of_two_living_leaders_says_so_as_an_error(kind: NotedKind) -> None:
    assert (kind.level, kind.repeats) == (Level.ERROR, True)


def test_who_hears_two_leaders_names_both_and_the_way_out() -> None:
    said = two_leaders("http://a", 7, Rival(manager="http://b", journal=8))
    assert "http://a leads the journal 0000000000000007" in said
    assert "http://b leads another, 0000000000000008" in said
    assert "tenure resolve --keep URL" in said


def test_an_owner_that_hears_another_leader_takes_nothing_new() -> None:
    """From the suspicion on: that the other still lives is proven later, or never."""
    for hears_another in (False, True):
        owner = Driven()
        owner.hear(introduction(owner))
        owner.hear(response(owner))
        owner.hear(response(owner))
        while not any(isinstance(each, Hello) for each in owner.asked()):
            owner.advance(owner.wake_at)
            owner.hear(response(owner))
            owner.advance(owner.wake_at)
        if hears_another:
            owner.hear(introduction(owner, journal=100), manager="b")
        while owner.machine.request is None:
            owner.advance(owner.wake_at)
        owner.hear(response(owner, whole("granted")))
        taken = owner.machine.belief.leases
        assert taken == (() if hears_another else (whole(),))


def claims(owner: Driven) -> int:
    """Have another manager claim the journal of its leader, under a higher leadership, whenever the
    owner asks around; how often it did. Its leader answers all that it is asked.
    """
    claimed = 0
    while owner.now < seconds(120):
        owner.advance(owner.wake_at)
        asks_around = any(isinstance(each, Hello) for each in owner.asked())
        if asks_around:
            claimed += 1
            owner.hear(introduction(owner, leadership=1 << 40), manager="liar")
            assert owner.machine.manager == "a"
        owner.hear(response(owner))
    return claimed


def test_an_owner_whose_leader_answers_follows_no_other_of_its_journal() -> None:
    """Whoever takes over the address of a dead standby could have led every owner at once."""
    owner = Driven(managers=("a", "liar"))
    owner.hear(introduction(owner))
    owner.hear(response(owner))
    owner.hear(response(owner))
    assert claims(owner) >= 2
    assert owner.machine.leadership == 1


def test_what_another_claims_has_an_owner_ask_its_own_leader_at_once() -> None:
    """So that it follows a true successor no later than it would have."""
    owner = Driven(managers=("a", "b"))
    owner.hear(introduction(owner))
    owner.hear(response(owner))
    owner.hear(response(owner))
    while not any(isinstance(each, Hello) for each in owner.asked()):
        owner.advance(owner.wake_at)
        owner.hear(response(owner))
        owner.advance(owner.wake_at)
    owner.hear(introduction(owner, leadership=2), manager="b")
    if owner.is_idle():
        owner.advance(owner.wake_at)
    assert any(isinstance(each, LeaseRequest | ShortRequest) for each in owner.asked())
    owner.hear(Standby(leader=None))
    owner.hear(introduction(owner, leadership=2), manager="b")
    assert owner.machine.manager == "b"
    assert owner.machine.leadership == 2
