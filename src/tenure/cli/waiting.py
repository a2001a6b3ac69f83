"""A line that tells what a command is at, on standard error, once that lasts long enough.

It is the one way in which commands show progress. Each command has such a line, which says at least
that it is at work; what a command does with a count, or waits for, has one of its own inside that.
"""

import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from threading import Condition, Thread
from typing import Self, TypeVar

T = TypeVar("T")

SILENT_SECONDS = 1.0
"""A wait that is shorter than this is not mentioned."""
REDRAW_SECONDS = 0.2
LINE_SECONDS = 5.0
"""The time between two lines if there is no terminal."""
CLEAR_LINE = "\r\x1b[K"


class WaitingLine:
    """Shows `text()` and the seconds so far, while its block runs.

    Of several, one inside the other, the innermost is shown that has lasted for long enough.
    """

    def __init__(self, text: Callable[[], str]) -> None:
        self.text = text
        self.began = 0.0

    def __enter__(self) -> Self:
        self.began = time.monotonic()
        _shown.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        _shown.remove(self)


class _ShownLine:
    """The line on the screen, and the thread that draws it while there is something to tell."""

    def __init__(self) -> None:
        self.waits: list[WaitingLine] = []
        self.is_resting = False
        self._changed = Condition()
        self._is_drawn = False
        self._thread = Thread()

    def add(self, wait: WaitingLine) -> None:
        with self._changed:
            self.waits.append(wait)
            if len(self.waits) == 1:
                self._thread = Thread(target=self._run, name="waiting", daemon=True)
                self._thread.start()
            self._changed.notify()

    def remove(self, wait: WaitingLine) -> None:
        with self._changed:
            self.waits.remove(wait)
            self.clear()
            self._changed.notify()
        if not self.waits:
            self._thread.join()

    def clear(self) -> None:
        with self._changed:
            if self._is_drawn:
                self._is_drawn = False
                print(CLEAR_LINE, file=sys.stderr, end="", flush=True)

    def _run(self) -> None:
        said, again = None, 0.0
        with self._changed:
            while self.waits:
                now = time.monotonic()
                lasting = [each for each in self.waits if now >= each.began + SILENT_SECONDS]
                if lasting and not self.is_resting:
                    shown = lasting[-1]
                    is_news = said is None or shown.began > said.began
                    if sys.stderr.isatty() or is_news or now >= again:
                        self._tell(f"{shown.text()} ({now - shown.began:.0f} s)")
                        said, again = shown, now + LINE_SECONDS
                self._changed.wait(REDRAW_SECONDS)

    def _tell(self, line: str) -> None:
        self._is_drawn = sys.stderr.isatty()
        start, end = (CLEAR_LINE, "") if self._is_drawn else ("", "\n")
        print(f"{start}{line}", file=sys.stderr, end=end, flush=True)


_shown = _ShownLine()


@contextmanager
def without_line() -> Iterator[None]:
    """Show no line while something else is written, or somebody is asked. It comes again."""
    was_resting, _shown.is_resting = _shown.is_resting, True
    _shown.clear()
    try:
        yield
    finally:
        _shown.is_resting = was_resting


def waiting_for(managers: Sequence[str]) -> WaitingLine:
    """A wait for one of them to answer."""
    return WaitingLine(lambda: f"waiting for {' or '.join(managers)}")


@asynccontextmanager
async def entered(
    service: AbstractAsyncContextManager[T], entering: str, leaving: str
) -> AsyncIterator[T]:
    """A service that goes on until it is ended: a line for its beginning, and one for its end."""
    async with AsyncExitStack() as stack:
        with WaitingLine(lambda: entering):
            it = await stack.enter_async_context(service)
        try:
            yield it
        finally:
            with WaitingLine(lambda: leaving):
                await stack.aclose()
