"""An asyncio event loop that is driven from outside: one for each simulated process.

Code that waits, such as a user's handlers or the library's own clients, runs on it unmodified. The
loop has ready callbacks and timers, as every loop has; but it never runs on its own and never
sleeps. Its *host* is told when a callback is ready or a timer is set, and calls `run_next` and
`ready_timers` when it finds it right. `loop.time()` is what the host's clock shows: a task that
sleeps for an hour is called an hour later on that clock.

Between any two callbacks, that is, wherever code awaits, the host may let time pass, run another
process, or never go on. Within a callback no time passes.

Simulated code cannot reach the outside world. Calls that would open a socket or start a process
raise NotSimulated, which says what to use instead. A function for `run_in_executor`, or
`asyncio.to_thread`, is called in the loop itself, at once and as a whole: no thread is started, so
that the same seed gives the same story.

    class Host: now, on_ready, on_timer             # see LoopHost
    loop = sim_loop(host)
    loop.call_soon(...); loop.create_task(...)      # from inside, or from whoever drives it
"""

import asyncio
import heapq
import logging
import sys
import warnings
import weakref
from asyncio import events
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextvars import Context, copy_context
from functools import partial
from itertools import count
from typing import Any, NoReturn, Protocol, TypeVar

from tenure.base.instants import FAR_FUTURE, SECOND_NS, Instant
from tenure.errors import NotSimulated, UsageError

T = TypeVar("T")
Work = Generator[Any, None, T] | Coroutine[Any, Any, T]

MOST_FINALLYS = 100
"""The most `finally` blocks inside each other of one coroutine."""
FEW_TASKS = 64
"""Finished tasks are forgotten only when there are more tasks than this."""
MOST_CANCELLED = 100
"""The loop keeps at most this many cancelled timers, or as many as half of all timers if that is
more.
"""

GIVE_A_FAKE = "give your code a fake of what it talks to"
SERVED = "pass the application to the test kit, which serves it in memory"
DRIVEN = "await it instead: the simulated world runs the loop"
INSTEAD = {
    **dict.fromkeys(
        (
            *("create_connection", "create_datagram_endpoint", "create_unix_connection"),
            *("getaddrinfo", "getnameinfo", "start_tls", "sendfile", "add_reader", "add_writer"),
            *("sock_recv", "sock_recv_into", "sock_sendall", "sock_connect"),
            *("connect_read_pipe", "connect_write_pipe", "subprocess_shell", "subprocess_exec"),
        ),
        GIVE_A_FAKE,
    ),
    **dict.fromkeys(
        ("create_server", "create_unix_server", "connect_accepted_socket", "sock_accept"), SERVED
    ),
    **dict.fromkeys(("run_forever", "run_until_complete"), DRIVEN),
}
"""The things that a loop with sockets can do, and what simulated code should do instead."""

logger = logging.getLogger("tenure.simulator")


class LoopHost(Protocol):
    """The driver of a loop."""

    slot: str

    def now(self) -> Instant:
        """The time that the host's clock shows."""
        ...

    def on_ready(self) -> None:
        """A callback is ready: call `run_next` once for each such call."""
        ...

    def on_timer(self, at: Instant) -> None:
        """A timer was set that is due before all others: call `ready_timers` then."""
        ...

    def on_escape(self, error: NotSimulated) -> None:
        """Code tried to reach the outside world. The code gets the error, too, and may
        swallow it.
        """
        ...


class SimLoop(asyncio.AbstractEventLoop):
    """A loop without sockets, run step by step by its host."""

    def __init__(self, host: LoopHost) -> None:
        self.host = host
        self.context = Context()
        """The context of callbacks that come from outside the loop."""
        self.unhandled: Callable[[dict[str, Any]], None] = _log
        """The fate of an exception that nobody awaits."""
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[Instant, int, asyncio.TimerHandle]] = []
        self._order = count()
        self._cancelled = 0
        self._is_closed = False
        self._tasks: list[asyncio.Task[Any]] = []
        """All tasks. The list keeps them from being collected as garbage, because the seed does not
        determine when that would happen.
        """
        self._most_tasks = FEW_TASKS
        self._closing: asyncio.Task[None] | None = None
        self._agens: weakref.WeakSet[AsyncGenerator[Any, Any]] = weakref.WeakSet()

    # --- for the host ---

    def run_next(self) -> None:
        """Run the callback that has been ready for longest, as if this were its own thread."""
        handle = self._ready.popleft()
        if not handle.cancelled():
            self._run(handle._run)  # noqa: SLF001

    def _run(self, call: Callable[[], None]) -> None:
        outer = events._get_running_loop()  # noqa: SLF001  # there is no public way to nest loops
        outer_task = None if outer is None else _swap_task(outer, None)
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._agens.add, finalizer=self._finalize)
        events._set_running_loop(self)  # noqa: SLF001
        try:
            call()
        finally:
            events._set_running_loop(outer)  # noqa: SLF001
            sys.set_asyncgen_hooks(*hooks)
            if outer is not None:
                _swap_task(outer, outer_task)

    def ready_timers(self, now: Instant) -> Instant:
        """Make the timers ready that are due at `now`. Returns when the next timer is due."""
        timers = self._timers
        while timers:
            at, _, handle = timers[0]
            if handle.cancelled():
                heapq.heappop(timers)
                self._cancelled -= 1
            elif at <= now:
                heapq.heappop(timers)
                handle._scheduled = False  # type: ignore[attr-defined]  # noqa: SLF001
                self._add(handle)
            else:
                return at
        return FAR_FUTURE

    def abandon(self) -> None:
        """The process is gone: run none of its code again, and log nothing of its tasks."""
        self._is_closed = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # some coroutines have never begun
            self._ready.clear()
            self._timers.clear()
            # What they set at their end, such as whose turn it is, is set for nobody: whoever
            # drives loops would keep it, and with it coroutines that end when theirs is closed.
            self._run(partial(self.context.copy().run, self._end_tasks))

    def _end_tasks(self) -> None:
        while self._tasks:  # closing one may start others
            task = self._tasks.pop()
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
            _close(task.get_coro())

    # --- callbacks ---

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        self._check_open()
        handle = asyncio.Handle(callback, args, self, self._context(context))
        self._add(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def _add(self, handle: asyncio.Handle) -> None:
        if self._is_closed:
            return
        self._ready.append(handle)
        self.host.on_ready()

    def _context(self, given: Context | None = None) -> Context:
        if given is not None:  # it may be empty, and so count as false
            return given
        return copy_context() if self.is_running() else self.context.copy()

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        at = FAR_FUTURE if when >= FAR_FUTURE / SECOND_NS else Instant(-int(-when * SECOND_NS // 1))
        return self._set_timer(at, when, callback, args, context)

    def alarm(self, at: Instant, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """See `Timers`: exact to the nanosecond."""
        return self._set_timer(at, at / SECOND_NS, callback, (), None)

    def _set_timer(
        self,
        at: Instant,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> asyncio.TimerHandle:
        self._check_open()
        handle = asyncio.TimerHandle(when, callback, args, self, self._context(context))
        handle._scheduled = True  # type: ignore[attr-defined]  # noqa: SLF001
        is_first = not self._timers or at < self._timers[0][0]
        heapq.heappush(self._timers, (at, next(self._order), handle))
        if is_first:
            self.host.on_timer(at)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        if handle._scheduled:  # type: ignore[attr-defined]  # noqa: SLF001
            self._cancelled += 1
            if self._cancelled > max(MOST_CANCELLED, len(self._timers) // 2):
                self._timers = [each for each in self._timers if not each[2].cancelled()]
                heapq.heapify(self._timers)
                self._cancelled = 0

    def time(self) -> float:
        """The time that the host's clock shows, in seconds."""
        return self.host.now() / SECOND_NS

    # --- tasks ---

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Work[T], *, name: str | None = None, **options: Any
    ) -> "asyncio.Task[T]":
        self._check_open()
        if options.get("context") is None and not self.is_running():
            options["context"] = self._context()
        task = asyncio.Task(coro, loop=self, name=name, **options)
        self._tasks.append(task)
        if len(self._tasks) > self._most_tasks:
            self._tasks = [each for each in self._tasks if not each.done()]
            self._most_tasks = max(FEW_TASKS, 2 * len(self._tasks))
        return task

    def get_task_factory(self) -> None:
        """None: the loop has no task factory."""

    def set_task_factory(self, factory: object) -> None:
        """Raise UsageError for any factory except None."""
        if factory is not None:
            raise UsageError("a simulated loop makes its tasks itself: leave out the task factory")

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """Call `func` in this loop, and soon. Raises NotSimulated if the caller brings its own
        executor.
        """
        if executor is not None:
            self.refuse("an executor", "leave it out: the function is then called in the loop")
        done: asyncio.Future[T] = self.create_future()

        def run() -> None:
            if done.cancelled():
                return
            try:
                done.set_result(func(*args))
            except Exception as error:  # noqa: BLE001  # whoever awaits it gets it
                done.set_exception(error)

        self.call_soon(run)
        return done

    # --- what goes wrong ---

    def refuse(self, what: str, instead: str) -> NoReturn:
        """Raise NotSimulated: code in this loop reaches for the outside world."""
        error = NotSimulated(
            f"{what} is not there in the simulated process {self.host.slot}: {instead}"
        )
        self.host.on_escape(error)
        raise error

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._is_closed:
            self.unhandled(context)

    def set_exception_handler(self, handler: Any) -> None:
        self.unhandled = _log if handler is None else lambda context: handler(self, context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        _log(context)

    # --- living ---

    def is_running(self) -> bool:
        """Whether one of its callbacks runs at this moment."""
        return events._get_running_loop() is self  # noqa: SLF001

    def is_closed(self) -> bool:
        """Whether the process is gone, or its code has closed the loop."""
        return self._is_closed

    def _check_open(self) -> None:
        if self._is_closed and not self.is_running():  # inside, code that is ended goes on a little
            raise RuntimeError(f"the event loop of {self.host.slot} is closed")

    def stop(self) -> None:
        """Raise UsageError: only the world ends the process."""
        raise UsageError(
            f"code in {self.host.slot} stops its event loop, which belongs to the simulated world: "
            "end what you have begun, and return"
        )

    close = stop

    def get_debug(self) -> bool:
        """False: the loop never debugs."""
        return False

    def set_debug(self, enabled: bool) -> None:  # noqa: FBT001  # as asyncio has it
        """Do nothing: what is slow in a simulation is not slow in production."""

    def _finalize(self, agen: AsyncGenerator[Any, Any]) -> None:
        self._agens.discard(agen)
        if not self._is_closed:
            self._closing = self.create_task(agen.aclose())

    async def shutdown_asyncgens(self) -> None:
        for agen in list(self._agens):
            await agen.aclose()

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Do nothing: the loop has no executor."""


def _close(coroutine: Any) -> None:
    """Close a coroutine, even one that awaits again and again in its `finally`."""
    for _ in range(MOST_FINALLYS):
        try:
            coroutine.close()
        except RuntimeError:
            continue
        except BaseException:  # noqa: BLE001, S110  # of code that is gone
            pass
        return


def _refusing(name: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(self: SimLoop, *_: object, **__: object) -> NoReturn:
        self.refuse(f"loop.{name}", instead)

    return refuse


for _name, _instead in INSTEAD.items():
    setattr(SimLoop, _name, _refusing(_name, _instead))


def _log(context: dict[str, Any]) -> None:
    logger.error("%s", context.get("message"), exc_info=context.get("exception"))


def _swap_task(
    loop: asyncio.AbstractEventLoop, task: "asyncio.Task[Any] | None"
) -> "asyncio.Task[Any] | None":
    """Let another task be the current one of the loop that waits while this one runs.

    Python 3.14 and later have one current task for each thread. Where the current task cannot be
    swapped, each loop has one.
    """
    swap = getattr(asyncio.tasks, "_swap_current_task", None)
    if swap is None:
        return None
    return swap(loop, task)  # type: ignore[no-any-return]


def sim_loop(host: LoopHost) -> SimLoop:
    """Return a loop for `host`."""
    return SimLoop(host)  # type: ignore[abstract]  # what is missing is refused by name, or at all
