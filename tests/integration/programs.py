"""Examples as programs of their own, watched by their lines."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.patience import DEADLINE_SECONDS

EXAMPLES = Path(__file__).parents[2] / "examples"


class Program:
    """A running example, and its lines."""

    def __init__(self, path: str | Path, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(EXAMPLES / path), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **environment},
        )
        self.lines: list[str] = []
        self._coming: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._coming.put(line.strip())

    def wait_for(self, pattern: str) -> str:
        """The next line in which `pattern` is found, among however many others."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            left = deadline - time.monotonic()
            assert left > 0, (pattern, self.lines[-50:])
            try:
                line = self._coming.get(timeout=left)
            except queue.Empty:
                continue
            self.lines.append(line)
            if re.search(pattern, line):
                return line

    def see(self, pattern: str) -> None:
        """A line in which `pattern` is found, since `lines` was cleared or yet to come."""
        if not any(re.search(pattern, line) for line in self.lines):
            self.wait_for(pattern)

    def kill(self) -> None:
        """Kill it as kill -9 does."""
        self.process.kill()
        self.process.wait()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        """Whatever happened: leave nothing behind."""
        self.kill()
        self._reader.join()
        assert self.process.stdout
        self.process.stdout.close()


@contextmanager
def program(
    path: str | Path, *arguments: str, managers: str = "", **environment: str
) -> Iterator[Program]:
    """A program of the examples, or at a path; gone at the end whatever happened."""
    started = Program(path, *arguments, TENURE_MANAGERS=managers, **environment)
    try:
        yield started
    finally:
        started.end()
