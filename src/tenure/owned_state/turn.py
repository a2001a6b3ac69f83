"""One operation on one key: the five steps of PRS 2.2, around a body.

    (1) is the key ours?  (2) does what is stored still count?  (3) the body
    (4) store, and ask whether the lease covered all of it  (5) only then go on

The value is stored in one step when the body is done, so the body may wait for anything, and nobody
sees half of its changes. A body that raises stores nothing.

Asking for the lease and storing are one step for the state: a hand-off takes the same lock to put
a range in or to drop it. Otherwise a thread that is stopped between the two could put an old value
over a newer one, when its range has left and come back.
"""

import asyncio
from contextlib import suppress
from typing import Any, Generic, Protocol, Self, TypeVar

from tenure.base.instants import SECOND_NS
from tenure.base.keys import UserKey
from tenure.client.arguments import checked_seconds
from tenure.client.guard import GuardedBody, Guards
from tenure.client.hand_off.likeness import ValueCodec
from tenure.client.hand_off.unknown_fields import UnknownFields
from tenure.client.lease import Lease
from tenure.client.turns import InLine, Turns
from tenure.errors import UsageError
from tenure.owned_state.entries import NEVER, Stored, StoredEntries

V = TypeVar("V")

LONGEST_SECONDS = 3e9
"""What ends after a century does not end: an instant, in nanoseconds, is a number of 64 bits."""
_UNREAD: Any = object()
_KEYS = (str, bytes, int)
_PLAIN = (str, int, float, bytes, bool)
"""Types whose values nobody can change in place."""


class StateOfTurns(Protocol[V]):
    """The state whose values are changed in turns: an `OwnedState`."""

    codec: ValueCodec[V]
    entries: StoredEntries
    turns: Turns
    ttl: float | None

    @property
    def guards(self) -> Guards:
        """The guards of its owner. Raises UsageError if it has none."""
        ...


class Turn(GuardedBody, Generic[V]):
    """A turn with one key: `async with`, or `with` in threads, once.

    Within it, `value` is the stored value of the key, or None. Assign another, or change it in
    place: leaving stores what it is at the end of the body. None removes it.
    """

    __slots__ = (
        "_ends",
        "_is_assigned",
        "_place",
        "_state",
        "_stored",
        "_unknown",
        "_value",
        "_wait",
    )

    def __init__(self, state: StateOfTurns[V], key: UserKey, wait: float) -> None:
        super().__init__(state.guards, key, finish=True)
        self._state = state
        self._wait = wait
        self._place: InLine
        self._stored: Stored | None = None
        self._value: V | None = _UNREAD
        self._unknown: UnknownFields | None = None
        """The fields of what is stored that this release does not know, once that was read."""
        self._is_assigned = False
        self._ends: float | None = _UNREAD
        """How many seconds after it is stored the value ends, if the body said so."""

    # --- for the body ---

    @property
    def value(self) -> V | None:
        """The stored value of the key, or None."""
        if not self._is_inside:
            self._check_inside()
        if self._value is _UNREAD:
            self._value = self._read()
        return self._value

    @value.setter
    def value(self, value: V | None) -> None:
        if not self._is_inside:
            self._check_inside()
        if self._value is _UNREAD and self._state.codec.has_fields:
            with suppress(ValueError):  # what cannot be read is replaced as a whole
                self._read()
        self._value = value
        self._is_assigned = True

    def _read(self) -> V | None:
        if self._stored is None:
            return None
        found, self._unknown = self._state.codec.opened(self._stored.data)
        return found

    @property
    def lease(self) -> Lease:
        """The lease under which the body runs: send `lease.headers()` along, as a fence."""
        self._check_inside()
        assert self._lease is not None
        return self._lease

    @property
    def ttl(self) -> float | None:
        """In how many seconds the value expires; None if it does not, or there is no value.

        Storing restarts the state's own `ttl`. Assign seconds, or None for no end, to set a
        different one for this value; `turn.ttl = turn.ttl` leaves the end where it is.
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
        """Restart the state's own `ttl`, even if the value does not change."""
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
        self._begin(*await self._place_of_task())
        return self

    def __enter__(self) -> Self:
        self._begin(self._place_of_thread(), None)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._end(error)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._end(error)

    async def _place_of_task(self) -> "tuple[InLine, asyncio.Task[Any]]":
        """Wait in line as the task that runs here. Raises errors of its use before."""
        self._check_usable()
        task = asyncio.current_task()
        if task is None:
            raise UsageError("a turn is taken by a task: enter it in a coroutine that runs as one")
        turns = self._state.turns
        place = turns.take_at_once(self.key, task) or await turns.wait(self.key, task, self._wait)
        return place, task

    def _place_of_thread(self) -> InLine:
        """Wait in line as this thread. Raises errors of its use before."""
        self._check_usable()
        if is_in_loop():
            raise UsageError(
                "`with state.at(key)` would block the event loop that runs here while it waits for "
                "its turn: use `async with`, or call this in a thread"
            )
        return self._state.turns.take_blocking(self.key, self._wait)

    def _check_usable(self) -> None:
        """Raise errors that are known before waiting."""
        if self._lease is not None:
            raise UsageError(f"the turn with {self.key!r:.100} was taken already; call `at` again")
        board = self._guards.board
        _ = board.current.numbers[0]  # raises in a fork, and at the end
        if type(self.key) not in _KEYS:
            board.key(self.key)  # says what is wrong with it

    def _begin(self, place: InLine, task: "asyncio.Task[Any] | None") -> None:
        """Steps (1) and (2)."""
        self._place = place
        try:
            lease = self.begin(task)
        except BaseException:
            self._state.turns.end(place)
            raise
        stored = self._state.entries.found(self.key)
        if stored is not None:
            since: int | None = lease.number
            if stored.number != since:  # otherwise nothing can have interrupted it
                since = self._guards.board.since(lease)
            if since is None or not stored.counts(lease, since, self._guards.clock()):
                self._state.entries.drop(self.key, stored)
                stored = None
        self._stored = stored

    def _end(self, error: BaseException | None) -> None:
        """The turn is over."""
        try:
            has_lasted = error is None and self._has_kept()
        except BaseException as failed:
            self.leave(failed, has_lasted=True)
            raise
        else:
            self.leave(error, has_lasted=has_lasted)
        finally:
            self._state.turns.end(self._place)

    def _has_kept(self) -> bool:
        """Step (4): store what the body made of the value, and ask for the lease, in one step.
        Return whether the lease has covered the whole turn.
        """
        data = self._outcome()
        if not self._has_changed(data):  # it was looked at
            return self.has_lasted()
        entries = self._state.entries
        with entries.lock:
            if not self.has_lasted():
                return False
            if data is None:
                entries.pop(self.key, None)
            else:
                now = self._guards.clock()
                entries.put(self.key, self._new(data, now), now)
        return True

    def _has_changed(self, data: bytes | None) -> bool:
        stored = self._stored
        if stored is None:
            return data is not None
        return data is not stored.data or self._ends is not _UNREAD

    def _outcome(self) -> bytes | None:
        """The value after the body; `stored.data` itself if the body did not change it."""
        value, stored = self._value, self._stored
        if value is _UNREAD:
            return None if stored is None else stored.data
        if value is None:
            return None
        if stored is None or self._is_assigned:
            return self._state.codec.encode(self.key, value, self._unknown)
        if type(value) in _PLAIN:
            return stored.data
        data = self._state.codec.encode(self.key, value, self._unknown)
        return stored.data if data == stored.data else data

    def _new(self, data: bytes, now: int) -> Stored:
        assert self._lease is not None
        seconds = self._state.ttl if self._ends is _UNREAD else self._ends
        if seconds is None or seconds > LONGEST_SECONDS:
            return Stored(self._lease.number, self._lease.journal, NEVER, data)
        ends_at = now + int(seconds * SECOND_NS)
        return Stored(self._lease.number, self._lease.journal, ends_at, data)


def is_in_loop() -> bool:
    """Whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
