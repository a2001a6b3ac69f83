"""A rolling restart: every owner replaced, two at a time, while the clients go on.

An owner is asked to leave as a supervisor asks (SIGTERM), hands everything over and ends; its
successor is started as soon as it is gone. Nothing here waits for a time: a drain ends when it is
done, and the next two are asked when the successors of the last two have joined, to which their
keys go. At the end the last two are given their share by all.
"""

import asyncio
from collections.abc import Callable

from tenure.base.instants import in_seconds
from tenure.cli.demo.places import OwnerPlace
from tenure.cli.demo.service import Service
from tenure.runtime.clock import boot_clock

AT_ONCE = 2


class Rolling:
    """Makes it, and tells of it."""

    def __init__(self, service: Service, tell: Callable[[str], None]) -> None:
        self.drains: list[float] = []
        """The seconds that each owner took to leave."""
        self._service = service
        self._tell = tell
        self._granted_before = 0.0

    @property
    def moves_per_key(self) -> float:
        """How often a key has moved since it began, on the average over the key space."""
        return self._granted() - self._granted_before if self.drains else 0.0

    async def restart_all(self) -> None:
        """Every owner, once."""
        self._granted_before = self._granted()
        owners = self._service.owners
        for first in range(0, len(owners), AT_ONCE):
            await asyncio.gather(*map(self._restart, owners[first : first + AT_ONCE]))
        await asyncio.gather(*(place.is_serving() for place in owners))
        self._tell(f"all {len(owners)} owners have been restarted")

    async def _restart(self, place: OwnerPlace) -> None:
        began, share = boot_clock(), self._service.shares().get(place.address, 0.0)
        self._tell(f"owner {place.number} is to leave (SIGTERM), and hands over its {share:.0%}")
        await self._service.drain(place)
        took = in_seconds(boot_clock() - began)
        self.drains.append(took)
        self._tell(f"owner {place.number} is gone, {took:.2f} s later; its successor is started")
        await self._service.replace(place)
        self._tell(f"owner {place.number} is back, and has joined")

    def _granted(self) -> float:
        return sum(place.total(lambda it: it.granted) for place in self._service.owners)
