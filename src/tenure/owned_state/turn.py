"""One operation on one key: the five steps of PRS 2.2, around a body.

    (1) is the key ours?  (2) does what is stored still count?  (3) the body
    (4) store, and ask whether the lease covered all of it  (5) only then go on

The value is stored when the body is done, in one go, so the body may wait for whatever it likes and
nobody sees half of it. A body that raises stores nothing.

Asking for the lease and storing are one step for the state: a hand-off takes the same lock to put
a range in or to drop it. Otherwise a thread that is stopped between the two could put an old value
over a newer one, when its range has left and come back.
"""

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from tenure.base.instants import SECOND_NS
from tenure.base.keys import UserKey
from tenure.client.arguments import checked_seconds
from tenure.client.guard import Guard, Guards
from tenure.client.lease import Lease
from tenure.client.turns import InLine
from tenure.errors import UsageError
from tenure.owned_state.entries import NEVER, Stored

if TYPE_CHECKING:
    from tenure.owned_state.state import OwnedState

V = TypeVar("V")

_UNREAD: Any = object()
_PLAIN = (str, int, float, bytes, bool)
"""What nobody can change in place."""


class Turn(Generic[V]):
    """A turn with one key: `async with`, or `with` in threads, once.

    Within it, `value` is what is stored for the key, None where nothing is. Assign another, or
    change it in place: what it is at the end of the body is stored. None removes it.
    """

    __slots__ = (
        "_ends",
        "_guard",
        "_guards",
        "_is_assigned",
        "_is_inside",
        "_lease",
        "_place",
        "_state",
        "_stored",
        "_value",
        "_wait",
        "key",
    )

    def __init__(self, state: "OwnedState[V]", key: UserKey, wait: float) -> None:
        self.key = key
        self._state = state
        self._wait = wait
        self._guard: Guard | None = None
        self._guards: Guards
        self._lease: Lease | None = None
        self._place: InLine
        self._stored: Stored | None = None
        self._value: V | None = _UNREAD
        self._is_assigned = False
        self._ends: float | None = _UNREAD
        """In how many seconds from when it is stored, if the body said so."""
        self._is_inside = False

    # --- for the body ---

    @property
    def value(self) -> V | None:
        """What is stored for the key; None where nothing is."""
        if not self._is_inside:
            self._check_inside()
        if self._value is _UNREAD:
            stored = self._stored
            self._value = None if stored is None else self._state.codec.decode(stored.data)
        return self._value

    @value.setter
    def value(self, value: V | None) -> None:
        if not self._is_inside:
            self._check_inside()
        self._value = value
        self._is_assigned = True

    @property
    def lease(self) -> Lease:
        """The lease under which the body runs: send `lease.headers()` along, as a fence."""
        self._check_inside()
        assert self._lease is not None
        return self._lease

    @property
    def ttl(self) -> float | None:
        """In how many seconds the value ends; None where it does not, or there is none.

        Storing begins the state's own `ttl` anew. Assign seconds, or None for no end, to have it
        otherwise for this value; `turn.ttl = turn.ttl` keeps the end where it is.
        """
        self._check_inside()
        if self._ends is not _UNREAD:
            return self._ends
        if self._stored is None or self._stored.ends_at == NEVER:
            return None
        return max(self._stored.ends_at - self._guards.clock(), 1) / SECOND_NS

    @ttl.setter
    def ttl(self, seconds: float | None) -> None:
        self._check_inside()
        self._ends = None if seconds is None else checked_seconds("ttl", seconds)

    def refresh(self) -> None:
        """Begin the state's own `ttl` anew, also where the value stays as it is."""
        self._check_inside()
        self._ends = self._state.ttl

    def _check_inside(self) -> None:
        if not self._is_inside:
            raise UsageError(
                f"the turn with {self.key!r:.100} is not under way: use it inside of `async with "
                "state.at(key) as it`, or `with`"
            )

    # --- entering and leaving ---

    async def __aenter__(self) -> Self:
        self._before()
        place = self._place = await self._state.turns.take(self.key, self._wait)
        try:
            guard = self._guard = Guard(self._guards, self.key, finish=True)
            assert isinstance(place.taker, asyncio.Task)
            self._begin(guard.enter_in(place.taker))
        except BaseException:
            self._state.turns.end(self._place)
            raise
        return self

    def __enter__(self) -> Self:
        self._before()
        if _is_in_loop():
            raise UsageError(
                "`with state.at(key)` would block the event loop that runs here while it waits for "
                "its turn: use `async with`, or call this in a thread"
            )
        self._place = self._state.turns.take_blocking(self.key, self._wait)
        try:
            guard = self._guard = Guard(self._guards, self.key, finish=True)
            self._begin(guard.__enter__())
        except BaseException:
            self._state.turns.end(self._place)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._guard is not None
        try:
            try:
                self._end(error)
            except BaseException as failed:
                await self._guard.__aexit__(type(failed), failed, failed.__traceback__)
                raise
            await self._guard.__aexit__(kind, error, trace)
        finally:
            self._state.turns.end(self._place)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._guard is not None
        try:
            try:
                self._end(error)
            except BaseException as failed:
                self._guard.__exit__(type(failed), failed, failed.__traceback__)
                raise
            self._guard.__exit__(kind, error, trace)
        finally:
            self._state.turns.end(self._place)

    def _before(self) -> None:
        """Raise what can be known before waiting."""
        if self._guard is not None:
            raise UsageError(f"the turn with {self.key!r:.100} was taken already; call `at` again")
        self._guards = self._state.check_usable(self.key)

    def _begin(self, lease: Lease) -> None:
        """Steps (1), which the guard has done, and (2)."""
        assert self._guard is not None
        self._lease = lease
        stored = self._state.entries.found(self.key)
        if stored is not None:
            since = self._guards.board.since(lease)
            if since is None or not stored.counts(lease, since, self._guards.clock()):
                self._state.entries.drop(self.key, stored)
                stored = None
        self._stored = stored
        self._is_inside = True

    def _end(self, error: BaseException | None) -> None:
        """Step (4), but for the last question, which the guard asks."""
        self._is_inside = False
        if error is not None:
            return
        state, guard, stored = self._state, self._guard, self._stored
        assert guard is not None
        data = self._outcome()
        if data is None and stored is None:
            return
        if stored is not None and data is stored.data and self._ends is _UNREAD:
            return  # it was looked at
        with state.entries.lock:
            if not guard.has_lasted():
                return  # the guard will say so
            if data is None:
                state.entries.pop(self.key, None)
            else:
                now = self._guards.clock()
                state.entries.put(self.key, self._new(data, now), now)

    def _outcome(self) -> bytes | None:
        """The value after the body; `stored.data` itself where nothing became of it."""
        value, stored = self._value, self._stored
        if value is _UNREAD:
            return None if stored is None else stored.data
        if value is None:
            return None
        if stored is not None and not self._is_assigned and type(value) in _PLAIN:
            return stored.data
        data = self._state.codec.encode(self.key, value)
        if stored is not None and not self._is_assigned and data == stored.data:
            return stored.data
        return data

    def _new(self, data: bytes, now: int) -> Stored:
        assert self._lease is not None
        seconds = self._state.ttl if self._ends is _UNREAD else self._ends
        ends_at = NEVER if seconds is None else now + int(seconds * SECOND_NS)
        return Stored(self._lease.number, self._lease.journal, ends_at, data)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
