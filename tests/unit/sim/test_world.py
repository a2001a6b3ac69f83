"""Healing: faults over, everybody up."""

from lab.worlds.lease.strikes import FAULTS
from lab.worlds.lease.trial import Trial
from lab.worlds.lease.world import LeaseWorld
from tenure.base.instants import SECOND_NS
from tenure.protocol.lease.owner.events import CloseRequested


def test_owners_that_are_still_leaving_when_all_is_healed_come_again() -> None:
    world = LeaseWorld(Trial(seed=0, faults=FAULTS.chosen("none")))
    world.start_all()
    world.run_until(200 * SECOND_NS)
    leaving = world.owners()
    assert all(owner.holdings.leases for owner in leaving)
    for owner in leaving:
        owner.post(CloseRequested())
    world.heal()
    assert not any(owner.alive for owner in leaving)
    assert all(owner.alive for owner in world.owners())
