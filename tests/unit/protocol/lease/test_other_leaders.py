"""A manager that names another journal with each answer takes no memory of a client, fills no log,
and hides no other manager.
"""

from tenure.base.instants import Instant, seconds
from tenure.protocol.lease.other_leaders import FORGOTTEN_NS, KEPT_OF_A_MANAGER, OtherLeaders
from tenure.protocol.lease.owner.noted import OwnerKind
from tenure.protocol.lease.rivalry import Rival
from tests.unit.protocol.lease.driven_owner import Driven, introduction, response

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
