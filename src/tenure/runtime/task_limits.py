"""Time limits within tasks, without a timer for each.

`asyncio.timeout` makes an object and a timer each time, which costs more than a short operation
itself. If all operations may take equally long, the one that began first is the next to exceed its
limit: one timer for that is enough, and it rarely rings.
"""

import asyncio
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")


class TaskLimit:
    """For `with`, around the limited part of a task: `end_it` ends that part by TimeoutError."""

    __slots__ = ("_cancelling", "_loop", "_task", "has_ended_it")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.has_ended_it = False
        self._task: asyncio.Task[Any] | None = None
        """The task, while it may be ended."""
        self._cancelling = 0

    def __enter__(self) -> Self:
        task = self._task = asyncio.current_task(self._loop)
        assert task is not None
        self._cancelling = task.cancelling()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        task, self._task = self._task, None
        if self.has_ended_it and task is not None:
            # As `asyncio.timeout` does: what others have cancelled stays cancelled.
            is_ours = task.uncancel() <= self._cancelling
            if is_ours and isinstance(error, asyncio.CancelledError):
                raise TimeoutError from error

    @property
    def was_cancelled(self) -> bool:
        """Whether somebody else has cancelled the task since the part began."""
        task = asyncio.current_task(self._loop)
        return task is not None and task.cancelling() > self._cancelling

    def end_it(self) -> None:
        """Its time is over."""
        if self._task is not None and not self.has_ended_it:
            self.has_ended_it = True
            self._task.cancel()


class EqualLimit(TaskLimit, Generic[T]):
    """One of `EqualLimits`: the task that it limits, and since when."""

    __slots__ = ("began", "what")

    def __init__(self, loop: asyncio.AbstractEventLoop, what: T) -> None:
        super().__init__(loop)
        self.what = what
        self.began = loop.time()


class EqualLimits(Generic[T]):
    """The limits of all parts in one event loop that may take equally long, the oldest first."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self._seconds = seconds
        self._under_way: dict[EqualLimit[T], None] = {}
        self._is_looking = False

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def oldest(self) -> EqualLimit[T] | None:
        """The limit of what has run longest."""
        return next(iter(self._under_way), None)

    def begin(self, what: T) -> EqualLimit[T]:
        """It runs, until `end`."""
        limit = EqualLimit(self._loop, what)
        self._under_way[limit] = None
        if not self._is_looking:
            self._is_looking = True
            self._loop.call_at(limit.began + self._seconds, self._look)
        return limit

    def end(self, limit: EqualLimit[T]) -> None:
        """It no longer runs."""
        del self._under_way[limit]

    def _look(self) -> None:
        """End those whose time is over; come again for the next."""
        latest = self._loop.time() - self._seconds
        for limit in self._under_way:
            if limit.began > latest:
                self._loop.call_at(limit.began + self._seconds, self._look)
                return
            limit.end_it()
        self._is_looking = False
