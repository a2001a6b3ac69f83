"""Time to live: a key that nobody refreshes goes after a time, and for a day it is said when.

Expiry is for whoever went away: losses are told, so nobody has to refresh in order to notice them,
and the time is long. A key never goes early, whoever sets a clock, because it is counted in fair
time: see `Entity.fair_now`. A store's keys count anew where nobody had them for a while.
"""

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


S = TypeVar("S", bound=Expiring)
E = TypeVar("E", bound=Entity[Any])


class ExpiringEntity(Entity[S], Generic[S]):
    """An entity with such state. `_empty` makes what is left of it when it goes."""

    usual_ttl: ClassVar[float] = 86_400.0
    """Seconds, where nobody says others; a process has its own."""

    async def on_activate(self) -> None:
        """How long nobody had it, nobody knows: it is kept for as long as if it were refreshed."""
        if self.was_interrupted and self.state.expires:
            self._refresh(self.state.ttl)

    def _refresh(self, ttl: float) -> None:
        """Keep it for so long from now on."""
        state = self.state
        state.ttl, state.expires, state.gone_at = ttl, self.fair_now() + ttl, 0.0
        self.clear_alarm(FORGET)
        self.set_alarm(EXPIRE, self.now() + ttl)

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
        early = self.state.expires - self.fair_now()
        if early > 0:
            self.set_alarm(EXPIRE, self.now() + early)
        else:
            self._end()


def of_this_process(entity: type[E], **known: object) -> type[E]:
    """A class with what a process knows."""
    return type(entity.__name__, (entity,), known)
