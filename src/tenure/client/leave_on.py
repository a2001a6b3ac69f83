"""Leaving at a signal, in the blocking form: supervisors end processes by SIGTERM.

At the first signal the owner leaves as `close()` does, in a thread of its own: the body of the
`with` block runs on and serves what is still held. When nothing is left, the body is interrupted
wherever it is, and the program goes on behind the block. A second signal has the effect that it
would have without `leave_on`.
"""

import signal
import threading
from collections.abc import Callable, Iterable
from signal import Signals
from types import FrameType
from typing import Any

from tenure.base.names import shown
from tenure.errors import ConfigurationError, UsageError

UNHANDLED = (Signals.SIGKILL, Signals.SIGSTOP)


class LeftAtSignal(BaseException):
    """Ends the body of the `with` block; the block does not let it out."""


def checked_signals(given: object) -> tuple[Signals, ...]:
    """The signals in `leave_on`."""
    try:
        signals = tuple(Signals(each) for each in given)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"leave_on is a sequence of signals, not {shown(given)}; write it like "
            "leave_on=(signal.SIGTERM, signal.SIGINT)"
        ) from None
    for each in signals:
        if each in UNHANDLED:
            raise ConfigurationError(
                f"leave_on cannot have {each.name}, which no program can handle; leave it out"
            )
    return signals


class LeaveOn:
    """Handlers of signals, from entering to leaving."""

    def __init__(self, signals: Iterable[Signals]) -> None:
        self._signals = tuple(signals)
        self._leave: Callable[[], object] = _nothing
        self._before: dict[Signals, Any] = {}
        self._lock = threading.Lock()
        self._has_begun = self._is_gone = False
        self.is_inside = False
        """Whether the body of the block runs, and so must be ended."""

    def begin(self, leave: Callable[[], object], *, is_async: bool) -> None:
        """Handle the signals by calling `leave`. Python sets handlers in the main thread only."""
        if not self._signals:
            return
        self._leave = leave
        if is_async:
            raise UsageError(
                "leave_on is for the blocking form. With `async with Owner(...)`, have the event "
                "loop end your program: loop.add_signal_handler(signal.SIGTERM, task.cancel)"
            )
        if threading.current_thread() is not threading.main_thread():
            raise UsageError(
                "leave_on works in the main thread only, because signals are handled there: enter "
                "this Owner in the main thread, or leave out leave_on and call close()"
            )
        for each in self._signals:
            self._before[each] = signal.signal(each, self._on_signal)

    def end(self) -> None:
        """Restore the handlers that the signals had before."""
        self.is_inside = False
        with self._lock:
            before, self._before = self._before, {}
        for each, handler in before.items():
            signal.signal(each, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._is_gone:
            if self.is_inside:
                raise LeftAtSignal
            return
        if self._has_begun:
            self.end()
            signal.raise_signal(number)
            return
        self._has_begun = True
        # Not here: this runs between any two instructions of the main thread, which may be inside
        # of a lock that leaving needs.
        threading.Thread(target=self._go, args=(number,), name="tenure leaves", daemon=True).start()

    def _go(self, number: int) -> None:
        self._leave()
        self._is_gone = True
        with self._lock:
            main = threading.main_thread().ident
            if self._before and main is not None:
                signal.pthread_kill(main, number)  # also wakes the main thread if it waits


def _nothing() -> None:
    """Do nothing: there is nothing to leave."""
