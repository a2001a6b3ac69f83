"""A body that runs only while a key is held.

A boolean that nobody looks at lets an unheld body run. So a guard raises: on entering, where the
key is not held; and when the lease is lost while the body runs. The async form also cancels the
body, the way `asyncio.timeout` does, as soon as the thread that renews finds the lease lost. The
blocking form cannot stop its body, and raises on leaving.

A body that raised an error of its own keeps it: what it says is nearer to the cause.

A body that is to finish before its key moves (`finish=True`) goes on when the range is recalled, or
the owner leaves: from then on nobody begins anything on the key, and it is given back when the body
is done. The lease of such a body is lost when the manager, or the term, does not wait any longer.
A range that is to be handed over with its state settles first, in the same way: no such body begins
there, and it is served until those that run are done, or have had their time.
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import Any, TypeAlias

from tenure.base.instants import Instant
from tenure.base.keys import Key, UserKey
from tenure.base.ranges import WHOLE, KeyRange
from tenure.client.holdings import Board
from tenure.client.lease import Lease
from tenure.errors import LeaseLost, NotOwner, UsageError
from tenure.runtime.clock import Clock

Found: TypeAlias = tuple[int, Lease | None]


class Guards:
    """The guards that are entered, to be looked through when something is lost."""

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
        """Where a key is believed to be served, other than here."""
        self.expires_at = Instant(0)
        """Of all that is held, and of what is being given back."""
        self.changes = 0
        """How often something may have been lost. A guard that enters reads it before and after,
        and so knows whether it came too late to be told."""
        self._lock = Lock()
        self._entered: dict[GuardedBody, Key] = {}
        """Every request enters and leaves, and something is lost now and then. So these two take no
        lock, and whoever tells of a loss looks at all that are entered."""
        self._waiting: list[tuple[set[GuardedBody], Callable[[], object]]] = []
        """What is to be done when none of these is to finish any more."""
        self._settling: list[KeyRange] = []
        """Where nothing begins that is to finish, because the range is about to move."""

    def found(self, key: UserKey) -> Found:
        """How often something may have been lost up to now, and the lease of the key, if any."""
        changes = self.changes
        return changes, self.board.check(key)

    def add(self, guard: "GuardedBody", lease: Lease) -> None:
        """Tell `guard` when its lease is lost. Raises NotOwner if it is to finish, and its range is
        about to move.
        """
        self._entered[guard] = lease.key
        # Whoever settles a range says so first, and then looks who is there: one sees the other.
        settling = self._settling
        if settling and guard.finishes and any(lease.key in each for each in settling):
            self.remove(guard)
            raise self.not_owner(guard.key)

    def remove(self, guard: "GuardedBody") -> None:
        """Tell it no more."""
        del self._entered[guard]
        if self._waiting and guard.finishes:
            self._waits_no_more(guard)

    def _within(self, ranges: Iterable[KeyRange]) -> "list[GuardedBody]":
        wanted = tuple(ranges)
        there = list(self._entered.items())
        if wanted == (WHOLE,):
            return [guard for guard, _ in there]
        return [guard for guard, key in there if any(key in each for each in wanted)]

    def _finishing(self, ranges: Iterable[KeyRange]) -> "list[GuardedBody]":
        """Those whose bodies are to finish before their keys move."""
        return [guard for guard in self._within(ranges) if guard.finishes]

    def tell_losers(self, ranges: Iterable[KeyRange] = (WHOLE,)) -> None:
        """Something in these ranges may have been lost: tell those whose lease is. From any thread.

        Those that are to finish are told by `keep`, which knows whether anybody else gets the key.
        """
        self.changes += 1
        for guard in self._within(ranges):
            if not guard.finishes and not guard.is_held():
                guard.on_lost()

    # --- bodies that are to finish, for the engine's loop ---

    def finishing(self, ranges: Iterable[KeyRange] = (WHOLE,)) -> int:
        """How many bodies in these ranges are to finish before their keys move."""
        return len(self._finishing(ranges))

    def keep(self, revoked: Iterable[KeyRange], kept: tuple[KeyRange, ...]) -> None:
        """Of what is held no longer, nobody else gets `kept` yet: bodies there finish."""
        self.changes += 1
        for guard in self._finishing(revoked):
            if not guard.is_held():
                guard.is_kept = guard.is_kept or guard.is_in(kept)
                if not guard.is_kept:
                    guard.on_lost()

    def overtake(self, ranges: Iterable[KeyRange] = (WHOLE,)) -> None:
        """Nothing in these ranges is waited for any longer."""
        self.changes += 1
        for guard in self._finishing(ranges):
            guard.finishes = guard.is_kept = False
            if not guard.is_held():
                guard.on_lost()
            self._waits_no_more(guard)

    def when_finished(self, ranges: Iterable[KeyRange], then: Callable[[], object]) -> None:
        """Call `then` when no body that has begun in these ranges is to finish any more; at once if
        there is none.
        """
        left: set[GuardedBody] = set()
        wait = left, then
        with self._lock:
            self._waiting.append(wait)  # before the look, so that whoever leaves after it sees it
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
        """Let nothing begin in the range that is to finish, until `resume`; done when all such
        bodies there are done.
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
        """The range is settled no longer."""
        with self._lock:
            self._settling.remove(key_range)

    def not_owner(self, key: UserKey) -> NotOwner:
        """The error on entering."""
        address = self._find(key)
        elsewhere = "that Lookup.find names" if address is None else f"at {address}"
        return NotOwner(
            f"{self.name} does not hold {key!r} now. Send the request to the owner {elsewhere} "
            "(a service answers 421 Misdirected Request), or, just after starting, wait for "
            "ready()",
            address=address,
        )

    def lease_lost(self, key: UserKey, lease: Lease) -> LeaseLost:
        """The error on leaving."""
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
        """Whether the key is held no longer, and nobody else gets it before the body is done."""
        self.key = key
        self._lease: Lease | None = None
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._is_inside = False
        self._cancelled = False

    def begin(self, task: "asyncio.Task[Any] | None", found: Found | None = None) -> Lease:
        """Enter; the body runs in `task`, or in a thread. `found` is what `Guards.found` has said
        of the key, if it was asked before this, without a wait in between. Raises NotOwner.
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
        """The body is over. Raises LeaseLost, unless it has lasted or the body says otherwise."""
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
        """Whether the lease with which the body began still is."""
        return self._lease is not None and self._guards.board.holds(self._lease)

    def is_in(self, ranges: tuple[KeyRange, ...]) -> bool:
        """Whether its key lies in any of them."""
        return self._lease is not None and any(self._lease.key in each for each in ranges)

    def has_lasted(self) -> bool:
        """Whether nobody else can have had the key up to now."""
        guards, lease = self._guards, self._lease
        if lease is not None and guards.board.holds(lease):
            return True
        return self.is_kept and guards.clock() < guards.expires_at

    def on_lost(self) -> None:
        """The lease is lost. From the thread that renews, or one that reads."""
        if self._task is not None:
            with suppress(RuntimeError):  # the loop is closed, and the body is gone with it
                self._task.get_loop().call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._is_inside and not self._cancelled and self._task is not None:
            self._cancelled = True
            self._task.cancel(msg="the lease of the guarded body was lost")


class Guard(GuardedBody):
    """`with` or `async with`: once."""

    __slots__ = ()

    def __init__(self, guards: Guards, key: UserKey, *, finish: bool = False) -> None:
        super().__init__(guards, key, finish=finish)

    def _enter(self, task: "asyncio.Task[Any] | None") -> Lease:
        if self._lease is not None:
            raise UsageError(f"the guard of {self.key!r} was entered already; make another")
        return self.begin(task)

    async def __aenter__(self) -> Lease:
        return self._enter(asyncio.current_task())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave(error, has_lasted=self.has_lasted())

    def __enter__(self) -> Lease:
        return self._enter(None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave(error, has_lasted=self.has_lasted())
