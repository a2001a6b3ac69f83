"""How far a long run is: a bar on a terminal, a line now and then elsewhere, on standard error."""

import sys
import time
from types import TracebackType
from typing import Any, Self

from tenure.base.instants import SECOND_NS

SILENT_SECONDS = 1.0
"""What is over sooner needs no telling."""
LINE_SECONDS = 5.0
HOUR_NS = 3600 * SECOND_NS


class SimulationProgress:
    """Tells how much of `whole_ns` is simulated."""

    def __init__(self, whole_ns: int) -> None:
        self.whole_ns = whole_ns
        self._began = time.monotonic()
        self._next_line = self._began + SILENT_SECONDS
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def reached(self, simulated_ns: int) -> None:
        """So much is simulated."""
        now = time.monotonic()
        if now < self._began + SILENT_SECONDS:
            return
        if sys.stderr.isatty():
            self._draw(simulated_ns)
        elif now >= self._next_line:
            self._next_line = now + LINE_SECONDS
            done, whole = simulated_ns / HOUR_NS, self.whole_ns / HOUR_NS
            print(f"simulated {done:,.1f} of {whole:,.1f} hours", file=sys.stderr, flush=True)

    def _draw(self, simulated_ns: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        if self._bar is None:
            text = TextColumn("{task.fields[done]:,.1f} of {task.fields[whole]:,.1f} hours")
            columns = (text, BarColumn(), TimeRemainingColumn())
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            whole = self.whole_ns / HOUR_NS
            self._bar.add_task("", total=self.whole_ns, done=0.0, whole=whole)
            self._bar.start()
        (task,) = self._bar.task_ids
        done = min(simulated_ns, self.whole_ns)  # a seed may end a little after its time
        self._bar.update(task, completed=done, done=simulated_ns / HOUR_NS)
