"""Entering and leaving: `async with` and `with`, over one shell.

A method that waits follows the form in which the object was entered: after `async with`, you await
what it returns; after `with`, it blocks, and what it returns need not be awaited.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

from tenure.client.forks import Forkable, watch_forks
from tenure.client.shell import Shell
from tenure.client.unusable import forked, left, not_entered
from tenure.errors import UsageError
from tenure.runtime.loops import take, wait_for

Form = Literal["new", "async", "blocking"]


class Done:
    """An awaitable that is already done."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


class Runs(Protocol):
    """An engine, as the object that enters it sees it."""

    shell: Shell[Any, Any, Any]


N = TypeVar("N", bound=Runs)


class Mortal(Forkable, Protocol):
    """A thing that readers read. It becomes unusable in a forked child."""

    is_forked: bool


class Enterable(Generic[N]):
    """What `Owner` and `Lookup` have in common: each can be entered once, and left.

    The engine is made on entering, not before. Until then a forked child may have a copy of
    everything, so servers with worker processes may make their objects before they fork.
    """

    def __init__(self, what: str, board: Mortal, make: Callable[[], N]) -> None:
        self._what = what
        self._readers = board
        self._make = make
        self._made: N | None = None
        self._form: Form = "new"
        self._is_left = False

    @property
    def _engine(self) -> N:
        assert self._made is not None, "not entered yet"
        return self._made

    # --- async with ---

    async def __aenter__(self) -> Self:
        self._begin("async")
        try:
            await wait_for(self._engine.shell.entered)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- with ---

    def __enter__(self) -> Self:
        if _is_in_loop():
            raise UsageError(
                f"`with {self._what}(...)` would block the event loop that runs here until a "
                f"manager has answered: use `async with {self._what}(...)`"
            )
        self._begin("blocking")
        try:
            self._engine.shell.entered.result()
        except BaseException:
            _ = self.close()
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool | None:
        _ = self.close()
        return None

    # --- both ---

    def _check_new(self) -> None:
        if self._is_forked:
            raise forked(self._what)
        if self._form != "new" or self._is_left:
            raise UsageError(
                f"this {self._what} was entered already, and can be entered only once; "
                "create a new one"
            )

    def _begin(self, form: Form) -> None:
        self._check_new()
        watch_forks(self._readers)
        self._made = self._make()
        self._form = form
        self._made.shell.start(in_loop=form == "async")

    @property
    def _is_forked(self) -> bool:
        """Return whether this is a copy, in a forked child, of an object that the parent has
        entered.
        """
        return self._readers.is_forked

    @property
    def _gone(self) -> "Future[None] | None":
        """Return a future that is done when nothing is left of it; None before it is entered."""
        return None if self._made is None else self._made.shell.gone

    def close(self) -> Awaitable[None]:
        """Leave: what the end of the `with` block does. A second time does nothing.

        Begins at once. Blocks in the blocking form; in the async form, await what it returns.
        """
        return self._leave(None)

    def _leave(self, first: Callable[[], Awaitable[None]] | None) -> Awaitable[None]:
        """Leave, after doing `first` while it is still in use."""
        self._is_left = True
        if self._is_forked or self._form == "new":
            return Done()
        return self._wait(self._engine.shell.leave(first))

    def _wait(self, future: "Future[None]") -> Awaitable[None]:
        if self._form == "async":
            return wait_for(future)
        take(future)
        return Done()

    def _check_entered(self) -> None:
        """Raise if it is not entered, or is in a forked child."""
        if self._is_forked:
            raise forked(self._what)
        if self._form == "new":
            raise not_entered(self._what)

    def _check_usable(self) -> None:
        """Raise if it is not entered, is in a forked child, or was left."""
        self._check_entered()
        if self._is_left and not self._engine.shell.is_draining:
            raise left(self._what)

    @property
    def _state(self) -> str:
        """Describe its state in a word or two, for `repr`."""
        if self._is_forked:
            return "in a forked child"
        if self._made is None:
            return "left" if self._is_left else "not entered"
        shell = self._made.shell
        if self._is_left:
            return "leaving" if shell.is_draining else "left"
        return "entered" if shell.entered.done() else "entering"

    def stats(self) -> dict[str, int]:
        """Counts since it was entered, by name: messages, callbacks, refusals, losses."""
        return {} if self._made is None else dict(self._made.shell.counts)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
