"""Where an engine runs: an event loop in a thread of its own, so that a blocked application does
not cost its leases.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from threading import Lock, Thread, current_thread
from typing import Any, Protocol, TypeAlias, TypeVar

from tenure.runtime.log_thread import keep_leases_here

T = TypeVar("T")
Main: TypeAlias = Coroutine[Any, Any, None]


class Runner(Protocol):
    """Somewhere to run an engine from its beginning to its end."""

    def run(self, main: Main, name: str) -> "Future[None]":
        """Run `main`; done when nothing of it is left."""
        ...


class OwnThread:
    """A new thread for each engine, which ends with it.

    The thread is a daemon, because a process that ends without having left its pools must not hang:
    its ranges become free when their hold runs out.
    """

    def run(self, main: Main, name: str) -> "Future[None]":
        done: Future[None] = Future()

        def body() -> None:
            keep_leases_here()
            try:
                asyncio.run(main)
            except BaseException as error:  # noqa: BLE001  # whatever it is, somebody waits for it
                done.set_exception(error)
            else:
                done.set_result(None)

        Thread(target=body, name=name, daemon=True).start()
        return done


class SharedLoop:
    """A loop that runs already, in another thread than that which waits for the engine."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    def run(self, main: Main, name: str) -> "Future[None]":
        return asyncio.run_coroutine_threadsafe(main, self.loop)


class LoopThread:
    """A loop in a thread of its own, for programs without a loop; any thread may hand it work."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._body, name=name, daemon=True)

    def start(self) -> None:
        """Begin; once."""
        self._thread.start()

    def _body(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result, for which the calling thread waits."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Its result, once it is there. Cancelling the future cancels the work."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @property
    def is_current(self) -> bool:
        """Whether this is the thread of the loop, which cannot wait for itself."""
        return current_thread() is self._thread

    def end(self) -> None:
        """Stop, and wait until nothing of it is left."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class LoopCalls:
    """Calls into a loop from any thread, even before the loop exists and after it is gone."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._early: list[Callable[[], object]] = []
        self._is_shut = False

    def open(self) -> None:
        """The running loop is the one: calls that came before are made now."""
        with self._lock:
            self._loop = asyncio.get_running_loop()
            early, self._early = self._early, []
        for call in early:
            self._loop.call_soon(call)

    def call(self, call: Callable[[], object]) -> bool:
        """Make `call` in the loop, soon; False where that is gone."""
        with self._lock:
            if self._is_shut:
                return False
            if self._loop is None:
                self._early.append(call)
                return True
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # it was closed
            return False
        return True

    def shut(self) -> None:
        """Stop making calls."""
        with self._lock:
            self._is_shut = True


def call_in(
    loop: asyncio.AbstractEventLoop, call: Callable[..., object], *arguments: object
) -> None:
    """Have `loop` make a call, from any thread; nothing if the loop is closed, since whatever
    the call is about is gone with it.
    """
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *arguments)


async def wait_for(future: "Future[None]") -> None:
    """Wait for a future of another thread. Being cancelled leaves it as it is."""
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()

    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    future.add_done_callback(lambda _: call_in(loop, wake))
    await waiter
    take(future)


def take(future: "Future[None]") -> None:
    """Wait in this thread until it is done, and raise what it raised; nothing if cancelled."""
    with suppress(CancelledError):
        future.result()
