"""How long a turn may take: one timer for all of them.

`asyncio.timeout` makes an object and a timer for each, which costs more than all else of a short
turn. Turns of one kind of entity may all take equally long, so the one that began first is the next
to be over its time: a timer for that one is enough, and most turns never see it.
"""

import asyncio
from types import TracebackType
from typing import Any, Self

from tenure.protocol.entity.key_line import EntityCall


class TurnLimit:
    """`with`, around what a turn runs in its task: ends it by TimeoutError."""

    __slots__ = ("_cancelling", "_limits", "_task", "began", "call", "has_ended_it")

    def __init__(self, limits: "TurnLimits", call: EntityCall, began: float) -> None:
        self._limits = limits
        self.call = call
        self.began = began
        self.has_ended_it = False
        self._task: asyncio.Task[Any] | None = None
        """While it may be ended."""
        self._cancelling = 0

    def __enter__(self) -> Self:
        task = self._task = asyncio.current_task(self._limits.loop)
        assert task is not None
        self._cancelling = task.cancelling()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        if self.has_ended_it and task is not None:
            # As `asyncio.timeout` does: what others have cancelled stays cancelled.
            is_ours = task.uncancel() <= self._cancelling
            if is_ours and isinstance(error, asyncio.CancelledError):
                raise TimeoutError from error

    def end_it(self) -> None:
        """Its time is over."""
        if self._task is not None and not self.has_ended_it:
            self.has_ended_it = True
            self._task.cancel()


class TurnLimits:
    """The limits of all turns that run in one event loop, the oldest first."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self.loop = loop
        self._seconds = seconds
        self._under_way: dict[TurnLimit, None] = {}
        self._is_looking = False

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def oldest(self) -> TurnLimit | None:
        """That of the turn that has run for longest."""
        return next(iter(self._under_way), None)

    def begin(self, call: EntityCall) -> TurnLimit:
        """A turn runs, until `end`."""
        limit = TurnLimit(self, call, self.loop.time())
        self._under_way[limit] = None
        if not self._is_looking:
            self._is_looking = True
            self.loop.call_at(limit.began + self._seconds, self._look)
        return limit

    def end(self, limit: TurnLimit) -> None:
        """It runs no more."""
        del self._under_way[limit]

    def _look(self) -> None:
        """End those whose time is over; come again for the next."""
        latest = self.loop.time() - self._seconds
        for limit in self._under_way:
            if limit.began > latest:
                self.loop.call_at(limit.began + self._seconds, self._look)
                return
            limit.end_it()
        self._is_looking = False
