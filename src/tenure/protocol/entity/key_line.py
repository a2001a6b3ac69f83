"""The line of one key: the call that has the turn, and the calls that wait for it.

Each call comes with its chain: the turns that wait for it. A call into a turn of its own chain
would wait for itself, and is refused at once. No process alone can see that two chains wait for
each other. They end when one of the calls has waited too long; its error says which call has the
turn, since when, and for what that call waits.
"""

from collections import deque
from typing import Annotated, NamedTuple, TypeAlias

import msgspec

from tenure.base.keys import KEY_BYTES

ARGUMENT_BYTES = 1 << 20
"""The most bytes of the arguments of a call, and of its answer."""
MOST_BYTES = ARGUMENT_BYTES + 64 * 1024
"""The most bytes of one message: its arguments, or frames, and the fields around them."""
MOST_CHAIN = 64
"""How deep calls into calls may be. A deeper chain goes round in a circle of ever new keys."""
NAME_CHARACTERS = 500
Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=NAME_CHARACTERS)]
"""The name of a pool, a method, a module or a class."""
EntityKey: TypeAlias = Annotated[str, msgspec.Meta(max_length=KEY_BYTES)] | int
Place: TypeAlias = tuple[Name, EntityKey]
"""An entity: its pool, and its key."""
CallId: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=64)]
Data: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=MOST_BYTES)]


def is_too_long(key: EntityKey) -> bool:
    """Whether no message carries this key, so that only its owner's process can call it."""
    return isinstance(key, str) and len(key) > KEY_BYTES


class EntityCall(msgspec.Struct, array_like=True, eq=False):
    """A call to one entity. Two calls with equal contents are still two calls."""

    key: EntityKey
    id: CallId
    """The call's id: the same when the call is repeated."""
    method: Name
    data: Data
    """The call's arguments."""
    chain: Annotated[tuple[Place, ...], msgspec.Meta(max_length=MOST_CHAIN)] = ()
    """The turns that wait for it, the outermost first."""


class Begin(NamedTuple):
    """The call has the turn."""


class Wait(NamedTuple):
    """The call stands in the line."""


class TooMany(NamedTuple):
    """The line is full."""

    why: str


BEGIN, WAIT = Begin(), Wait()


class KeyLine:
    """The call that has the turn with one key, and the calls that wait."""

    def __init__(self, most_waiting: int) -> None:
        self._most = most_waiting
        self.running: EntityCall | None = None
        self.began_at = 0.0
        self.waits_for: Place | None = None
        """The calls that the running call has made in turn, and waits for."""
        self._waiting: deque[EntityCall] = deque()

    def __len__(self) -> int:
        return len(self._waiting) + (self.running is not None)

    def ask(self, now: float, call: EntityCall) -> Begin | Wait | TooMany:
        """Ask for a turn for `call`."""
        if self.running is None:
            self._begin(now, call)
            return BEGIN
        if len(self._waiting) >= self._most:
            return TooMany(f"{len(self._waiting)} calls wait for {self.holder(now)}")
        self._waiting.append(call)
        return WAIT

    def leave(self, call: EntityCall) -> None:
        """End the wait of a call that has no turn."""
        if call in self._waiting:
            self._waiting.remove(call)

    def end(self, now: float) -> EntityCall | None:
        """End the turn, and return the call that has the next one."""
        self.running = self.waits_for = None
        if not self._waiting:
            return None
        following = self._waiting.popleft()
        self._begin(now, following)
        return following

    def _begin(self, now: float, call: EntityCall) -> None:
        self.running, self.began_at = call, now

    def holder(self, now: float) -> str:
        """The call that has the turn, in words."""
        call = self.running
        if call is None:
            return "nobody any more: the turn has just ended"
        said = (
            f"{call.key!r:.100}, whose turn {call.method} has had for {now - self.began_at:.1f} s"
        )
        if call.chain:
            said += f" on behalf of {shown(call.chain)}"
        if self.waits_for is not None:
            said += f", and which waits for {shown((self.waits_for,))}"
        return said


def cycle(chain: tuple[Place, ...], to: Place) -> str | None:
    """The circle that a call to `to` would close, in words; None if it closes none."""
    if to not in chain:
        return None
    return shown((*chain[chain.index(to) :], to))


def shown(places: tuple[Place, ...]) -> str:
    """Entities, in words."""
    return " -> ".join(f"{pool} {key!r:.100}" for pool, key in places)
