"""How far one quiet renewal goes through the source: each further file is one more to read for
anybody who follows a lease from the owner's timer to what its readers see.

The path goes from the timer that the driver rings to the snapshot that is published: the request,
its bytes, the manager's machine, its answer, and the owner's belief. The clock that the test turns
is not counted.
"""

import asyncio
from collections.abc import Callable

import pytest

from tenure.client.owner import Owner
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster
from tests.trail import Trail

NOT_COUNTED = ("testing/clock.py", "testing/cluster.py")
MOST_FILES = 31
MOST_PASSES = 90
"""How often a renewal may pass from one file to another. Both limits only ever go down. They went
up from 25 and 58 when leaders began to look for rivals (P25) and to tell pools their secret; and
from 29 and 79 when sessions got one place that changes them, and snapshots remembered their leases.
"""


async def in_loop(function: Callable[[], None]) -> None:
    function()


async def path_of_a_renewal(cluster: InProcessCluster, clock: TurnedClock, owner: Owner) -> Trail:
    """Go from alarm to alarm until one has brought a new snapshot."""
    path, before = Trail(NOT_COUNTED), owner._board.current
    for _ in range(500):
        await asyncio.wrap_future(cluster._submit(in_loop(path.begin)))
        await asyncio.wrap_future(cluster._submit(cluster._step(clock, clock.after(1))))
        await asyncio.wrap_future(cluster._submit(in_loop(path.end)))
        if owner._board.current.expires_at > before.expires_at:
            return path
    raise AssertionError("nothing was renewed")


@pytest.mark.asyncio
async def test_a_quiet_renewal_does_not_wander() -> None:
    clock = TurnedClock()
    async with InProcessCluster(["rooms"], clock=clock) as cluster, cluster.owner() as owner:
        await cluster.turn(3)
        path = await path_of_a_renewal(cluster, clock, owner)
    print(path.told())
    assert {"protocol/lease/owner/machine.py", "protocol/lease/leader/manager.py"} < set(path.files)
    assert "client/holdings.py" in path.files
    assert len(set(path.files)) <= MOST_FILES
    assert path.passes <= MOST_PASSES
