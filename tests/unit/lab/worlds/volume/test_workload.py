"""The clients that drive the simulated caches wait only for what comes."""

from lab.worlds.volume.trial import VolumeTrial
from lab.worlds.volume.world import VolumeWorld
from tenure.base.instants import SECOND_NS


def test_a_write_that_was_given_up_is_not_waited_for() -> None:
    """Nobody answers it, so its keys are written by another client (seed 940234)."""
    world = VolumeWorld(VolumeTrial(seed=1, faults=()))
    world.start_all()
    world.run_until(100 * SECOND_NS)
    applications, server = world.applications, world.servers()[0]
    applications.is_quiet = True
    world.run_until(200 * SECOND_NS)
    applications.begin_healing()
    ticket = applications.write_now(server, tuple(world.keys))
    applications._give_up((server, ticket))
    for _ in range(200):
        if applications.missing() is None:
            return
        world.run_until(world.now + SECOND_NS)
    raise AssertionError(applications.missing())
