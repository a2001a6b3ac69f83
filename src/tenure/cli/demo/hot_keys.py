"""Hot keys: nearly everybody looks up a few users, all of one owner, and later those of another.

So one owner has most of the load. The manager gives the hottest keys to the other owners one by
one, with their state, and moves next to nothing else. How even the load is follows from what the
owners have served: the most that one has served, compared with the mean of all. No key is so hot
that it would fill an owner alone, so the ratio can come down to 1.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from random import Random

from tenure.base.instants import Instant, in_seconds, seconds
from tenure.cli.demo.places import OwnerPlace
from tenure.cli.demo.scenario import Scenario
from tenure.cli.demo.service import CLIENTS_OF_A_FRONTEND, DemoSettings, PresenceService
from tenure.errors import ConfigurationError
from tenure.runtime.clock import boot_clock

USERS_FOR_EACH_OWNER = 2
"""The users in a crowd for each owner: half of all requests are for the crowd, so each user brings
a quarter of an owner's share.
"""
EVEN = 1.2
"""The load is even if no owner serves more than this many times the mean. Counting alone makes 1.1
of an even load."""
LOOK_SECONDS = 0.2
WINDOW = seconds(3)
"""The time over which the demo counts what owners serve."""
WATCH_SECONDS = 5.0
"""The time from an even load to the next crowd."""
CROWD_SECONDS = 15.0
"""The least time left before the end at which a crowd is gathered."""
USERS_FOR_EACH_CROWD = 2
"""The users that each owner must have for each user of a crowd. With fewer, chance alone is
uneven."""


def check_size(settings: DemoSettings) -> None:
    """Raises ConfigurationError where crowds could not be seen to be spread."""
    if settings.seconds < CROWD_SECONDS:
        raise ConfigurationError(
            f"--hot-keys takes {CROWD_SECONDS:g} s for a crowd: --seconds {settings.seconds:g} is "
            "too short"
        )
    crowd = USERS_FOR_EACH_OWNER * settings.owners
    wanted = USERS_FOR_EACH_CROWD * crowd * settings.owners
    if len(settings.users) < wanted:
        raise ConfigurationError(
            f"--hot-keys with {settings.owners} owners wants {wanted} users: add --frontends "
            f"{ceil(wanted / CLIENTS_OF_A_FRONTEND)}, or have fewer owners"
        )


class Spread:
    """How evenly the load is spread over owners that go on, over a window of time."""

    def __init__(self) -> None:
        self._seen: deque[tuple[Instant, Sequence[int]]] = deque()

    def see(self, now: Instant, served: Sequence[int]) -> None:
        """Record how many operations each owner has served so far."""
        self._seen.append((now, served))
        while len(self._seen) > 1 and self._seen[1][0] <= now - WINDOW:
            self._seen.popleft()

    @property
    def most_to_mean(self) -> float | None:
        """The load of the busiest owner divided by the mean; None before the first whole window."""
        if not self._seen or self._seen[-1][0] - self._seen[0][0] < WINDOW:
            return None
        (_, first), (_, last) = self._seen[0], self._seen[-1]
        grown = [after - before for before, after in zip(first, last, strict=True)]
        return max(grown) * len(grown) / max(sum(grown), 1)


class HotKeys(Scenario):
    """Gathers one crowd after another, and measures until the load is even again."""

    measures = "even"

    def __init__(
        self, service: PresenceService, tell: Callable[[str], None], random: Random | None = None
    ) -> None:
        super().__init__(service, tell, random)
        self.uneven: list[float] = []
        """The most that one owner served, compared with the mean, before each crowd was spread."""
        self._last: OwnerPlace | None = None

    def figures(self) -> dict[str, float]:
        worst = round(max(self.uneven, default=0.0), 3)
        return {**super().figures(), "crowds": len(self.times), "uneven": worst}

    async def play(self, end: Instant) -> None:
        while boot_clock() <= end - seconds(CROWD_SECONDS):
            await self._gather_one()
            await asyncio.sleep(WATCH_SECONDS)

    async def _gather_one(self) -> None:
        users_of = self._users_of()
        places = [place for place in self._service.owners if place is not self._last]
        self._last = place = max(places, key=lambda each: len(users_of[each.number]))
        users = users_of[place.number][: USERS_FOR_EACH_OWNER * len(self._service.owners)]
        self._service.crowd(tuple(users))
        self._tell(
            f"half of all requests are for {len(users)} users now, all of owner {place.number}"
        )
        await self._until_even(users)

    def _users_of(self) -> Mapping[int, list[str]]:
        """Return the users of each owner, in a new random order."""
        lookup, settings = self._service.lookup, self._service.settings
        assert lookup is not None
        numbers = {place.address: place.number for place in self._service.owners}
        found: dict[int, list[str]] = {number: [] for number in numbers.values()}
        for user in self._random.sample(settings.users, len(settings.users)):
            number = numbers.get(lookup.find(user))
            if number is not None:
                found[number].append(user)
        return found

    async def _until_even(self, users: Sequence[str]) -> None:
        began, spread, worst = boot_clock(), Spread(), 0.0
        while (now := spread.most_to_mean) is None or now > EVEN:
            worst = max(worst, now or 0.0)
            await asyncio.sleep(LOOK_SECONDS)
            served = [place.total(lambda it: it.served) for place in self._service.owners]
            spread.see(boot_clock(), served)
        took = in_seconds(boot_clock() - began)
        self.uneven.append(worst)
        self.times.append(took)
        numbers = self._users_of()
        having = sum(not set(users).isdisjoint(each) for each in numbers.values())
        self._tell(
            f"they are at {having} owners: the one with most serves {now:.2f} times the mean, "
            f"{worst:.2f} at the worst; even again after {took:.1f} s"
        )
