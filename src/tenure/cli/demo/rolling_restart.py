"""A rolling restart: every owner is replaced, two at a time, while the clients carry on.

An owner is asked to leave as a supervisor asks (SIGTERM). It hands everything over and ends, and
its successor is started as soon as it is gone. Nothing here waits for a fixed time: a drain ends
when it is done, and the next two owners are asked when the successors of the last two have joined,
because their keys go to those. At the end all owners give the last two their share.
"""

import asyncio

from tenure.base.instants import Instant, in_seconds
from tenure.cli.demo.places import OwnerPlace
from tenure.cli.demo.scenario import Scenario
from tenure.runtime.clock import boot_clock

AT_ONCE = 2


class RollingRestart(Scenario):
    """Restarts every owner once."""

    measures = "drain"
    ends_the_demo = True
    _granted_before = 0.0

    def figures(self) -> dict[str, float]:
        return {
            **super().figures(),
            "drains": len(self.times),
            "moves_per_key": round(self.moves_per_key, 3),
        }

    @property
    def moves_per_key(self) -> float:
        """How often a key has moved since the restart began, on average over the key space."""
        return self._granted() - self._granted_before if self.times else 0.0

    async def play(self, end: Instant) -> None:  # it ends when it is done
        self._granted_before = self._granted()
        owners = self._service.owners
        for first in range(0, len(owners), AT_ONCE):
            await asyncio.gather(*map(self._restart, owners[first : first + AT_ONCE]))
        await asyncio.gather(*(place.is_serving() for place in owners))
        self._tell(f"all {len(owners)} owners have been restarted")

    async def _restart(self, place: OwnerPlace) -> None:
        began, share = boot_clock(), self._share(place)
        self._tell(f"owner {place.number} gets SIGTERM, and hands over its {share:.0%} of the keys")
        await self._service.drain(place)
        took = in_seconds(boot_clock() - began)
        self.times.append(took)
        self._tell(f"owner {place.number} is gone, {took:.2f} s later; its successor is started")
        await self._service.replace(place)
        self._tell(f"owner {place.number} is back, and has joined")

    def _granted(self) -> float:
        return sum(place.total(lambda it: it.granted) for place in self._service.owners)
