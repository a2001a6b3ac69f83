"""Time to live: a key that nobody refreshes goes after a time, and for a day it is said when.

Expiry is for whoever went away: losses are told, so nobody has to refresh in order to notice them,
and the time is long. A key never goes early by this process's own clock, which nobody sets: see
`FairTime`.
"""

import asyncio
from collections.abc import Callable
from math import inf
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from tenure import Alarm, Entity
from tenure.errors import ServiceRefusal

GONE_SECONDS = 86_400.0
"""For how long it is said when a key went."""
EXPIRE, FORGET = "expire", "forget"


class Expiring(msgspec.Struct):
    """State that expires: what a service keeps of a key begins with these."""

    ttl: float = 0.0
    expires: float = 0.0
    """When it goes, unless it is refreshed before; 0 where there is nothing."""
    gone_at: float = 0.0
    """When it went; 0 where it did not."""


class FairTime:
    """The time on the wall, as far as a clock that nobody sets bears it out. Where somebody sets
    the one on the wall, things end late, and none ends early.
    """

    def __init__(self, steady: Callable[[], float] | None = None) -> None:
        self._steady = steady
        self._least = inf
        """How far the wall was ahead of the other clock, when that was least."""

    def __call__(self, wall: float) -> float:
        """The time to compare with, when it is `wall` on the wall."""
        steady = self._steady() if self._steady else asyncio.get_running_loop().time()
        self._least = min(self._least, wall - steady)
        return steady + self._least


S = TypeVar("S", bound=Expiring)
E = TypeVar("E", bound=Entity[Any])


class ExpiringEntity(Entity[S], Generic[S]):
    """An entity with such state. `_empty` makes what is left of it when it goes."""

    usual_ttl: ClassVar[float] = 86_400.0
    """Seconds, where nobody says others; a process has its own."""
    fair: ClassVar[FairTime] = FairTime()
    """Of a process: see `of_this_process`."""

    async def on_activate(self) -> None:
        """Let the time be known, before somebody sets the clock on the wall."""
        self.fair(self.now())

    def _refresh(self, ttl: float) -> None:
        """Keep it for so long from now on."""
        state = self.state
        state.ttl, state.expires, state.gone_at = ttl, self.now() + ttl, 0.0
        self.fair(self.now())
        self.clear_alarm(FORGET)
        self.set_alarm(EXPIRE, state.expires)

    def _check_there(self) -> None:
        """Raise ServiceRefusal where there is nothing here."""
        state = self.state
        if state.gone_at:
            raise ServiceRefusal(410, "gone", "it has gone", gone_at=state.gone_at)
        if not state.expires:
            raise ServiceRefusal(404, "unknown", f"there is nothing under {self.key!r:.100}")

    def _empty(self) -> S:
        """What is left when it goes."""
        return type(self.state)()

    def _end(self) -> None:
        """Let it go, and say for a while when that was."""
        left: Any = self._empty()
        left.gone_at = self.now()
        self.state = left
        self.clear_alarm(EXPIRE)
        self.set_alarm(FORGET, left.gone_at + GONE_SECONDS)

    async def on_alarm(self, alarm: Alarm) -> None:
        """Let it go if nobody has refreshed it; forget it when that was long ago."""
        if alarm.name == FORGET:
            self.forget()
            return
        early = self.state.expires - self.fair(self.now())
        if early > 0:
            self.set_alarm(EXPIRE, self.now() + early)
        else:
            self._end()


def of_this_process(
    entity: type[E], steady: Callable[[], float] | None = None, **known: object
) -> type[E]:
    """A class with what a process knows, and with a fair time of its own."""
    return type(entity.__name__, (entity,), {"fair": FairTime(steady), **known})
