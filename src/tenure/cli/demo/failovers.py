"""The other trouble: the manager that leads is killed, now and then, and another takes its place.

Owners and frontends are to notice nothing of it. It comes in turns with the trouble of owners, and
not while one is down: who takes over holds what it inherits for a whole hold (P19), and with a new
leader every few seconds a dead owner's keys would never come free.
"""

from collections.abc import Callable

from tenure.cli.demo.managers import Managers

ENOUGH_SECONDS = 5.0
"""What must be left of the demo: a failover that it does not see the end of tells nothing."""


class Failovers:
    """Makes them, and tells of them."""

    def __init__(self, managers: Managers, tell: Callable[[str], None]) -> None:
        self.takeovers: list[float] = []
        """The seconds from each kill until another led."""
        self._managers = managers
        self._tell = tell

    async def kill_leader(self) -> None:
        """Kill it; done when another leads, and it is back."""
        self._tell(f"killing {self._managers.leader.name} (kill -9), which leads")
        killed, leader, took = await self._managers.kill_leader()
        self.takeovers.append(took)
        self._tell(f"{leader.name} leads, {took:.2f} s later; leases and requests go on")
        await self._managers.restart(killed)
        self._tell(f"{killed.name} is back, and stands by")
