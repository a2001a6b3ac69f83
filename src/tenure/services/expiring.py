"""Time to live: a key that nobody refreshes goes after a time, and for a day answers say when.

Expiry is for clients that went away: losses are signalled, so nobody has to refresh in order to
notice them, and the time is long. A key never goes early, whoever sets a clock, because its time is
counted in fair time: see `Entity.fair_now`. With a store, the time of a key starts again if the key
had no owner for a while.
"""

from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from tenure import Alarm, Entity
from tenure.errors import ServiceRefusal

GONE_SECONDS = 86_400.0
"""How long answers tell when a key went."""
EXPIRE, FORGET = "expire", "forget"


class Expiring(msgspec.Struct):
    """State that expires: the state that a service keeps of a key begins with these fields."""

    ttl: float = 0.0
    expires: float = 0.0
    """When it ends, unless it is refreshed before; 0 if there is nothing."""
    gone_at: float = 0.0
    """When it ended; 0 if it did not."""


S = TypeVar("S", bound=Expiring)
E = TypeVar("E", bound=Entity[Any])


class ExpiringEntity(Entity[S], Generic[S]):
    """An entity with such state. `_empty` makes the state that is left when it goes."""

    usual_ttl: ClassVar[float] = 86_400.0
    """The default time to live in seconds; a process may set another."""

    async def on_activate(self) -> None:
        """After an interruption nobody knows how long it lasted: keep the state for as long as if
        it were refreshed.
        """
        if self.was_interrupted and self.state.expires:
            self._refresh(self.state.ttl)

    def _refresh(self, ttl: float) -> None:
        state = self.state
        state.ttl, state.expires, state.gone_at = ttl, self.fair_now() + ttl, 0.0
        self.clear_alarm(FORGET)
        self.set_alarm(EXPIRE, self.now() + ttl)

    def _check_there(self) -> None:
        """Raise ServiceRefusal if there is nothing here."""
        state = self.state
        if state.gone_at:
            raise ServiceRefusal(410, "gone", "it has gone", gone_at=state.gone_at)
        if not state.expires:
            raise ServiceRefusal(404, "unknown", f"there is nothing under {self.key!r:.100}")

    def _empty(self) -> S:
        """The state that is left when it goes."""
        return type(self.state)()

    def _end(self) -> None:
        """Let it go, and remember for a while when that was."""
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
    """A subclass that has what this process knows."""
    return type(entity.__name__, (entity,), known)
