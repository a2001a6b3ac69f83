"""Entering and leaving what runs in one process: with `async with`, in the loop that is there, or
with `with`, in a loop of its own in a thread, for programs that have none.
"""

from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from tenure.errors import ClosedError, UsageError
from tenure.runtime.loops import LoopThread


class RunnablePlace(Protocol):
    """What runs in one process: a `Station`, or a `ReadersPlace`."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Run until the block ends."""
        ...


P = TypeVar("P", bound=RunnablePlace)


class EnteredPlace(Generic[P]):
    """What is entered, and can be entered again when it was left."""

    what: ClassVar[str]
    """What it is, in errors."""

    def __init__(self) -> None:
        self._place: P | None = None
        self._stack: AsyncExitStack | None = None
        self._thread: LoopThread | None = None
        """The thread in which it runs, if it was entered with `with`."""
        self.in_threads = False
        """Whether plain methods may be called: each runs in a thread."""

    def _make_place(self) -> P:
        raise NotImplementedError

    def in_its_loop(self, call: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401  # its result
        """The call, to be awaited in this loop; or its result, for which another thread waits."""
        if self._thread is None or self._thread.is_current:
            return call
        if self._place is None:
            call.close()
            raise self.not_entered()
        return self._thread.run(call)

    def not_entered(self) -> ClosedError:
        """The error of whoever uses it before."""
        raise NotImplementedError

    @asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:
        """The lifespan of an ASGI application: `FastAPI(lifespan=rooms.lifespan)`."""
        del app
        async with self:
            yield

    async def __aenter__(self) -> Self:
        self._begin()
        self._thread, self.in_threads = None, False
        await self._enter()
        return self

    def _begin(self) -> None:
        if self._stack is not None:
            raise UsageError(f"{self.what} are entered already")
        self._stack = AsyncExitStack()

    async def _enter(self) -> None:
        assert self._stack is not None
        try:
            place = self._make_place()
            await self._stack.enter_async_context(place.running())
        except BaseException:
            self._stack = None
            raise
        self._place = place

    async def __aexit__(self, *_: object) -> None:
        assert self._stack is not None
        try:
            await self._stack.aclose()
        finally:
            self._place = self._stack = None

    def __enter__(self) -> Self:
        self._begin()
        thread = self._thread = LoopThread(f"tenure {type(self).__name__}")
        self.in_threads = True
        thread.start()
        try:
            thread.run(self._enter())
        except BaseException:
            thread.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._thread is not None
        try:
            self._thread.run(self.__aexit__(None, None, None))
        finally:
            self._thread.end()
