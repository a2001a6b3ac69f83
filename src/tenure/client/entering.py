"""Entering and leaving: `async with` and `with`, over one engine.

What waits comes in the form in which the thing was entered: entered with `async with`, it is
awaited; entered with `with`, it blocks, and what it returns need not be awaited.
"""

import asyncio
from collections.abc import Awaitable, Generator
from concurrent.futures import Future
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

from tenure.client.engine import Engine
from tenure.client.unusable import forked, left, not_entered
from tenure.errors import UsageError
from tenure.runtime.loops import take, wait_for

Form = Literal["new", "async", "blocking"]


class Done:
    """Awaitable, and done."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


class Entered:
    """What `Owner` and `Lookup` have in common."""

    _what: ClassVar[str]
    _engine: Engine[Any, Any, Any]

    def __init__(self) -> None:
        self._form: Form = "new"
        self._is_left = False

    @property
    def _is_forked(self) -> bool:
        """Whether this is a copy in a forked child."""
        raise NotImplementedError

    # --- async with ---

    async def __aenter__(self) -> Self:
        self._begin("async")
        try:
            await wait_for(self._engine.entered)
        except BaseException:
            await self.close()
            raise
        self._have_entered()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
            self._engine.entered.result()
        except BaseException:
            _ = self.close()
            self._have_left()
            raise
        self._have_entered()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        try:
            _ = self.close()
        finally:
            self._have_left()
        return None

    # --- both ---

    def _begin(self, form: Form) -> None:
        if self._is_forked:
            raise forked(self._what)
        if self._form != "new" or self._is_left:
            raise UsageError(
                f"this {self._what} was entered already; make another for another time or place"
            )
        self._before_start(form)
        self._form = form
        self._engine.start(in_loop=form == "async")

    def _before_start(self, form: Form) -> None:
        """What is to be done before the engine starts."""

    def _have_entered(self) -> None:
        """What is to be done when it is entered."""

    def _have_left(self) -> None:
        """What is to be done in the blocking form when it is left, or could not be entered."""

    def _before_leaving(self) -> None:
        """What is to be done before the engine leaves."""

    def close(self) -> Awaitable[None]:
        """Leave: what the end of the `with` block does. A second time does nothing.

        Begins at once. Blocks in the blocking form; in the async form, await what it returns.
        """
        return self._close(0.0)

    def _close(self, drain_seconds: float) -> Awaitable[None]:
        first, self._is_left = not self._is_left, True
        if self._is_forked or self._form == "new":
            return Done()
        if first:
            self._before_leaving()
        return self._wait(self._engine.leave(drain_seconds))

    def _wait(self, future: "Future[None]") -> Awaitable[None]:
        if self._form == "async":
            return wait_for(future)
        take(future)
        return Done()

    def _check_entered(self) -> None:
        """Raise what every use of it raises that is not entered, or is in a forked child."""
        if self._is_forked:
            raise forked(self._what)
        if self._form == "new":
            raise not_entered(self._what)

    def _check_usable(self) -> None:
        """Raise where it was left, too."""
        self._check_entered()
        if self._is_left and not self._engine.is_draining:
            raise left(self._what)

    @property
    def _state(self) -> str:
        """In a word or two, for whoever looks at it."""
        if self._is_forked:
            return "in a forked child"
        if self._is_left:
            return "leaving" if self._engine.is_draining else "left"
        if self._form == "new":
            return "not entered"
        return "entered" if self._engine.entered.done() else "entering"

    def stats(self) -> dict[str, int]:
        """How often what happened since it was entered: messages, callbacks, refusals, losses."""
        return dict(self._engine.counts)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
