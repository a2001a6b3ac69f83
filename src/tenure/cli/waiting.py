"""A line that tells what a command waits for, on standard error, once the wait is worth a word."""

import sys
import time
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread
from typing import ClassVar, Self

SILENT_SECONDS = 1.0
"""A shorter wait needs no word."""
REDRAW_SECONDS = 0.2
LINE_SECONDS = 5.0
"""Between two lines where there is no terminal."""
CLEAR_LINE = "\r\x1b[K"


class WaitingLine:
    """Shows `text()` and the seconds so far, while its block runs. One inside another is silent."""

    _is_shown: ClassVar[Lock] = Lock()

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text
        self._ended = Event()
        self._thread = Thread(target=self._show, name="waiting", daemon=True)

    def __enter__(self) -> Self:
        if self._is_shown.acquire(blocking=False):
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive() or self._thread.ident:
            self._ended.set()
            self._thread.join()
            self._is_shown.release()

    def _show(self) -> None:
        began = time.monotonic()
        if self._ended.wait(SILENT_SECONDS):
            return
        on_terminal = sys.stderr.isatty()
        start, end = (CLEAR_LINE, "") if on_terminal else ("", "\n")
        while True:
            line = f"{start}{self._text()} ({time.monotonic() - began:.0f} s)"
            print(line, file=sys.stderr, end=end, flush=True)
            if self._ended.wait(REDRAW_SECONDS if on_terminal else LINE_SECONDS):
                break
        if on_terminal:
            print(CLEAR_LINE, file=sys.stderr, end="", flush=True)


def waiting_for(managers: Sequence[str]) -> WaitingLine:
    """A wait for one of them to answer."""
    return WaitingLine(lambda: f"waiting for {' or '.join(managers)}")
