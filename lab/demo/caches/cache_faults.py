"""The demo's faults of owners and caches: kills, stops, moves, and frontends that stand still."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from random import Random, SystemRandom
from typing import Literal, TypeAlias

from lab.demo.caches.service import CacheService
from tenure.base.instants import Instant, in_seconds, seconds
from tenure.cli.demo.places import OwnerPlace
from tenure.cli.demo.service import LOOK_SECONDS
from tenure.runtime.clock import boot_clock

LONGEST_PAUSE_SECONDS = 2.0
HOLDS_FOR_A_FAULT = 2
"""The least time, in holds, before the end at which a fault is begun: it must be over by then."""
TERMS_STOPPED = 3
"""The number of its volume's terms for which a frontend stands still."""
FaultName: TypeAlias = Literal["kill", "stop", "move", "stop frontend"]
ALL_FAULTS: tuple[FaultName, ...] = ("kill", "move", "stop frontend", "stop")


class CacheFaults:
    """Makes the faults that it is told to, in turns."""

    def __init__(
        self,
        service: CacheService,
        tell: Callable[[str], None],
        faults: Sequence[FaultName] = ALL_FAULTS,
        random: Random | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.dark: list[float] = []
        """The times for which the keys of killed owners had no owner, in seconds."""
        self._service = service
        self._tell = tell
        self._faults = faults
        self._random = random or SystemRandom()

    async def play(self, end: Instant) -> None:
        """Act until it is nearly `end`."""
        hold_ns = self._service.settings.timing.hold_ns
        pause = min(in_seconds(hold_ns), LONGEST_PAUSE_SECONDS)
        latest = end - HOLDS_FOR_A_FAULT * hold_ns
        makes: dict[FaultName, Callable[[], Awaitable[None]]] = {
            "kill": self.kill_one,
            "move": self._move_one,
            "stop frontend": self._stop_frontend,
            "stop": self._stop_one,
        }
        while True:
            for fault in self._faults:
                await asyncio.sleep(pause)
                if boot_clock() > latest:
                    return
                await makes[fault]()

    async def _some_owner(self) -> OwnerPlace:
        """One that serves, beside another."""
        while True:
            serving = [each for each in self._service.owners if each.state == "serving"]
            if len(serving) > 1:
                return self._random.choice(serving)
            await asyncio.sleep(LOOK_SECONDS)

    async def kill_one(self) -> None:
        """Kill an owner, and start it again when others have its keys."""
        place = await self._some_owner()
        address = place.address
        self._service.kill(place)
        self.counts["owner_kills"] += 1
        self._tell(f"killed owner {place.number} (kill -9)")
        await self._service.taken_over(address)
        self.dark.append(in_seconds(boot_clock() - place.since))
        self._tell(f"others have its keys, {self.dark[-1]:.2f} s later")
        await self._service.replace(place)
        self._tell(f"restarted owner {place.number}: it will be given keys, with their state")

    async def _move_one(self) -> None:
        place = await self._some_owner()
        self.counts["owner_restarts"] += 1
        self._tell(f"owner {place.number} gets SIGTERM, and hands over what it has")
        await self._service.drain(place)
        await self._service.replace(place)
        self._tell(f"restarted owner {place.number}")

    async def _stop_one(self) -> None:
        place = await self._some_owner()
        address = place.address
        self._service.stop(place)
        self.counts["owner_stops"] += 1
        self._tell(f"stopped owner {place.number} (SIGSTOP)")
        await self._service.taken_over(address)
        took = in_seconds(boot_clock() - place.since)
        self._service.wake(place)
        self._tell(f"others have its keys, {took:.2f} s later; it is woken, without a lease")
        await place.next_report(Instant(boot_clock() + seconds(0.5)))

    async def _stop_frontend(self) -> None:
        number = self._random.randrange(len(self._service.frontends.children))
        term = self._service.of_caches.term_seconds
        self.counts["frontend_stops"] += 1
        self._tell(
            f"stopped frontend {number + 1} (SIGSTOP): what it has read is written by others after "
            f"{term * 13 / 12:.2f} s at most"
        )
        self._service.stop_frontend(number)
        try:
            await asyncio.sleep(TERMS_STOPPED * term)
        finally:
            self._service.wake_frontend(number)
        self._tell(f"woke frontend {number + 1}")
