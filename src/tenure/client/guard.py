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
from typing import Any

from tenure.base.instants import Instant
from tenure.base.keys import Key, UserKey
from tenure.base.ranges import WHOLE, KeyRange
from tenure.client.holdings import Board
from tenure.client.lease import Lease
from tenure.errors import LeaseLost, NotOwner, UsageError
from tenure.runtime.clock import Clock


class Guards:
    """The guards that are entered, to be looked through when something is lost."""

    def __init__(
        self,
        board: Board,
        clock: Clock,
        name: str,
        pool: str,
        find: Callable[[UserKey], str | None],
    ) -> None:
        self.board = board
        self.clock = clock
        self.name = name
        self.pool = pool
        self._find = find
        """Where a key is believed to be served, other than here."""
        self.expires_at = Instant(0)
        """Of all that is held, and of what is being given back."""
        self.changes = 0
        """How often something may have been lost. A guard that enters reads it before and after,
        and so knows whether it came too late to be told."""
        self._lock = Lock()
        self._entered: dict[Guard, Key] = {}
        """Every request enters and leaves, and something is lost now and then. So these two take no
        lock, and whoever tells of a loss looks at all that are entered."""
        self._waiting: list[tuple[set[Guard], Callable[[], object]]] = []
        """What is to be done when none of these is to finish any more."""
        self._settling: list[KeyRange] = []
        """Where nothing begins that is to finish, because the range is about to move."""

    def add(self, guard: "Guard", lease: Lease) -> None:
        """Tell `guard` when its lease is lost. Raises NotOwner if it is to finish, and its range is
        about to move.
        """
        self._entered[guard] = lease.key
        # Whoever settles a range says so first, and then looks who is there: one sees the other.
        settling = self._settling
        if settling and guard.finishes and any(lease.key in each for each in settling):
            self.remove(guard)
            raise self.not_owner(guard.key)

    def remove(self, guard: "Guard") -> None:
        """Tell it no more."""
        del self._entered[guard]
        if self._waiting and guard.finishes:
            self._waits_no_more(guard)

    def _within(self, ranges: Iterable[KeyRange]) -> "list[Guard]":
        wanted = tuple(ranges)
        there = list(self._entered.items())
        if wanted == (WHOLE,):
            return [guard for guard, _ in there]
        return [guard for guard, key in there if any(key in each for each in wanted)]

    def _finishing(self, ranges: Iterable[KeyRange]) -> "list[Guard]":
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
        left: set[Guard] = set()
        wait = left, then
        with self._lock:
            self._waiting.append(wait)  # before the look, so that whoever leaves after it sees it
            left.update(self._finishing(ranges))
            if not left:
                self._waiting.remove(wait)
        if not left:
            then()

    def _waits_no_more(self, guard: "Guard") -> None:
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
            f"{self.name} does not hold {key!r} of the pool {self.pool!r} now. Send the request "
            f"to the owner {elsewhere} (a service answers 421 Misdirected Request), or, just after "
            "starting, wait for ready()",
            address=address,
        )

    def lease_lost(self, key: UserKey, lease: Lease) -> LeaseLost:
        """The error on leaving."""
        return LeaseLost(
            f"{self.name} lost {key!r} of the pool {self.pool!r}, lease number {lease.number}, "
            "while the guarded body ran: another owner may have served it meanwhile. What the body "
            "did elsewhere may have to be checked, or fenced with the lease number"
        )


class Guard:
    """`with` or `async with`: once."""

    def __init__(self, guards: Guards, key: UserKey, *, finish: bool = False) -> None:
        self._guards = guards
        self.finishes = finish
        """Whether the body is to finish before the key moves."""
        self.is_kept = False
        """Whether the key is held no longer, and nobody else gets it before the body is done."""
        self.key = key
        self.lease: Lease | None = None
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cancelling = 0
        self._is_inside = False
        self._cancelled = False

    def _enter(self) -> Lease:
        if self.lease is not None:
            raise UsageError(f"the guard of {self.key!r} was entered already; make another")
        guards = self._guards
        changes = guards.changes
        lease = guards.board.check(self.key)
        if lease is None:
            raise guards.not_owner(self.key)
        self.lease = lease
        guards.add(self, lease)
        self._is_inside = True
        if guards.changes != changes and not self.is_held():  # lost before we would have been told
            self._leave()
            raise guards.not_owner(self.key)
        return lease

    def _leave(self) -> None:
        self._is_inside = False
        self._guards.remove(self)

    def is_held(self) -> bool:
        """Whether the lease with which the body began still is."""
        return self.lease is not None and self._guards.board.holds(self.lease)

    def is_in(self, ranges: tuple[KeyRange, ...]) -> bool:
        """Whether its key lies in any of them."""
        return self.lease is not None and any(self.lease.key in each for each in ranges)

    def has_lasted(self) -> bool:
        """Whether nobody else can have had the key up to now."""
        guards, lease = self._guards, self.lease
        if lease is not None and guards.board.holds(lease):
            return True
        return self.is_kept and guards.clock() < guards.expires_at

    def on_lost(self) -> None:
        """The lease is lost. From the thread that renews, or one that reads."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed, and the body is gone with it
                self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._is_inside and not self._cancelled and self._task is not None:
            self._cancelled = True
            self._task.cancel(msg="the lease of the guarded body was lost")

    async def __aenter__(self) -> Lease:
        return self.enter_in(asyncio.current_task())

    def enter_in(self, task: "asyncio.Task[Any] | None") -> Lease:
        """Enter; the body runs in `task`."""
        if task is not None:
            self._task, self._loop = task, task.get_loop()
            self._cancelling = task.cancelling()
        return self._enter()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        was_ours = False
        if self._cancelled and self._task is not None:
            was_ours = self._task.uncancel() <= self._cancelling and isinstance(
                error, asyncio.CancelledError
            )
        self._finish(error, is_replaced=was_ours)

    def __enter__(self) -> Lease:
        return self._enter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._finish(error, is_replaced=False)

    def _finish(self, error: BaseException | None, *, is_replaced: bool) -> None:
        assert self.lease is not None
        has_lasted = self.has_lasted()
        self._leave()
        if is_replaced or (error is None and not has_lasted):
            raise self._guards.lease_lost(self.key, self.lease) from error
