"""A body that runs only while a key is held.

If a check returns a boolean that nobody looks at, the body runs although the key is not held. So a
guard raises: on entering, if the key is not held; and when the lease is lost while the body runs.
The async form also cancels the body, the way `asyncio.timeout` does, as soon as the thread that
renews finds the lease lost. The blocking form cannot stop its body, and raises on leaving.

If the body raised an error of its own, the guard lets that through, because it is nearer to the
cause.

A body that is to finish before its key moves (`finish=True`) goes on when the range is recalled, or
the owner leaves. From then on nothing new begins on the key, and the owner gives the key back when
the body is done. The lease of such a body is lost when the manager, or the term, does not wait any
longer. A range that is to be handed over with its state settles first, in the same way: no such
body begins there, and the owner serves the range until those that run are done, or their time is
up.
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from threading import Lock
from typing import Any, TypeAlias

from tenure.base.instants import Instant
from tenure.base.keys import Key, UserKey
from tenure.base.ranges import WHOLE, KeyRange
from tenure.client.holdings import Board
from tenure.client.lease import Lease
from tenure.errors import LeaseLost, NotOwner, UsageError
from tenure.runtime.clock import Clock
from tenure.runtime.loops import call_in

Found: TypeAlias = tuple[int, Lease | None]


class Guards:
    """The guards that are entered, which are searched when ranges are lost."""

    def __init__(
        self,
        board: Board,
        clock: Clock,
        name: str,
        find: Callable[[UserKey], str | None],
    ) -> None:
        self.board = board
        self.clock = clock
        self.name = name
        self._find = find
        """Says where else a key is believed to be served."""
        self.expires_at = Instant(0)
        """When the term ends, as the thread that renews told it last."""
        self.changes = 0
        """How often something may have been lost of the ranges that are held, or are being given
        back. A guard that enters reads it before and after, and so knows whether it came too late
        to be told."""
        self._lock = Lock()
        self._entered: dict[GuardedBody, Key] = {}
        """Every request enters and leaves, and something is lost now and then. So these two take no
        lock, and whoever tells of a loss looks at all that are entered."""
        self._waiting: list[tuple[set[GuardedBody], Callable[[], object]]] = []
        """The functions to call when no body in these ranges is to finish any longer."""
        self._settling: list[KeyRange] = []
        """The ranges that are about to move: no body that is to finish begins there."""

    def found(self, key: UserKey) -> Found:
        """Return how often something may have been lost up to now, and the lease of the key, if it
        is held.
        """
        changes = self.changes
        return changes, self.board.check(key)

    def add(self, guard: "GuardedBody", lease: Lease) -> None:
        """Tell `guard` when its lease is lost. Raises NotOwner if it is to finish, and its range is
        about to move.
        """
        self._entered[guard] = lease.key
        # `settle` first marks the range, and then looks for bodies: either it or we see the other.
        settling = self._settling
        if settling and guard.finishes and any(lease.key in each for each in settling):
            self.remove(guard)
            raise self.not_owner(guard.key)

    def remove(self, guard: "GuardedBody") -> None:
        """Stop telling `guard` anything."""
        del self._entered[guard]
        if self._waiting and guard.finishes:
            self._waits_no_more(guard)

    def _within(self, ranges: Iterable[KeyRange]) -> "list[GuardedBody]":
        wanted = tuple(ranges)
        there = self._entered.copy().items()  # in one step: others enter and leave
        if wanted == (WHOLE,):
            return [guard for guard, _ in there]
        return [guard for guard, key in there if any(key in each for each in wanted)]

    def _finishing(self, ranges: Iterable[KeyRange]) -> "list[GuardedBody]":
        """Return the guards whose bodies are to finish before their keys move."""
        return [guard for guard in self._within(ranges) if guard.finishes]

    def tell_losers(self, ranges: Iterable[KeyRange] = (WHOLE,)) -> None:
        """Something in these ranges may have been lost: tell the guards whose leases are. From any
        thread.

        `keep` tells those that are to finish, because it knows whether another owner gets the key.
        """
        self.changes += 1
        for guard in self._within(ranges):
            if not guard.finishes and not guard.is_held():
                guard.on_lost()

    # --- bodies that are to finish, for the engine's loop ---

    def finishing(self, ranges: Iterable[KeyRange] = (WHOLE,)) -> int:
        """Return how many bodies in these ranges are to finish before their keys move."""
        return len(self._finishing(ranges))

    def keep(self, revoked: Iterable[KeyRange], kept: tuple[KeyRange, ...]) -> None:
        """Let bodies in `kept` finish: no other owner gets these of the ranges that are no longer
        held.
        """
        self.changes += 1
        for guard in self._finishing(revoked):
            if not guard.is_held():
                guard.is_kept = guard.is_kept or guard.is_in(kept)
                if not guard.is_kept:
                    guard.on_lost()

    def overtake(self, ranges: Iterable[KeyRange] = (WHOLE,)) -> None:
        """Wait no longer for bodies in these ranges."""
        self.changes += 1
        for guard in self._finishing(ranges):
            guard.finishes = guard.is_kept = False
            if not guard.is_held():
                guard.on_lost()
            self._waits_no_more(guard)

    def when_finished(self, ranges: Iterable[KeyRange], then: Callable[[], object]) -> None:
        """Call `then` when all bodies that are to finish in these ranges are done; at once if there
        are no such bodies.
        """
        left: set[GuardedBody] = set()
        wait = left, then
        with self._lock:
            self._waiting.append(wait)  # before the look: a body that ends later sees it
            left.update(self._finishing(ranges))
            if not left:
                self._waiting.remove(wait)
        if not left:
            then()

    def _waits_no_more(self, guard: "GuardedBody") -> None:
        with self._lock:
            for left, _ in self._waiting:
                left.discard(guard)
            due = [then for left, then in self._waiting if not left]
            self._waiting = [wait for wait in self._waiting if wait[0]]
        for then in due:
            then()

    def settle(self, key_range: KeyRange) -> "Future[None]":
        """Let no body that is to finish begin in the range, until `resume`. The future is done when
        all such bodies there are done.
        """
        with self._lock:
            self._settling.append(key_range)
        settled: Future[None] = Future()

        def end() -> None:
            if settled.set_running_or_notify_cancel():
                settled.set_result(None)

        self.when_finished((key_range,), end)
        return settled

    def resume(self, key_range: KeyRange) -> None:
        """The range is no longer settled."""
        with self._lock:
            self._settling.remove(key_range)

    def not_owner(self, key: UserKey) -> NotOwner:
        """Return the error that entering raises."""
        address = self._find(key)
        elsewhere = "that Lookup.find names" if address is None else f"at {address}"
        return NotOwner(
            f"{self.name} does not hold {key!r} now. Send the request to the owner {elsewhere} "
            "(a service answers 421 Misdirected Request), or, just after starting, wait for "
            "ready()",
            address=address,
        )

    def lease_lost(self, key: UserKey, lease: Lease) -> LeaseLost:
        """Return the error that leaving raises."""
        return LeaseLost(
            f"{self.name} lost {key!r}, lease number {lease.number}, while the guarded body "
            "ran: another owner may have served it meanwhile. What the body did elsewhere may have "
            "to be checked, or fenced with the lease number"
        )


class GuardedBody:
    """A body that runs under a lease, as `Guards` see it."""

    __slots__ = (
        "_cancelled",
        "_cancelling",
        "_guards",
        "_is_inside",
        "_lease",
        "_task",
        "finishes",
        "is_kept",
        "key",
    )

    def __init__(self, guards: Guards, key: UserKey, *, finish: bool) -> None:
        self._guards = guards
        self.finishes = finish
        """Whether the body is to finish before the key moves."""
        self.is_kept = False
        """Whether the key is no longer held, and no other owner gets it before the body is done."""
        self.key = key
        self._lease: Lease | None = None
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._is_inside = False
        self._cancelled = False

    def begin(self, task: "asyncio.Task[Any] | None", found: Found | None = None) -> Lease:
        """Enter; the body runs in `task`, or in a thread. `found` is what `Guards.found` returned
        for the key, if the caller asked just before and has not waited since. Raises NotOwner.
        """
        guards = self._guards
        if task is not None:
            self._task, self._cancelling = task, task.cancelling()
        changes, lease = found or guards.found(self.key)
        if lease is None:
            raise guards.not_owner(self.key)
        self._lease = lease
        guards.add(self, lease)
        self._is_inside = True
        if guards.changes != changes and not self.is_held():  # lost before we would have been told
            self._is_inside = False
            guards.remove(self)
            raise guards.not_owner(self.key)
        return lease

    def leave(self, error: BaseException | None, *, has_lasted: bool) -> None:
        """The body is over. Raises LeaseLost unless the lease has lasted, or the body raised an
        error of its own.
        """
        self._is_inside = False
        self._guards.remove(self)
        is_ours = False
        if self._cancelled and self._task is not None:
            is_ours = self._task.uncancel() <= self._cancelling and isinstance(
                error, asyncio.CancelledError
            )
        if is_ours or (error is None and not has_lasted):
            assert self._lease is not None
            raise self._guards.lease_lost(self.key, self._lease) from error

    def is_held(self) -> bool:
        """Return whether the lease with which the body began is still held."""
        return self._lease is not None and self._guards.board.holds(self._lease)

    def is_in(self, ranges: tuple[KeyRange, ...]) -> bool:
        """Return whether its key lies in any of the ranges."""
        return self._lease is not None and any(self._lease.key in each for each in ranges)

    def has_lasted(self) -> bool:
        """Return whether no other owner can have had the key up to now."""
        guards, lease = self._guards, self._lease
        if lease is not None and guards.board.holds(lease):
            return True
        return self.is_kept and guards.clock() < guards.expires_at

    def on_lost(self) -> None:
        """The lease is lost. Called in the thread that renews, or in one that reads."""
        if self._task is not None:
            call_in(self._task.get_loop(), self._cancel)

    def _cancel(self) -> None:
        if self._is_inside and not self._cancelled and self._task is not None:
            self._cancelled = True
            self._task.cancel(msg="the lease of the guarded body was lost")


class Guard(GuardedBody):
    """A guard of one key, entered once with `with` or `async with`."""

    __slots__ = ()

    def __init__(self, guards: Guards, key: UserKey, *, finish: bool = False) -> None:
        super().__init__(guards, key, finish=finish)

    def _enter(self, task: "asyncio.Task[Any] | None") -> Lease:
        if self._lease is not None:
            raise UsageError(f"the guard of {self.key!r} was entered already; make another")
        return self.begin(task)

    async def __aenter__(self) -> Lease:
        return self._enter(asyncio.current_task())

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.leave(error, has_lasted=self.has_lasted())

    def __enter__(self) -> Lease:
        return self._enter(None)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.leave(error, has_lasted=self.has_lasted())
