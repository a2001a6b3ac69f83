"""One turn at a time with each key, in the order in which they were asked for.

The lease keeps other processes away, not the tasks and threads of this one. An operation that waits
in the middle could store an old value over a new one, so operations on one key take turns. Tasks of
any event loop and threads can wait; each is woken in its own way.

A task that waits for itself would wait for ever. Every task and thread waits for one key at most,
so following the chain of who waits for whom back to its beginning takes one step for each of them.
Such a wait is refused before it begins.
"""

import asyncio
import time
from collections.abc import Callable, Hashable
from threading import TIMEOUT_MAX, Event, Lock, Thread, current_thread
from typing import Any, TypeAlias

from tenure.errors import Busy, UsageError

Taker: TypeAlias = "asyncio.Task[Any] | Thread"
"""A task or thread that takes turns."""


class InLine:
    """A caller in a line: at its head, with the turn, or behind."""

    __slots__ = ("began_at", "key", "taker", "wake")

    def __init__(self, key: Hashable, taker: Taker, wake: Callable[[], object]) -> None:
        self.key = key
        self.taker = taker
        self.wake = wake
        self.began_at = time.monotonic()
        """When the turn began, once it has."""


class Turns:
    """The lines of all keys with which somebody has a turn. From any thread."""

    def __init__(self, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._lock = Lock()
        self._lines: dict[Hashable, list[InLine]] = {}
        """The first of a line has the turn."""
        self._waits: dict[Taker, Hashable] = {}

    def __len__(self) -> int:
        return len(self._lines)

    async def take(self, key: Hashable, seconds: float) -> InLine:
        """Wait for the turn with `key`, in a task."""
        task = asyncio.current_task()
        if task is None:
            raise UsageError("a turn is taken by a task: enter it in a coroutine that runs as one")
        return self.take_at_once(key, task) or await self.wait(key, task, seconds)

    def take_at_once(self, key: Hashable, taker: Taker) -> InLine | None:
        """The turn with `key`, if nobody has it; None where `taker` has to wait."""
        place = InLine(key, taker, _nobody)
        line = [place]
        # One step, so it takes no lock.
        return place if self._lines.setdefault(key, line) is line else None

    async def wait(self, key: Hashable, task: "asyncio.Task[Any]", seconds: float) -> InLine:
        """Wait for the turn with `key`, which somebody else had a moment ago."""
        place = InLine(key, task, _nobody)
        loop = asyncio.get_running_loop()
        come = loop.create_future()
        place.wake = lambda: loop.call_soon_threadsafe(_finish, come)
        if self._join(place, seconds):
            return place
        try:
            async with asyncio.timeout(seconds):
                await come
        except BaseException as error:
            self._leave(place)
            if isinstance(error, TimeoutError):
                raise self._late(key, seconds) from None
            raise
        return place

    def take_blocking(self, key: Hashable, seconds: float) -> InLine:
        """Wait for the turn with `key`, in a thread."""
        woken, thread = Event(), current_thread()
        if (at_once := self.take_at_once(key, thread)) is not None:
            return at_once
        place = InLine(key, thread, woken.set)
        if self._join(place, seconds):
            return place
        try:
            has_come = woken.wait(min(seconds, TIMEOUT_MAX))
        except BaseException:
            self._leave(place)
            raise
        if not has_come:
            self._leave(place)
            raise self._late(key, seconds)
        return place

    def _join(self, place: InLine, seconds: float) -> bool:
        """Stand at the end of the line; True if it is the taker's turn after all."""
        with self._lock:
            ours = [place]
            line = self._lines.setdefault(place.key, ours)
            if line is ours:
                return True
            self._check_chain(place.key, place.taker)
            if len(line) > self._most_waiting or seconds == 0:
                raise Busy(f"{len(line) - 1} wait for their turn with {_said(line[0])}")
            line.append(place)
            self._waits[place.taker] = place.key
            return False

    def _check_chain(self, key: Hashable, taker: Taker) -> None:
        """Raise if `taker` would wait for itself."""
        chain, at = [key], self._lines[key][0].taker
        while at is not taker:
            wanted = self._waits.get(at)
            if wanted is None:
                return
            chain.append(wanted)
            at = self._lines[wanted][0].taker
        if len(chain) == 1:
            raise UsageError(
                f"{_name(taker)} has the turn with {key!r:.100} already, and would wait for "
                "itself: pass on what the outer `at` gave, instead of a second turn inside of it"
            )
        raise UsageError(
            f"{_name(taker)} has the turn with {chain[-1]!r:.100} and would wait for itself: who "
            f"has {key!r:.100} waits for that in turn. Take the turns of several keys in one order "
            "everywhere, such as sorted"
        )

    def _leave(self, place: InLine) -> None:
        """Stop waiting. A turn that came meanwhile goes to the next."""
        with self._lock:
            line = self._lines.get(place.key)
            if line is not None and line[0] is not place and place in line:
                line.remove(place)
                del self._waits[place.taker]
                return
        self.end(place)

    def end(self, place: InLine) -> None:
        """End the turn, so that the next one begins. Does nothing if it was over already."""
        while True:
            with self._lock:
                line = self._lines.get(place.key)
                if line is None or line[0] is not place:
                    return
                if len(line) == 1:
                    del self._lines[place.key]
                    return
                del line[0]
                place = line[0]
                del self._waits[place.taker]
                place.began_at = time.monotonic()
            try:
                place.wake()
            except RuntimeError:  # its event loop is closed, and it is gone with it
                continue
            return

    def _late(self, key: Hashable, seconds: float) -> Busy:
        with self._lock:
            line = self._lines.get(key)
            rest = f"{key!r:.100}" if line is None else _said(line[0])
        return Busy(f"the turn did not come within {seconds:g} s with {rest}")


def _nobody() -> None:
    """Do nothing: nobody waits."""


def _finish(come: "asyncio.Future[None]") -> None:
    if not come.done():
        come.set_result(None)


def _said(head: InLine) -> str:
    lasts = time.monotonic() - head.began_at
    return f"{head.key!r:.100}, which {_name(head.taker)} has had for {lasts:.1f} s"


def _name(taker: Taker) -> str:
    if isinstance(taker, Thread):
        return f"the thread {taker.name!r}"
    return f"the task {taker.get_name()!r}"
