"""The log's own thread: whoever reads the log, and stops reading, holds up no lease.

A line is written where it is said, usually to a pipe. If nobody reads that, the writer waits, for
ever: a process that renews leases would lose them all, and a manager everybody's. So lines are
written by a thread that has nothing else to do. Whoever says one waits a moment for it, so that
what is said stands in the log before what follows from it; once a line takes longer, nobody waits
any more, and of the lines only the first so many are kept.
"""

import logging
import os
import select
from collections.abc import Callable
from queue import Full, Queue
from threading import Event, Lock, Thread, local
from typing import TypeAlias

Write: TypeAlias = Callable[[], object]

LINES_KEPT = 1000
"""The most lines that wait to be written."""
PATIENCE_SECONDS = 0.1
"""How long whoever says a line waits for it: a thirtieth of the time between two renewals."""
END_SECONDS = 1.0
"""How long a process that ends waits for what it has said."""
SAID_BESIDE_LEASES = (
    "tenure.owner",
    "tenure.lookup",
    "tenure.cache",
    "tenure.transport",
    "tenure.entities",
    "asyncio",
    "aiohttp.client",
)
"""The logs in which threads that keep leases write."""

_here = local()


class LogThread:
    """Writes lines, one after the other, in a thread that begins with the first of them."""

    def __init__(self, lost: Callable[[int], object] = lambda _: None) -> None:
        """`lost` is called in the thread with how many lines were not kept, once it goes on."""
        self._waiting: Queue[tuple[Write, Event]] = Queue(LINES_KEPT)
        self._tell_lost = lost
        self._lost = 0
        self._is_behind = False
        self._lock = Lock()
        self._thread = Thread()

    def write(self, line: Write) -> None:
        """Have a line written; wait a moment for it, unless an earlier one has taken too long."""
        written = Event()
        with self._lock:
            try:
                self._waiting.put_nowait((line, written))
            except Full:
                self._lost += 1
                return
            if not self._thread.is_alive():  # it is not in a process that was forked from this one
                self._thread = Thread(target=self._run, name="tenure log", daemon=True)
                self._thread.start()
        if not self._is_behind and not written.wait(PATIENCE_SECONDS):
            self._is_behind = True

    def finish(self, seconds: float = END_SECONDS) -> None:
        """Wait until everything is written that was said, but no longer than this."""
        if self._thread.is_alive():
            last = Event()
            try:
                self._waiting.put((last.set, last), timeout=seconds)
            except Full:
                return
            last.wait(seconds)

    def _run(self) -> None:
        while True:
            line, written = self._waiting.get()
            line()
            written.set()
            if self._waiting.empty():
                self._is_behind = False
                lost, self._lost = self._lost, 0
                if lost:
                    self._tell_lost(lost)


class LineHandler(logging.Handler):
    """Writes lines to a file, a pipe or a terminal, by its number, and waits for no reader."""

    def __init__(self, file: int) -> None:
        super().__init__()
        self._file = file
        self._thread = LogThread(self._tell_lost)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001  # as every handler of the standard library does
            self.handleError(record)
        else:
            self._thread.write(lambda: self._write(line))

    def flush(self) -> None:
        """Have it written: a process that ends does so with all its handlers."""
        self._thread.finish()

    def _tell_lost(self, lines: int) -> None:
        said = f"{lines} lines of the log were not kept, because nobody read it"
        self._write(
            self.format(logging.LogRecord("tenure", logging.WARNING, "", 0, said, None, None))
        )

    def _write(self, line: str) -> None:
        rest = (line + "\n").encode(errors="backslashreplace")
        while rest:
            try:
                rest = rest[os.write(self._file, rest) :]
            except BlockingIOError:  # somebody who has the same terminal wants it so
                select.select([], [self._file], [])
            except OSError:
                return  # its reader has gone, or its disk is full: there is nobody to tell


class _BesideLeases(logging.Filter):
    """Takes what is said in a thread that keeps leases, and has the log's thread pass it on."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = LogThread(
            lambda lines: logging.getLogger("tenure").warning(
                "%s lines of the log were not kept, because nobody read it", lines
            )
        )

    def filter(self, record: logging.LogRecord) -> bool:
        if not getattr(_here, "keeps_leases", False):
            return True
        pass_on = logging.getLogger(record.name).callHandlers
        self._thread.write(lambda: pass_on(record))
        return False


_beside_leases = _BesideLeases()


def keep_leases_here() -> None:
    """Say that the current thread keeps leases: from here on no handler of a log holds it up."""
    _here.keeps_leases = True
    for each in SAID_BESIDE_LEASES:
        logging.getLogger(each).addFilter(_beside_leases)  # once, however often it is added
