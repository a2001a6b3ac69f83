"""Healing: faults over, everybody up."""

from tenure.base.instants import SECOND_NS
from tenure.protocol.lease.owner.events import CloseRequested
from tenure.sim.lease.strikes import FAULTS
from tenure.sim.lease.trial import Trial
from tenure.sim.lease.world import LeaseWorld


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
