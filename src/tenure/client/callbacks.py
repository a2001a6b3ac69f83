"""Calling the application: one callback at a time, in order, where the application lives.

A callback runs in the application's event loop if it has one, and otherwise in a thread of our own.
It never runs in the thread that renews: a callback that blocks may delay other callbacks, and
nothing else.

Whatever becomes of a callback, its follow-up runs. A range whose `on_revoke` failed must still be
returned, or nobody would ever serve it again.
"""

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from tenure.base.instants import FAR_FUTURE, Instant, in_seconds
from tenure.base.names import shown
from tenure.base.ranges import KeyRange
from tenure.errors import ConfigurationError, TenureError
from tenure.runtime.clock import Clock
from tenure.runtime.loops import LoopCalls, OwnThread

SHOWN_RANGES = 3
"""How many ranges a line of the log names; it gives the number of all of them."""
STUCK_SECONDS = 10.0
"""When a callback has taken this long, the log says that it hangs. Leaving waits this long for all
callbacks together.
"""
BEHIND = "the callbacks behind it wait, and so does whatever it is to let go of"

Callback: TypeAlias = Callable[[Any], object]
"""A function or a coroutine function of one argument."""
T = TypeVar("T")


class Job(NamedTuple):
    """One call to make, and what follows it."""

    name: str
    callback: Callback | None
    argument: Any
    about: str
    """The subject of the call, for the log."""
    then: Callable[[], None] | None = None
    deadline: Instant = FAR_FUTURE
    """When the term of the ranges that it is about ends."""


def shown_ranges(ranges: Sequence[KeyRange]) -> str:
    """Name what a callback is about, as the log shows it."""
    first = ", ".join(map(str, ranges[:SHOWN_RANGES]))
    more = len(ranges) - SHOWN_RANGES
    return f"{first} and {more} more" if more > 0 else first


def check_callback(name: str, callback: object) -> None:
    """Raise ConfigurationError if `callback` cannot be called with one argument."""
    if callback is None:
        return
    if not callable(callback):
        raise ConfigurationError(
            f"{name} is called, so it must be a function or a coroutine function, "
            f"not {shown(callback)}; leave it out where there is nothing to do"
        )
    check_arity(name, callback, 1)


def check_arity(name: str, callback: Callable[..., object], arguments: int) -> None:
    """Raise ConfigurationError if it cannot be called with that many positional arguments."""
    try:
        signature = inspect.signature(callback)
    except (TypeError, ValueError):
        return  # some of those written in C do not say
    try:
        signature.bind(*range(arguments))
    except TypeError as error:
        what = f"{arguments} argument" + ("s" if arguments != 1 else "")
        raise ConfigurationError(
            f"{name} is called with {what}, and {shown(callback)} takes {signature}: {error}"
        ) from None


def needs(callback: object, arguments: int) -> bool:
    """Return whether it can be called with that many positional arguments, and not with fewer."""
    try:
        signature = inspect.signature(cast("Callable[..., object]", callback))
    except (TypeError, ValueError):
        return False  # some of those written in C do not say
    try:
        signature.bind(*range(arguments))
    except TypeError:
        return False
    with suppress(TypeError):
        signature.bind(*range(arguments - 1))
        return False
    return True


class Callbacks:
    """The queue of calls to one application."""

    def __init__(self, name: str, logger: logging.Logger, clock: Clock) -> None:
        self._name = name
        self._log = logger
        self._clock = clock
        self._calls = LoopCalls()
        self._jobs: deque[Job] = deque()
        self._wake: asyncio.Event | None = None
        self._is_stopping = False
        self._task: asyncio.Task[None] | None = None
        self._is_gone = False
        self._running: set[asyncio.Task[Any]] = set()
        self.watch: Callable[[Callable[[], None]], None] = _nobody
        """Have something called when a callback runs for too long: not in the application's loop,
        which the callback may block."""

    def start_here(self) -> None:
        """Call in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"{self._name} calls")

    def start_thread(self) -> None:
        """Call in a thread, with an event loop of its own for coroutine functions."""
        ended = OwnThread().run(self._run(), f"{self._name} calls")
        ended.add_done_callback(self._on_thread_ended)

    def _on_thread_ended(self, ended: "Future[None]") -> None:
        """Handle a callback that raised what ends a thread, such as SystemExit."""
        error = ended.exception()
        if error is not None:
            self._log.critical("%s: no callback is called any longer", self._name, exc_info=error)

    def put(self, job: Job) -> None:
        """Make a call after those that were put before it. From any thread."""
        self._jobs.append(job)
        if self._is_gone or not self._calls.call(self._ring):
            self._give_up()

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> "Future[T]":
        """Run a coroutine where callbacks are called, beside them. From any thread."""
        done: Future[T] = Future()

        def begin() -> None:
            task = asyncio.get_running_loop().create_task(work())
            self._running.add(task)
            task.add_done_callback(end)

        def end(task: asyncio.Task[T]) -> None:
            self._running.discard(task)
            if done.cancelled():
                return
            if task.cancelled():
                done.set_exception(TenureError("it was cancelled"))
            elif (error := task.exception()) is not None:
                done.set_exception(error)
            else:
                done.set_result(task.result())

        if self._is_gone or not self._calls.call(begin):
            done.set_exception(TenureError("the application's event loop is closed"))
        return done

    def stop(self) -> None:
        """Make the calls that were put already, and then end. From any thread."""
        self._calls.call(self._stop)

    def _ring(self) -> None:
        if self._wake is not None:
            self._wake.set()

    def _stop(self) -> None:
        self._is_stopping = True
        self._ring()

    async def _run(self) -> None:
        self._wake = asyncio.Event()
        self._calls.open()
        try:
            while self._jobs or not self._is_stopping:
                if not self._jobs:
                    await self._wake.wait()
                    self._wake.clear()
                    continue
                await self._make(self._jobs.popleft())
        finally:
            self._is_gone = True
            self._calls.shut()
            self._give_up()

    def _give_up(self) -> None:
        """The application's loop is gone: no callback can run, but every follow-up must."""
        while self._jobs:
            try:
                job = self._jobs.popleft()
            except IndexError:  # another thread was faster
                return
            if job.callback is not None:
                self._log.warning(
                    "%s: %s was not called for %s: the event loop in which it was to run is closed",
                    self._name,
                    job.name,
                    job.about,
                )
            if job.then is not None:
                job.then()

    async def _make(self, job: Job) -> None:
        try:
            if job.callback is not None:
                await self._call(job, job.callback)
        finally:
            if job.then is not None:
                job.then()

    async def _call(self, job: Job, callback: Callback) -> None:
        began_late = self._clock() >= job.deadline
        if began_late:
            self._say_late(job, "could begin only")
        try:
            with self.watched(job.name, job.about, BEHIND):
                result = callback(job.argument)
                if inspect.isawaitable(result):
                    await result
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._log.exception("%s: %s was cancelled for %s", self._name, job.name, job.about)
        except Exception:  # noqa: BLE001  # the application's: the library goes on
            self._log.exception("%s: %s failed for %s", self._name, job.name, job.about)
        else:
            if self._clock() >= job.deadline and not began_late:
                self._say_late(job, "was done only")

    @contextmanager
    def watched(self, name: str, about: str, waits: str) -> Iterator[None]:
        """While the body calls the application, log when the call takes too long, and what waits
        for it.
        """
        began_at, is_done = self._clock(), False

        def say_stuck() -> None:
            if not is_done:
                self._log.warning(
                    "%s: %s has been running for %.0f s for %s: %s",
                    self._name,
                    name,
                    in_seconds(self._clock() - began_at),
                    about,
                    waits,
                )

        self.watch(say_stuck)
        try:
            yield
        finally:
            is_done = True

    def _say_late(self, job: Job, what: str) -> None:
        self._log.warning(
            "%s: %s %s %.3f s after the term had run out for %s: "
            "another owner may serve that from now on",
            self._name,
            job.name,
            what,
            in_seconds(self._clock() - job.deadline),
            job.about,
        )


def _nobody(say: Callable[[], None]) -> None:
    """Do nothing about callbacks that hang."""
